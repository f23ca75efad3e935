// SPDX-License-Identifier: GPL-2.0
/* The tracepoints, generated from their description in rpmu_trace.h. */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include <rpmu_trace.h>
