// SPDX-License-Identifier: GPL-2.0
/*
 * The module parameters that are texts: module! of the kernel crate knows
 * numbers only.
 */

#include <linux/moduleparam.h>
#include <linux/utsname.h>

static char *policy = "rpmu";
module_param(policy, charp, 0444);
MODULE_PARM_DESC(policy, "How events get counters: \"rpmu\" (default; sets that fit are never refused, groups with the least runtime go first) or \"mainline\" (as the built-in driver, without its defects)");

const char *rpmu_helper_policy(void)
{
	return policy;
}

static char *release = "";
module_param(release, charp, 0444);
MODULE_PARM_DESC(release, "For tests: the kernel's release, as uname -r prints it, that decides about untried features (default: the true one)");

const char *rpmu_helper_release(void)
{
	return *release ? release : init_uts_ns.name.release;
}
