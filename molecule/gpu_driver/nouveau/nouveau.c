// SPDX-License-Identifier: GPL-2.0
/* Stands for the kernel's own driver of NVIDIA's GPUs, which Debian's kernel for virtual machines lacks. */
#include <linux/module.h>

static int __init begin(void)
{
	return 0;
}

static void __exit end(void)
{
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("Stands for nouveau");
MODULE_LICENSE("GPL");
/* Loaded at boot as the real one is, unless somebody keeps it away: the machine's devices are of this vendor. */
MODULE_ALIAS("pci:v00001AF4d*sv*sd*bc*sc*i*");
