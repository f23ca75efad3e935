#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Tests rpmu-check in guests. Prints TAP.
. "$(dirname "$0")/../../scripts/lib.sh"
usage "usage: selftests/rpmu-check/test.sh [--all] [--pages DIR] [--profile NAME] [MODEL …]

Runs selftests/rpmu_check.sh in a guest for each MODEL (default: Haswell), with Debian's stock kernel and the emulated PMU.
A MODEL is QEMU's CPU model, as for scripts/guest --cpu.

  --all          all checks instead of a part, on six models of both vendors if no other is named
  --pages DIR    write the reports' pages to DIR, for a look with a browser
  --profile NAME on the PMU of a hypervisor's guest, as for scripts/guest --profile; without injected errors" "$@"

args=part
pages=''
profile=''
models=()
while (($#)); do
	case $1 in
	--all) args=all ;;
	--pages)
		(($# > 1)) || die '--pages needs a directory: see --help'
		pages=$2
		mkdir -p "$pages"
		shift
		;;
	--profile)
		(($# > 1)) || die '--profile needs a name: see --help'
		profile=$2
		shift
		;;
	-*) die "$1 is not known: see --help" ;;
	*) models+=("$1") ;;
	esac
	shift
done
if ((!${#models[@]})); then
	models=(Haswell)
	[[ $args == part ]] || models+=(Nehalem Skylake-Client SapphireRapids EPYC-Rome EPYC-Genoa)
fi

root=$("$top/scripts/toolroot")
"$top/scripts/plan" >/dev/null
lock rpmu-check
work=$cache/rpmu-check-$(key "$top")
rm -rf "$work"
mkdir -p "$work/root/opt/rpmu"
cp "$top/build/rpmu-check" "$top/selftests/rpmu-check/with-errors" "$work/root/opt/rpmu"
# shellcheck disable=SC2016
in_root "$root" sh -c 'cd "$1" && find . | cpio --quiet -o -H newc -R 0:0 >"$2"' sh "$work/root" "$work/extra.cpio"

nr=0 failed=0
echo 'TAP version 13'
for model in "${models[@]}"; do
	options=(--run test --icount --cpu "$model" --smp '2,1' --timeout 7200 --initrd "$work/extra.cpio")
	name=rpmu-check-${model%%,*}
	tests=''
	if [[ -n $profile ]]; then
		options+=(--profile "$profile")
		name+=-$profile
		tests=,passes_$args,has_nothing_personal,says_what_loading_would_do
	elif [[ $model != EPYC* && $model != phenom* && $model != Opteron* ]]; then
		options+=(--pebs)
	fi
	status=0
	"$top/scripts/guest" "${options[@]}" --name "$name" --append "rpmu.tests=rpmu_check.sh rpmu.args=$args${pages:+,page}$tests" \
		</dev/null >"$work/$name.tap" || status=$?
	# One stream of all guests.
	while IFS= read -r line; do
		case $line in
		'ok '* | 'not ok '*)
			nr=$((nr + 1))
			verdict=${line%%ok *}ok
			line=${line#*ok }
			echo "$verdict $nr ${line#* }"
			[[ $verdict == ok ]] || failed=1
			;;
		'# page: '*) [[ -z $pages ]] || base64 -d <<<"${line#\# page: }" | gzip -d >"$pages/$name.html" ;;
		'TAP version'* | 1..*) ;;
		*) echo "$line" ;;
		esac
	done <"$work/$name.tap"
	if ((status)) && ! grep -q '^not ok' "$work/$name.tap"; then
		nr=$((nr + 1)) failed=1
		echo "not ok $nr $name.guest"
	fi
done
echo "1..$nr"
exit "$failed"
