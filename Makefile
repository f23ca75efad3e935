# SPDX-License-Identifier: GPL-2.0
# The targets run scripts below scripts/ and selftests/; scripts/NAME --help describes a script and its options.

MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := module
export KDIR FLAVOUR KERNEL ACCEL MIRROR RPMU_CACHE JOBS GDB INSTALL_MOD_PATH INSTALL_MOD_DIR INSTALL_MOD_STRIP

.PHONY: module modules_install probe deb deb-test demo test miri plan check-programs rpmu-check-test plan-events plan-test vpmu-package vpmu-test vpmu-speed hybrid-test accept parity fair bench stress check configs inserted guest toolroot kernel qemu vpmu image rust-analyzer refresh clean clean-cache help

module:
	@scripts/module --install

modules_install:
	@scripts/module modules_install

probe:
	@scripts/probe "$(or $(KDIR),/lib/modules/$(shell uname -r)/build)"

deb:
	@scripts/deb

deb-test:
	@selftests/deb/deb.sh

demo:
	@scripts/demo

test:
	@scripts/test $(if $(RETRY),--retry)

miri:
	@scripts/miri

plan:
	@scripts/plan

check-programs:
	@scripts/check-programs

rpmu-check-test:
	@selftests/rpmu-check/test.sh --all $(MODELS)

plan-events:
	@scripts/plan --events

plan-test:
	@scripts/plan-test $(or $(N),9) $(or $(SEED),1) $(or $(MODELS),HSW,SKL,ICL) $(DRIVERS)

hybrid-test:
	@selftests/hybrid/hybrid.sh $(PARTS)

# Runs all parts, even if one fails.
vpmu-test:
	@status=0; \
	for part in "scripts/test vpmu" selftests/vpmu/snapshot.sh selftests/vpmu/idle.sh selftests/vpmu/bare.sh selftests/vpmu/models.sh \
			selftests/vpmu/profiles.sh selftests/vpmu/repeat.sh selftests/vpmu/package.sh; do \
		$$part || { status=1; echo "rpmu: failed: $$part" >&2; }; \
	done; \
	exit $$status

vpmu-package:
	@scripts/vpmu-package

vpmu-speed:
	@selftests/vpmu/speed.sh

accept:
	@scripts/accept $(if $(MODELS),--models "$(MODELS)") $(if $(CASES),--cases "$(CASES)") \
		$(if $(DRIVERS),--drivers "$(DRIVERS)")

fair:
	@scripts/fair $(or $(PART),plan) --count $(or $(COUNT),300) --seed $(or $(SEED),1) \
		$(if $(MODELS),--models "$(MODELS)")

parity:
	@scripts/parity $(if $(MODELS),--models "$(MODELS)") $(if $(ITEMS),--items "$(ITEMS)")

bench:
	@scripts/bench $(if $(CPU),--cpu "$(CPU)") $(if $(DRIVERS),--drivers "$(DRIVERS)") $(if $(ROWS),--rows "$(ROWS)")

stress:
	@scripts/stress $(if $(KINDS),--kinds "$(KINDS)") $(if $(SEED),--seed "$(SEED)") $(if $(CALLS),--calls "$(CALLS)") \
		$(if $(STEPS),--steps "$(STEPS)") $(if $(ROUNDS),--rounds "$(ROUNDS)") $(if $(PMIS),--pmis "$(PMIS)") \
		$(if $(MODELS),--models "$(MODELS)") $(if $(PARALLEL),--parallel)

check:
	@scripts/check

configs:
	@scripts/configs

inserted:
	@scripts/inserted

guest:
	@scripts/guest $(GUEST)

# Single steps, which the other targets run as needed.
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
	@echo "make KDIR=DIR       build/rpmu.ko for your own kernel, such as /lib/modules/\$$(uname -r)/build"
	@echo "make modules_install"
	@echo "                    install rpmu.ko below /lib/modules and run depmod; with FLAVOUR= or KDIR= as above,"
	@echo "                    INSTALL_MOD_PATH=DIR to install below DIR/lib/modules"
	@echo "make probe          list what is missing to build rpmu.ko for KDIR=DIR (default: the running kernel's)"
	@echo "make deb            build the Debian packages rpmu-dkms, rpmu-demo and rpmu-tools in build/"
	@echo "make deb-test       install them in a clean Debian, then load the rpmu.ko that DKMS has built in a guest"
	@echo "make demo           boot a guest, load rpmu and run perf stat on it"
	@echo "make test           run all tests, on the host and in guests (scripts/test --help: the streams);"
	@echo "                    RETRY=1 runs test programs that failed in a guest once more"
	@echo "make miri           run the logic's unit tests in Miri, with your own nightly Rust toolchain"
	@echo "make vpmu-test      test the emulated PMU: its model, its registers, the built-in driver on all CPU models, and"
	@echo "                    both drivers on what hypervisors give their guests"
	@echo "make vpmu-package   pack the emulated PMU for tests of other PMU code (Documentation/emulated-pmu.md)"
	@echo "make vpmu-speed     measure the cost of the emulated PMU: QEMU's CPU time with it and without"
	@echo "make hybrid-test    test rpmu on an Alder Lake with two types of cores; PARTS='takeover late' for a part"
	@echo "make accept         run the reference cases on every CPU model, both drivers side by side;"
	@echo "                    MODELS=HSW,SKL CASES=1,5 DRIVERS=built-in,mainline,rpmu for a part"
	@echo "make fair           compare the shares of COUNT=300 random lists of events with fair shares, in rpmu-plan's"
	@echo "                    predictions or, with PART=guest, in guests; SEED=1 MODELS=HSW:on,SKL"
	@echo "make parity         run the tests and tools of perf, the kernel and PAPI, both drivers side by side;"
	@echo "                    MODELS=HSW,SKL,ICL ITEMS=stat,papi-zero for a part"
	@echo "make plan           build build/rpmu-plan, which predicts multiplexing, build/rpmu-top, which shows it live, and"
	@echo "                    build/rpmu-check (or: cargo install --locked --path tools)"
	@echo "make check-programs build the test programs of build/rpmu-check, which make plan builds, in build/check"
	@echo "make rpmu-check-test"
	@echo "                    run rpmu-check in guests of six CPU models; MODELS=Haswell for a part"
	@echo "make plan-events    make rpmu-plan's event lists from the kernel's source"
	@echo "make plan-test      plan N=9 random sets of events (SEED=1, MODELS=HSW,SKL,ICL, DRIVERS=mainline,rpmu)"
	@echo "                    and run them in guests"
	@echo "make bench          measure operations on events on both drivers: register writes, instructions, shares;"
	@echo "                    ROWS='rotate-*' DRIVERS=built-in,rpmu for a part, CPU=icelake, zen2 or zen4"
	@echo "make stress         random calls, storms of loads, hotplug and overflows, equal events, failing allocations"
	@echo "                    (KERNEL=debug);"
	@echo "                    KINDS=fuzz,nmi MODELS=Haswell SEED=7 CALLS=10000 STEPS=10000 ROUNDS=50 PMIS=1000 for a part;"
	@echo "                    PARALLEL=1 for CPUs that really run in parallel"
	@echo "make check          check the format, the layers, links, shell scripts, C and stacks; run clippy"
	@echo "make configs        compile rpmu.ko for a kernel without some of the stock kernel's options"
	@echo "make inserted       check that a kernel with an extra member in struct perf_event refuses rpmu.ko"
	@echo "make guest          open a shell in a guest; GUEST=\"--cpu Skylake-Client --smp 2,1\", GDB=1 waits for gdb"
	@echo "make rust-analyzer  write rust-project.json for your editor"
	@echo "make refresh        read the package lists again and select the newest kernel 7.x"
	@echo "make clean          remove the build products of this checkout; make clean-cache: everything"
	@echo "make toolroot kernel qemu vpmu image: the single steps of the above"
	@echo
	@echo "KERNEL=debug        test, stress, demo and guest on a kernel built with KASAN, lockdep and other checks"
	@echo "ACCEL=kvm           demo, test and guest on this machine's own PMU"
	@echo "MIRROR=URL          a Debian mirror (default: this machine's)"
	@echo "JOBS=N              guests and jobs at once (default: one for each CPU)"
	@echo "RPMU_CACHE=DIR      the directory for downloads and builds (default ~/.cache/rpmu)"
