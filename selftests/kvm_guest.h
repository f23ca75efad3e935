/* SPDX-License-Identifier: GPL-2.0 */
/* The guest's code: see kvm_guest.S. */
#ifndef RPMU_SELFTESTS_KVM_GUEST_H
#define RPMU_SELFTESTS_KVM_GUEST_H

extern const char guest_loop[], guest_counted[], guest_end[];

#define GUEST_LOOP(n)		(2 * (__u64)(n))
/*
 * The same plus the XOR and WRMSR, which KVM executes for the guest and counts.
 */
#define GUEST_COUNTED(n)	(2 * (__u64)(n) + 2)

#endif
