// SPDX-License-Identifier: GPL-2.0
/*
 * The files of a PMU's device in sysfs.
 */

#include <linux/device.h>
#include <linux/sysfs.h>

void *rpmu_helper_dev_get_drvdata(const struct device *dev)
{
	return dev_get_drvdata(dev);
}

void rpmu_helper_sysfs_attr_init(struct attribute *attr)
{
	sysfs_attr_init(attr);
}

/*
 * For a file whose write removes other files, and waits for their readers: it
 * has a lock class of its own.
 */
void rpmu_helper_sysfs_attr_init_request(struct attribute *attr)
{
	sysfs_attr_init(attr);
}

int rpmu_helper_sysfs_merge_group(struct device *dev,
				  const struct attribute_group *group)
{
	return sysfs_merge_group(&dev->kobj, group);
}

void rpmu_helper_sysfs_unmerge_group(struct device *dev,
				     const struct attribute_group *group)
{
	sysfs_unmerge_group(&dev->kobj, group);
}
