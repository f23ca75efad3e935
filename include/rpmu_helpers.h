/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers of rpmu (rust/helpers.c): one-call wrappers for what exists only as
 * a macro or an inline function. bindgen reads the prototypes and the C file
 * includes them, so that the two cannot drift apart.
 */
#ifndef RPMU_HELPERS_H
#define RPMU_HELPERS_H

#include <linux/types.h>

/* for rust/x86 */

/* for rust/perf */

#endif /* RPMU_HELPERS_H */
