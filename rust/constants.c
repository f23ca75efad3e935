// SPDX-License-Identifier: GPL-2.0
/*
 * Compares the constants that bindgen has taken from the headers with their
 * values in C. If a macro is redefined, bindgen keeps the first definition: for
 * example user mode's HZ instead of the kernel's. Kbuild compiles this file to
 * assembly, which nothing uses.
 *
 * A constant that differs belongs in include/rpmu_bindings.h, as a
 * RUST_CONST_HELPER_.
 */

#include "../include/rpmu_bindings.h"
#include "bindings/constants_generated.h"
