# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
# Shared by the scripts here: messages, progress, the cache, the tool root. Sourced, never run.
#
# A script prints the path of its product on stdout and all messages on stderr, so that others can call it as
# root=$(scripts/toolroot).

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cache=${RPMU_CACHE:-${XDG_CACHE_HOME:-${HOME:?HOME is not set: set it, or RPMU_CACHE}/.cache}/rpmu}
cache=$(realpath -m "$cache")
export RPMU_CACHE=$cache
# One directory for each checkout, by its path.
logs=$cache/log/$(printf '%s' "$top" | sha256sum | cut -c1-12)
# shellcheck disable=SC2034 # for the scripts
jobs=${JOBS:-$(nproc)}

say() { printf '%s\n' "$*" >&2; }
note() { say "rpmu: $*"; }
die() {
	say "rpmu: error: $*"
	exit 1
}

# Kbuild and bwrap would fail later, with a worse message.
[[ ! $top$cache =~ [[:space:]:] ]] || die "the checkout ($top) and the cache ($cache) must have no blanks or colons in their paths: move the checkout, or set RPMU_CACHE"

# usage TEXT ARGS…: prints TEXT and exits if ARGS ask for help. Exits with an error if the first argument is an option that
# TEXT does not list, or if the first line of TEXT names no arguments and there is one.
usage() {
	local text=$1 first=${2:-} arg
	shift
	for arg in "$@"; do
		case $arg in
		-h | --help)
			printf '%s\n' "$text"
			exit 0
			;;
		esac
	done
	case $first in
	'') return ;;
	-*) [[ $text =~ (^|[^[:alnum:]-])${first%%=*}($|[^[:alnum:]-]) ]] || die "$first is not known: see ${0##*/} --help" ;;
	esac
	[[ ${text%%$'\n'*} =~ ^usage:\ [^\ ]+\  ]] || die "$first is not known: ${0##*/} takes no arguments"
}

# key WORDS…: a short hash of any words.
key() { printf '%s\n' "$@" | sha256sum | cut -c1-12; }

# files_key PATHS…: a short hash of the files below PATHS and their names.
files_key() {
	local list
	list=$(cd "$top" && find "$@" -type f -not -path '*/target/*' -print0 | sort -z | xargs -0 sha256sum)
	key "$list"
}

# explain LOG WHAT: exits with an error that says why WHAT failed or, if its log shows no known reason, with the log's end.
explain() {
	local log=$1 what=$2 reason
	reason=$(sed -n 's/^rpmu: error: //p' "$log" | tail -n 1)
	if [[ -n $reason ]]; then
		die "$what: $reason (log: $log)"
	fi
	disk_is_full "$log" "$what"
	if grep -qE 'Temporary failure resolving|Could not resolve|Could not connect|Connection failed|Network is unreachable|Connection timed out|No route to host' "$log"; then
		die "$what: the package mirror cannot be reached: check the network, or name another with MIRROR=… (log: $log)"
	elif grep -qE '404 +Not Found|does not have a Release file|^E: .*(is not available|was not found|Unable to locate package|has no installation candidate|select candidate version)' "$log"; then
		die "$what: the mirror does not have a requested package: it may have moved on, try 'make refresh' (log: $log)"
	fi
	tail -n 15 "$log" | sed 's/^/    /' >&2
	die "$what failed; the lines above are the end of $log"
}

# disk_is_full LOG WHAT: exits with one line if WHAT failed because a disk is full. LOG may be on that disk.
disk_is_full() {
	local log=$1 what=$2 here there=${TMPDIR:-/tmp}
	here=$(free_space "$cache")
	if grep -q 'No space left on device' "$log" || ((here == 0 || $(free_space "$there") == 0)); then
		die "$what: a disk is full: $here MiB are free below $cache, $(free_space "$there") below $there: make room, or set RPMU_CACHE or TMPDIR to a roomier place"
	fi
}

# free_space DIR: MiB free on the disk that holds DIR.
free_space() { df -Pm "$1" | awk 'NR == 2 { print $4 }'; }

# need_space MIB DIR WHAT: exits if less than MIB is free below DIR.
need_space() {
	local have
	have=$(free_space "$2")
	((have >= $1)) || die "$3 needs $1 MiB below $2, $have MiB are free: make room, or set RPMU_CACHE (for $cache) or TMPDIR (for ${TMPDIR:-/tmp}) to a roomier place"
}

# Process groups, which are killed when this script ends, and an unfinished product, which is removed.
groups=()
partial=
on_exit() {
	local group
	for group in "${groups[@]}"; do
		kill -TERM -- "-$group" 2>/dev/null || true
	done
	[[ -z $partial ]] || rm -rf "$partial"
}
trap on_exit EXIT
# Print one message, although the scripts that this one calls are interrupted, too.
if [[ -z ${RPMU_OUTERMOST:-} ]]; then
	export RPMU_OUTERMOST=$$
fi
interrupted() {
	if [[ $RPMU_OUTERMOST == "$$" ]]; then
		say ''
		note 'interrupted; nothing half-made is kept'
	fi
	exit 130
}
trap interrupted INT
trap 'exit 143' TERM

# group COMMAND…: starts COMMAND in the background in a separate process group, and sets $group to its number. `wait` for it:
# a signal interrupts `wait` at once, whereas a trap would run only after a command in the foreground has ended.
group() {
	set -m
	"$@" &
	group=$!
	set +m
	groups+=("$group")
}

# step NAME TITLE COMMAND…: runs COMMAND with its output in a log and shows its progress; exits with an error if COMMAND
# fails. Never call it in a condition: COMMAND relies on errexit.
step() {
	local name=$1 title=$2 log=$logs/$1.log start=$SECONDS shown=0 last status=0
	shift 2
	mkdir -p "$logs"
	note "$title …"
	group "$@" >"$log" 2>&1 </dev/null
	while kill -0 "$group" 2>/dev/null; do
		sleep 0.5
		if [[ -t 2 ]]; then
			last=$(tail -n 1 "$log" | tr '\r\t' '  ' | cut -c1-70)
			printf '\r\033[K  %3d s  %s' $((SECONDS - start)) "$last" >&2
		elif ((SECONDS - start >= shown + 20)); then
			shown=$((SECONDS - start))
			say "  $shown s  $(tail -n 1 "$log" | tr '\r\t' '  ' | cut -c1-100)"
		fi
	done
	[[ ! -t 2 ]] || printf '\r\033[K' >&2
	wait "$group" || status=$?
	((status == 0)) || explain "$log" "$name"
	((SECONDS - start < 5)) || note "$title: done in $((SECONDS - start)) s"
}

# cached NAME KEY MIB TITLE FUNCTION: sets $product to the directory NAME-KEY of the cache. If there is none, FUNCTION
# fills the directory $partial, which is then renamed. The file .complete marks a whole product: a directory without it may
# be an empty mount point that bwrap has made.
cached() {
	local name=$1 key=$2 mib=$3 title=$4 make=$5
	product=$cache/$name-$key
	if [[ -e $product/.complete ]]; then
		touch "$product/.complete"
		return
	fi
	mkdir -p "$cache" || die "$cache cannot be made: set RPMU_CACHE to a place that you can write"
	[[ -w $cache ]] || die "$cache cannot be written: set RPMU_CACHE to a place that you can write"
	exec 9>"$cache/$name.lock"
	if ! flock -n 9; then
		note "$name is being made by another run, waiting for it"
		flock 9
	fi
	if [[ ! -e $product/.complete ]]; then
		need_space "$mib" "$cache" "$name"
		partial=$cache/.partial-$name-$key
		rm -rf "$partial"
		mkdir "$partial"
		step "$name" "$title" "$make"
		touch "$partial/.complete"
		mv -T "$partial" "$product"
		partial=
		prune "$name"
	fi
	exec 9>&-
}

# prune NAME: removes unfinished products of killed runs, and products that have not been used for two weeks.
prune() {
	local old
	rm -rf "$cache/.partial-$1-"*
	for old in "$cache/$1-"*/.complete; do
		[[ -z $(find "$old" -mtime +14 2>/dev/null) ]] || rm -rf "${old%/*}"
	done
}

# lock NAME: waits until no other run of this checkout holds NAME, and holds it until the script ends.
lock() {
	mkdir -p "$logs"
	exec 8>"$logs/$1.lock"
	if ! flock -n 8; then
		note "another run of this checkout is at $1, waiting for it"
		flock 8
	fi
}

# followed FILE COMMAND …: runs the command with its output in FILE, for follow. To be called in the background.
followed() {
	# shellcheck disable=SC2064 # FILE as it is now
	trap ": >'$1.end'" EXIT
	"${@:2}" >"$1"
}

# follow FILE: prints the output of a followed command as it arrives, from the command's start to its end. The number of a
# process is no sign of its end: it is used again.
follow() {
	local end=''
	until [[ -e $1 ]]; do sleep 0.2; done
	while [[ -z $end ]]; do
		[[ ! -e $1.end ]] || end=1
		cat
		[[ -n $end ]] || sleep 0.2
	done <"$1"
}

# in_root ROOT COMMAND…: runs COMMAND in the tool root, as its root user, with the checkout and the cache at their own
# paths. It runs in the current directory if that is in the cache, else at the top of the checkout. Its children end with
# it. The array root_options holds more options of bwrap.
root_options=()
in_root() {
	local root=$1 options=() name dir=$top
	shift
	[[ $PWD/ != "$cache"/* ]] || dir=$PWD
	((EUID == 0)) || options+=(--unshare-user --uid 0 --gid 0)
	for name in http_proxy https_proxy no_proxy TERM VPMU_REPORT RPMU_TIMES; do
		[[ -z ${!name:-} ]] || options+=(--setenv "$name" "${!name}")
	done
	bwrap --unshare-pid --die-with-parent --clearenv \
		--setenv PATH /usr/sbin:/usr/bin:/sbin:/bin --setenv HOME /tmp --setenv LC_ALL C.UTF-8 \
		--bind "$root" / --dev /dev --proc /proc --tmpfs /tmp \
		--ro-bind-try "$(realpath -m /etc/resolv.conf)" /etc/resolv.conf \
		--bind "$cache" "$cache" --bind "$top" "$top" --chdir "$dir" \
		"${options[@]}" "${root_options[@]}" -- "$@"
}

# host_packages COMMAND=PACKAGE…: installs the packages of missing commands on the host if root runs it, and otherwise exits
# with an error that names them.
host_packages() {
	local pair missing=()
	for pair in "$@"; do
		command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
	done
	((${#missing[@]})) || return 0
	if ((EUID == 0)) && command -v apt-get >/dev/null; then
		step host-packages "installing ${missing[*]} on this machine" install_host_packages "${missing[@]}"
	else
		die "missing on this machine: ${missing[*]}; type: sudo apt-get install ${missing[*]}"
	fi
}

install_host_packages() {
	apt-get update
	DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

# cargo_in_root ROOT CRATE COMMAND…: runs cargo in the tool root on a crate of the checkout, with Debian's packaged crates
# instead of the network, and its target directory in the cache. Hides the crate's Cargo.lock, so that cargo makes a
# temporary one: Debian's crates have other versions than the file, and lack the checksums of crates.io.
cargo_in_root() {
	local root=$1 crate=$2 debian='/usr/share/cargo/registry' file
	shift 2
	local root_options=("${root_options[@]}" --setenv CARGO_HOME /tmp/cargo
		--setenv CARGO_TARGET_DIR "$cache/host-$(key "$top")/${crate##*/}" --tmpfs "$top/$crate")
	for file in "$top/$crate"/*; do
		[[ ${file##*/} == Cargo.lock ]] || root_options+=(--bind "$file" "$file")
	done
	# The options follow the subcommand: cargo does not pass earlier ones on to clippy.
	in_root "$root" cargo "$1" --offline --config "source.crates-io.replace-with='debian'" \
		--config "source.debian.directory='$debian'" --manifest-path "$crate/Cargo.toml" "${@:2}"
}

# check_accel: exits if ACCEL cannot be used on this machine; kvm requires a PMU for guests, and QEMU on the host
# (host_packages).
check_accel() {
	local instead='leave ACCEL out for the emulated PMU'
	case ${ACCEL:-tcg} in
	tcg) return ;;
	kvm) ;;
	*) die "ACCEL=$ACCEL is not known: tcg (the emulated PMU) or kvm" ;;
	esac
	[[ -e /dev/kvm ]] || die "ACCEL=kvm: this machine has no /dev/kvm (no VMX, or kvm_intel is not loaded): $instead"
	[[ -r /dev/kvm && -w /dev/kvm ]] || die "ACCEL=kvm: $(id -un) may not open /dev/kvm: join the group kvm, or run as root"
	grep -qwE 'vmx|svm' /proc/cpuinfo || die "ACCEL=kvm: this machine's CPU has no virtualization (VMX): $instead"
	[[ -e /sys/bus/event_source/devices/cpu ]] || die "ACCEL=kvm: this machine has no PMU that a guest could use: $instead"
	[[ $(cat /sys/module/kvm/parameters/enable_pmu 2>/dev/null || echo Y) == Y ]] ||
		die "ACCEL=kvm: kvm gives guests no PMU here (its parameter enable_pmu is off): $instead"
	host_packages qemu-system-x86_64=qemu-system-x86
}
