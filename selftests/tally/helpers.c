// SPDX-License-Identifier: GPL-2.0
/* The helpers of rust/perf, and of what it is built on. */

#include "../../rust/helpers.c"
#include "../../rust/static_calls.c"
#include "../../rust/sysfs.c"
#include "../../rust/task_data.c"
