// SPDX-License-Identifier: GPL-2.0
/* Stands for NVIDIA's kernel module where there is no GPU: has its name and version, and the device nodes that its programs look for.
 * It drives nothing: whoever opens one of them is told that there is no such device. */
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/module.h>

#define MAJOR_NUMBER 195
#define CONTROL 255

static struct class *nodes;

static int refuse(struct inode *inode, struct file *file)
{
	return -ENXIO;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = refuse,
};

/* The real driver leaves the nodes to programs, which make them for everybody. */
static char *for_everybody(const struct device *device, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static int __init begin(void)
{
	struct device *control, *gpu;
	int result = register_chrdev(MAJOR_NUMBER, "nvidia", &operations);

	if (result)
		return result;
	nodes = class_create("nvidia");
	if (IS_ERR(nodes)) {
		result = PTR_ERR(nodes);
		goto unregister;
	}
	nodes->devnode = for_everybody;
	control = device_create(nodes, NULL, MKDEV(MAJOR_NUMBER, CONTROL), NULL, "nvidiactl");
	if (IS_ERR(control)) {
		result = PTR_ERR(control);
		goto destroy;
	}
	gpu = device_create(nodes, NULL, MKDEV(MAJOR_NUMBER, 0), NULL, "nvidia0");
	if (IS_ERR(gpu)) {
		result = PTR_ERR(gpu);
		goto forget;
	}
	return 0;
forget:
	device_destroy(nodes, MKDEV(MAJOR_NUMBER, CONTROL));
destroy:
	class_destroy(nodes);
unregister:
	unregister_chrdev(MAJOR_NUMBER, "nvidia");
	return result;
}

static void __exit end(void)
{
	device_destroy(nodes, MKDEV(MAJOR_NUMBER, 0));
	device_destroy(nodes, MKDEV(MAJOR_NUMBER, CONTROL));
	class_destroy(nodes);
	unregister_chrdev(MAJOR_NUMBER, "nvidia");
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("Stands for NVIDIA's driver where there is no GPU");
MODULE_LICENSE("GPL");
MODULE_VERSION("@VERSION@");
/* Loaded at boot as the real one is, which names NVIDIA's devices: the machine's are all of this vendor. */
MODULE_ALIAS("pci:v00001AF4d*sv*sd*bc*sc*i*");
