# SPDX-License-Identifier: GPL-2.0
# Devices of the emulated machine: a PC, and isa-debug-exit, by which a guest ends QEMU with a status.
CONFIG_I440FX=y
CONFIG_ISA_DEBUG=y
