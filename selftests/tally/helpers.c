// SPDX-License-Identifier: GPL-2.0
/* The C helpers of rust/perf, and of the layers below it. */

#include "../../rust/helpers.c"
#include "../../rust/static_calls.c"
#include "../../rust/sysfs.c"
#include "../../rust/task_data.c"
