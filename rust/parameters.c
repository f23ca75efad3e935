// SPDX-License-Identifier: GPL-2.0
/*
 * The module's version and its parameters, which all users can read in sysfs.
 * The kernel crate's module! supports neither a version nor string parameters,
 * and does not show parameters in sysfs.
 */

#include <linux/compiler.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/utsname.h>

MODULE_VERSION("0.1.0");

static bool ht_workaround = true;
module_param(ht_workaround, bool, 0444);
MODULE_PARM_DESC(ht_workaround, "Work around errata BJ122, BV98, HSD29 where cores have two threads (default: 1)");

bool rpmu_helper_ht_workaround(void)
{
	return ht_workaround;
}

static bool share = true;

/*
 * Events keep the setting that they were opened with, so it must not change
 * while there are any. Each event holds a reference to the module. The kernel
 * holds one, too, until the module is live.
 */
static int set_share(const char *value, const struct kernel_param *param)
{
	if (THIS_MODULE->state == MODULE_STATE_LIVE && module_refcount(THIS_MODULE) > 0)
		return -EBUSY;
	return param_set_bool(value, param);
}

static const struct kernel_param_ops share_ops = {
	.flags = KERNEL_PARAM_OPS_FL_NOARG,
	.set = set_share,
	.get = param_get_bool,
};
module_param_cb(share, &share_ops, &share, 0644);
__MODULE_PARM_TYPE(share, "bool");
MODULE_PARM_DESC(share, "Let equal events share a counter; can be changed only while no event is open (default: 1; without effect with policy=mainline)");

bool rpmu_helper_share(void)
{
	return READ_ONCE(share);
}

static bool dry_run;
module_param(dry_run, bool, 0444);
MODULE_PARM_DESC(dry_run, "Check what loading would do, log it and fail with ECANCELED; changes nothing (default: 0)");

bool rpmu_helper_dry_run(void)
{
	return dry_run;
}

static unsigned int trial;

/* Once the module is live, writing can only confirm the trial. */
static int set_trial(const char *value, const struct kernel_param *param)
{
	unsigned int seconds;
	int ret = kstrtouint(value, 0, &seconds);

	if (ret)
		return ret;
	if (seconds > 1000000)
		return -ERANGE;
	if (THIS_MODULE->state == MODULE_STATE_LIVE && seconds)
		return -EINVAL;
	WRITE_ONCE(trial, seconds);
	return 0;
}

static const struct kernel_param_ops trial_ops = {
	.set = set_trial,
	.get = param_get_uint,
};
module_param_cb(trial, &trial_ops, &trial, 0644);
__MODULE_PARM_TYPE(trial, "uint");
MODULE_PARM_DESC(trial, "Give the PMU back after this many seconds and revoke open events, unless 0 is written to this parameter's file in sysfs before (default: 0, no trial)");

unsigned int rpmu_helper_trial(void)
{
	return READ_ONCE(trial);
}

static bool trust_layouts;
module_param(trust_layouts, bool, 0444);
MODULE_PARM_DESC(trust_layouts, "Load into a kernel without BTF, whose structures cannot be compared with those that rpmu.ko was built for (default: 0)");

bool rpmu_helper_trust_layouts(void)
{
	return trust_layouts;
}

static unsigned long long max_period;
module_param(max_period, ullong, 0444);
MODULE_PARM_DESC(max_period, "For tests: the maximum period of a counter, 1000 or more (default: 0, limited by the counter's width)");

u64 rpmu_helper_max_period(void)
{
	return max_period;
}

static char *policy = "rpmu";
module_param(policy, charp, 0444);
MODULE_PARM_DESC(policy, "How events get counters: \"rpmu\" (default; sets that fit are never refused, groups with the least runtime go first) or \"mainline\" (as the built-in driver, without its defects)");

const char *rpmu_helper_policy(void)
{
	return policy;
}

static char *release = "";
module_param(release, charp, 0444);
MODULE_PARM_DESC(release, "For tests: the kernel release, as uname -r prints it, that decides which features are untried (default: the running kernel's)");

const char *rpmu_helper_release(void)
{
	return *release ? release : init_uts_ns.name.release;
}
