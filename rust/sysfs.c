// SPDX-License-Identifier: GPL-2.0
/*
 * The files of a PMU's device in sysfs.
 */

#include <linux/device.h>
#include <linux/perf_event.h>
#include <linux/sysfs.h>

void *rpmu_helper_dev_get_drvdata(const struct device *dev)
{
	return dev_get_drvdata(dev);
}

/*
 * Returns the PMU with this name on the bus of a registered PMU, or NULL. The
 * caller must know that nothing unregisters it.
 */
struct pmu *rpmu_helper_pmu_named(const struct pmu *pmu, const char *name)
{
	struct device *dev;
	struct pmu *found;

	dev = bus_find_device_by_name(pmu->dev->bus, NULL, name);
	if (!dev)
		return NULL;
	found = dev_get_drvdata(dev);
	put_device(dev);
	return found;
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
