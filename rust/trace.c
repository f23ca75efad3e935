// SPDX-License-Identifier: GPL-2.0
/* The tracepoints: what the kernel makes of their description. */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include <rpmu_trace.h>
