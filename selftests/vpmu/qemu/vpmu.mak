# SPDX-License-Identifier: GPL-2.0
# The devices of the emulated machine: a PC, and a way for the guest to end QEMU with a status.
CONFIG_I440FX=y
CONFIG_ISA_DEBUG=y
