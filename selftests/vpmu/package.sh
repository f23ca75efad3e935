#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Tests the package of the emulated PMU. Prints TAP.
# shellcheck disable=SC2317 # functions are called by their names
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/../../scripts/tap.sh"
usage "usage: selftests/vpmu/package.sh

Builds the package, unpacks it into a new directory and runs commands with it on this machine, outside the tool root.
Checks their output, status and counts." "${1:-}"

root=$("$top/scripts/toolroot")
kernel=$("$top/scripts/kernel")
"$top/scripts/image" >/dev/null
package=$("$top/scripts/vpmu-package")
work=$(mktemp -d "${TMPDIR:-/tmp}/vpmu package.XXXXXX")
trap 'rm -rf "$work"' EXIT
tar -xJ --strip-components=1 -C "$work" -f "$package"
said=$work/said

because() { tail -n 20 "$said" | sed 's/^/# /'; }

# ends STATUS WORDS ARGUMENT…: runs vpmu-run; succeeds if it ends with that status, and a line of its output matches WORDS,
# an extended regular expression.
ends() {
	local want=$1 words=$2 status=0
	shift 2
	env -i PATH="$PATH" "$work/vpmu-run" --kernel "$kernel/vmlinuz" --log "$work/log" "$@" >"$said" 2>&1 </dev/null || status=$?
	echo "status $status" >>"$said"
	[[ $status == "$want" ]] && grep -qE -e "$words" "$said"
}

# The guest uses the tool root's perf, with its libraries.
tools=$work/tools
mkdir -p "$tools"
selftests=$cache/selftests-$(key "$top")-$(key "$kernel")/root/opt/rpmu
# shellcheck disable=SC2016
in_root "$root" sh -c 'for file in /usr/bin/perf $(ldd /usr/bin/perf | grep -oE "/[^ :()]+"); do echo "$file"; done' >"$work/list"
while read -r file; do
	case $file in /usr/*) path=$file ;; *) path=/usr$file ;; esac
	mkdir -p "$tools${path%/*}"
	cp -L "$root$file" "$tools$path"
done <"$work/list"
cp "$selftests/exact_loop" "$tools/usr/bin"

counts() {
	ends 0 '^ *10000000 +instructions:u' "$@" --root "$tools" -- perf stat -e instructions:u,branches:u exact_loop &&
		grep -qE '^ *4999999 +branches:u' "$said"
}

# The help lists the models of scripts/guest.
all_models() {
	local model
	"$work/vpmu-run" --help >"$said"
	for model in $("$top/scripts/guest" --help | sed -n '/--cpu MODEL/,/^  --smp/p' |
		grep -oE '(Nehalem|Westmere|SandyBridge|IvyBridge|Haswell|Broadwell|Skylake|Icelake|Sapphire|Granite|Denverton|Snowridge|SierraForest|phenom|Opteron|EPYC)([A-Za-z0-9_=,-]*[A-Za-z0-9])?'); do
		grep -qE "(^|[ (])$model([ ,)]|$)" "$said" || {
			echo "no $model" >>"$said"
			return 1
		}
	done
}

# A copy of the package's documents below the cache, which has the same path in the tool root.
copy=$cache/vpmu-documents-$(key "$top")
trap 'rm -rf "$work" "$copy"' EXIT
rm -rf "$copy"
mkdir -p "$copy"
(cd "$work" && find . \( -name '*.md' -o -name COPYING \) -exec cp --parents -t "$copy" {} +)

echo 'TAP version 13'
check package.status ends 3 '^a  b$' -- sh -c 'echo "a  b"; exit 3'
check package.counts counts --cpu Skylake-Client --smp 1,2
check package.counts_on_amd counts --cpu EPYC-Rome --parallel
check package.no_pmu ends 0 'no pmu' --pmu off -- sh -c '[ ! -e /sys/bus/event_source/devices/cpu ] && echo no pmu'
check package.program ends 0 '^hello$' --program /usr/bin/printf --file "$work/COPYING:/tmp2/it" -- \
	sh -c 'grep -q GENERAL /tmp2/it && /usr/bin/printf "hello\n"'
# The guest mounts file systems on /tmp, /run and /dev/shm, but must not hide files below them.
mkdir "$work/nc"
cp /usr/bin/printf "$work/nc/a"
# shellcheck disable=SC2016 # the guest's shell expands $1
check package.programs_below_mounts ends 0 '^a in /tmp, b in /run, c in /dev/shm$' --program "$work/nc/a" \
	--file /usr/bin/printf:/run/nc/b --file /usr/bin/printf:/dev/shm/nc/c -- \
	sh -c '"$1/a" "a in /tmp, " && /run/nc/b "b in /run, " && /dev/shm/nc/c "c in /dev/shm\n"' sh "$work/nc"
check package.empty_mounts ends 0 '^tmpfs tmpfs tmpfs$' -- \
	sh -c 'stat -fc %T /tmp /run /dev/shm | xargs && touch /tmp/a /run/a /dev/shm/a'
check package.no_file_in_proc ends 125 'name another path' --file /usr/bin/printf:/proc/printf -- true
check package.all_models all_models
check package.documents in_root "$root" "$top/scripts/check-links" --package "$copy"
check package.timeout ends 124 'no end after 10 s' --timeout 10 -- sh -c 'while :; do :; done'
check package.panic ends 125 'the guest ended before' -- sh -c 'echo c >/proc/sysrq-trigger'
check package.wrong_argument ends 125 'no kernel that can be read' --kernel /none -- true
echo "1..$nr"
exit "$failed"
