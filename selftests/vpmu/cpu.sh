# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# The CPU models of the emulated PMU. Sourced by scripts/guest and by vpmu-run.

# vpmu_cpu MODEL: prints QEMU's -cpu for MODEL, without the PMU.
vpmu_cpu() {
	local cpu=$1 lacking
	case $cpu in
	Icelake-Server) cpu=$cpu,model=106 ;; # QEMU's model 134 is a Tremont
	# A microcode without the bug that the built-in driver warns about.
	SandyBridge) cpu=$cpu,stepping=7,ucode-rev=0x2800000000 ;;
	SandyBridge,model=45) cpu=$cpu,stepping=7,ucode-rev=0x70c00000000 ;;
	esac
	# Features of these models that TCG lacks; QEMU would warn of each, for each CPU.
	lacking=(pcid tsc-deadline hle invpcid rtm xsavec xsaves xfd
		avx512{f,dq,cd,bw,vl,ifma,vbmi,vbmi2,vnni,bitalg,-vpopcntdq,-fp16,-bf16} avx-vnni gfni vpclmulqdq
		bus-lock-detect serialize tsx-ldtrk amx-{bf16,tile,int8,fp16} prefetchiti
		avx-ifma avx-vnni-int8 avx-ne-convert mcdt-no spec-ctrl ssbd arch-capabilities
		cldemote movdiri movdir64b core-capability split-lock-detect mpx)
	case $cpu in
	EPYC* | phenom* | Opteron*)
		# The PMU itself reports perfctr-core.
		lacking+=(fxsr-opt misalignsse osvw topoext perfctr-core clzero ibpb ibrs amd-stibp stibp-always-on amd-ssbd
			amd-psfd nrip-save vnmi no-nested-data-bp lfence-always-serializing null-sel-clr-base auto-ibrs)
		;;
	esac
	echo "$cpu$(printf ',-%s' "${lacking[@]}")"
}

# vpmu_words MODEL: prints the words that the kernel's command line needs on MODEL. Without them, the kernel would warn
# of mitigations for AMD's CPUs that need features missing in TCG.
vpmu_words() {
	[[ ! $1 =~ ^(EPYC|phenom|Opteron) ]] || echo mitigations=off
}
