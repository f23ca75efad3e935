#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Tests both drivers on the PMUs that hypervisors give their guests. TAP on stdout.
. "$(dirname "$0")/../../scripts/lib.sh"
usage "usage: selftests/vpmu/profiles.sh [PROFILE[/CPU] …]

Boots a guest for each profile of the emulated PMU (README.md describes them) on several CPU models, or for the named ones
only, such as kvm or kvm/Haswell. In each guest, both drivers must count exactly, multiplex, sample and refuse the same
events; rpmu must take the PMU over and give it back." "$@"

all=exact_count,multiplex,sampling,same_errno,takeover.sh,give_back.sh
# takeover.sh reserves counter 3.
few=exact_count,multiplex,sampling,same_errno,give_back.sh
# PROFILE/CPU, cores and threads, tests
guests=(
	"kvm/Nehalem 1,1 $all"
	"kvm/Haswell 2,2 $all"
	"kvm/Skylake-Client 1,2 $all"
	"kvm/SapphireRapids 1,1 $all"
	"kvm/EPYC-Rome 2,1 $all"
	"kvm/EPYC-Genoa 2,1 $all"
	"kvm-ignore/Skylake-Client 1,1 $all"
	"kvm-ignore/EPYC-Genoa 1,1 $all"
	"kvm-old/Haswell 1,1 $all"
	"kvm-old/EPYC-Genoa 1,1 $all"
	"xen/Haswell 1,2 $all"
	"xen/Icelake-Server 1,1 $all"
	"no-capabilities/Icelake-Server 1,1 $all"
	"no-capabilities/EPYC-Rome 1,1 $all"
	"few/Haswell 1,1 $few"
	"few/Skylake-Client 1,2 $few"
)

chosen=()
for guest in "${guests[@]}"; do
	name=${guest%% *}
	(($#)) || chosen+=("$guest")
	for wanted in "$@"; do
		[[ $name != "$wanted" && ${name%/*} != "$wanted" ]] || chosen+=("$guest")
	done
done
((${#chosen[@]})) || die "no guest is called $*: see the list in $0"

for guest in "${chosen[@]}"; do
	read -r name smp tests <<<"$guest"
	"$top/scripts/guest" --profile "${name%/*}" --cpu "${name#*/}" --smp "$smp" --run test --icount --name "profile-${name/\//-}" \
		--timeout 3600 --append "rpmu.tests=$tests" </dev/null || true
done | "$top/selftests/tap-summary" --expect "${#chosen[@]}"
