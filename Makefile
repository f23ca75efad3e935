# SPDX-License-Identifier: GPL-2.0
# The front door. Every target is one script below scripts/; each has a --help of its own.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := module
export KDIR FLAVOUR KERNEL ACCEL MIRROR RPMU_CACHE JOBS GDB INSTALL_MOD_PATH INSTALL_MOD_DIR INSTALL_MOD_STRIP

.PHONY: module modules_install demo test miri plan plan-events plan-test vpmu-test vpmu-speed accept parity bench stress check configs guest toolroot kernel qemu vpmu image rust-analyzer refresh clean clean-cache help

module:
	@scripts/module --install

modules_install:
	@scripts/module modules_install

demo:
	@scripts/demo

test:
	@scripts/test

miri:
	@scripts/miri

plan:
	@scripts/plan

plan-events:
	@scripts/plan --events

plan-test:
	@scripts/plan-test $(or $(N),9) $(or $(SEED),1) $(or $(MODELS),HSW,SKL,ICL) $(DRIVERS)

# All of them run, whichever fails.
vpmu-test:
	@status=0; \
	for part in "scripts/test vpmu" selftests/vpmu/snapshot.sh selftests/vpmu/idle.sh selftests/vpmu/bare.sh selftests/vpmu/models.sh \
			selftests/vpmu/repeat.sh; do \
		$$part || { status=1; echo "rpmu: failed: $$part" >&2; }; \
	done; \
	exit $$status

vpmu-speed:
	@selftests/vpmu/speed.sh

accept:
	@scripts/accept $(if $(MODELS),--models "$(MODELS)") $(if $(CASES),--cases "$(CASES)") \
		$(if $(DRIVERS),--drivers "$(DRIVERS)")

parity:
	@scripts/parity $(if $(MODELS),--models "$(MODELS)") $(if $(ITEMS),--items "$(ITEMS)")

bench:
	@scripts/bench $(if $(DRIVERS),--drivers "$(DRIVERS)") $(if $(ROWS),--rows "$(ROWS)")

stress:
	@scripts/stress $(if $(KINDS),--kinds "$(KINDS)") $(if $(SEED),--seed "$(SEED)") $(if $(CALLS),--calls "$(CALLS)") \
		$(if $(ROUNDS),--rounds "$(ROUNDS)") $(if $(PMIS),--pmis "$(PMIS)") $(if $(MODELS),--models "$(MODELS)") \
		$(if $(PARALLEL),--parallel)

check:
	@scripts/check

configs:
	@scripts/configs

guest:
	@scripts/guest $(GUEST)

# The steps that the others call by themselves, one by one.
toolroot kernel qemu vpmu image:
	@scripts/$@

rust-analyzer:
	@scripts/module rust-analyzer

refresh:
	@scripts/toolroot --refresh

clean:
	@scripts/clean

clean-cache:
	@scripts/clean --cache

help:
	@echo "make                build/rpmu.ko for Debian's stock kernel (FLAVOUR=cloud-amd64, or amd64)"
	@echo "make KDIR=DIR       build/rpmu.ko for a kernel of yours, such as /lib/modules/\$$(uname -r)/build"
	@echo "make modules_install install rpmu.ko below /lib/modules (INSTALL_MOD_PATH=DIR: below DIR/lib/modules) and run"
	@echo "                    depmod; with FLAVOUR= or KDIR= as above"
	@echo "make demo           boot a guest, load rpmu and run perf stat on it"
	@echo "make test           all tests: on the host, then in guests"
	@echo "make miri           the logic's own tests under Miri, with a nightly Rust toolchain of yours"
	@echo "make vpmu-test      the emulated PMU alone: its model, then on all nine CPU models its registers and the built-in driver"
	@echo "make vpmu-speed     what the emulated PMU costs: QEMU's CPU time with it and without"
	@echo "make accept         the reference cases on every CPU model, on both drivers, side by side;"
	@echo "                    MODELS=HSW,SKL CASES=1,5 DRIVERS=built-in,mainline,rpmu for some of them"
	@echo "make parity         perf's, the kernel's and PAPI's own tests and tools, on both drivers, side by side;"
	@echo "                    MODELS=HSW,SKL,ICL ITEMS=stat,papi-zero for some of them"
	@echo "make plan           build/rpmu-plan, which predicts who is on which counter (cargo install --path tools does, too)"
	@echo "make plan-events    make its lists of events anew, from the kernel's source"
	@echo "make plan-test      N=9 random sets of events (SEED=1, MODELS=HSW,SKL,ICL), planned and then run in guests"
	@echo "make bench          what operations on events cost on both drivers: register writes, instructions, shares"
	@echo "make stress         random calls, storms of loads, hotplug and overflows, failing allocations (KERNEL=debug);"
	@echo "                    KINDS=fuzz,nmi MODELS=Haswell SEED=7 CALLS=10000 ROUNDS=50 PMIS=1000 for less;"
	@echo "                    PARALLEL=1: CPUs that really run at once"
	@echo "make check          format, clippy, layers, shell scripts"
	@echo "make configs        rpmu.ko for a kernel without options of the stock kernel's, compiled only"
	@echo "make guest          a shell in a guest; GUEST=\"--cpu Skylake-Client --smp 2,1\", GDB=1 waits for gdb"
	@echo "make rust-analyzer  rust-project.json for your editor"
	@echo "make refresh        read the package lists again, take the newest kernel 7.x"
	@echo "make clean          remove what was built of this checkout; make clean-cache: everything"
	@echo "make toolroot kernel qemu vpmu image: the steps that the above are made of"
	@echo
	@echo "KERNEL=debug        test, demo and guest on a kernel built with KASAN, lockdep and other checks"
	@echo "ACCEL=kvm           demo, test and guest on this machine's own PMU"
	@echo "MIRROR=URL          a Debian mirror (default: this machine's)"
	@echo "RPMU_CACHE=DIR      where what is downloaded and built is kept (default ~/.cache/rpmu)"
