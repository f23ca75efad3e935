#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# Tests rpmu on an emulated Alder Lake. TAP on stdout.
. "$(dirname "$0")/../../scripts/lib.sh"
. "$(dirname "$0")/../../scripts/tap.sh"
. "$(dirname "$0")/../vpmu/ask.sh"
usage "usage: selftests/hybrid/hybrid.sh [PART …]

Boots the stock kernel on an Alder Lake with two big cores, CPUs 0 and 1, and two small ones, and runs these PARTs, by default
all. The first four share a guest.

  takeover   rpmu takes over both PMUs, with the same types, CPUs and files in sysfs, counts on all of their counters, and
             gives both back
  samples    precise samples and call stacks on each PMU
  offline    all small cores go offline and online again; rpmu refuses to load meanwhile
  failures   each step of the take-over fails in turn: the built-in driver keeps both PMUs, as they were
  late       a guest whose small cores come online after the boot, one before rpmu is loaded and one after; suspend
  big        a guest with big cores only, and without PEBS, where rpmu takes over the one PMU that has CPUs" "${1:-}"

parts=" ${*:-takeover samples offline failures late big} "
for part in $parts; do
	[[ ' takeover samples offline failures late big ' == *" $part "* ]] || die "hybrid.sh has no part called $part: see --help"
done

# wants PART…: succeeds if one of them is to run.
wants() {
	local part
	for part; do
		[[ $parts != *" $part "* ]] || return 0
	done
	return 1
}

# The commands for the guests. The quotes inside words keep the echoed commands from looking like output.
# shellcheck disable=SC2016
common='. ./guest-lib.sh
watchdog 0
online() { for cpu in 2 3; do echo $1 >/sys/devices/system/cpu/cpu$cpu/online; done; }
# The built-in driver ends some texts with NULs, and not with a newline. read ignores NULs, and needs no process.
files() {
	cd /sys/bus/event_source/devices
	for file in $(find cpu_core/ cpu_atom/ -type f | grep -v -e /uevent -e /power/ -e /rpmu/ | sort); do
		text=
		read -r text <$file || text="$text (no newline)"
		echo "$file: $text"
	done
	cd /opt/rpmu
}
pmus() { for pmu in cpu_core cpu_atom; do echo "$1: $pmu type $(cat /sys/devices/$pmu/type) cpus $(cat /sys/devices/$pmu/cpus)"; done; }
# changes WORD: prints which files have changed since the file /tmp/before was written.
changes() { files >/tmp/after; diff /tmp/before /tmp/after | sed "s/^/$1 diff: /"; }
events() { for i in $(seq $2); do echo -n "${3:-}$1/event=0xc4/u"; set -- $1 $2 ,; done; }
counts() {
	for cpu in $2; do
		taskset -c $cpu perf stat -x, -e $(events cpu_core 8),$(events cpu_atom 6) ./exact_loop 2>&1 | sed "s/^/$1 $cpu: /"
	done
}
# says: prints what rpmu has logged since log_mark, without the lines of the kernel about out-of-tree and unsigned modules.
says() { log_since | sed -n "s/^\[[^]]*\] rpmu: //p" | grep -v -e "out-of-tree module" -e "module verification failed"; }
'
# shellcheck disable=SC2016
end='log_trouble all | sed "s/^/trou""ble: /"
exit
'
# shellcheck disable=SC2016,SC2034
takeover='log_mark takeover
load && echo "loa""ded"
says | sed "s/^/say""s: /"
pmus aft""er; changes lo""aded
sed "s/^/us""ers: /" /sys/kernel/debug/rpmu/users
counts on "1 3"
unload && echo "unloa""ded"
pmus ba""ck; changes ba""ck
counts bui""ltin "0 2"
'
# shellcheck disable=SC2016,SC2034
samples='load
for cpu in 1 3; do
	[ $cpu = 1 ] && pmu=cpu_core || pmu=cpu_atom
	perf record -q -e $pmu/event=0xc4/upp -c 99999 -o /tmp/precise taskset -c $cpu ./exact_loop
	perf script -i /tmp/precise -F ip | sort | uniq -c | sed "s/^ */prec""ise $pmu: /"
	perf record -q -e $pmu/event=0xc4/u --call-graph lbr -c 99999 -o /tmp/stacks taskset -c $cpu ./exact_loop
	perf script -i /tmp/stacks -F ip | grep . | sort -u | wc -l | sed "s/^/sta""ck $pmu: /"
done
unload
'
# shellcheck disable=SC2016,SC2034
offline='online 0
log_mark offline
load && echo "off""line: loaded"
says | sed "s/^/off""line: /"
online 1
load
for i in 1 2 3; do
	online 0
	counts alo""ne 1
	online 1
done
counts aga""in "2 3"
unload
for i in 1 2 3 4 5; do load && unload && echo "load""ed and unloaded"; done
'
# shellcheck disable=SC2016,SC2034
failures='# step NAME: tries to load rpmu, and prints what it has logged, and which files have changed after that.
step() {
	log_mark "$1"
	load && { echo "st""ep $1: loaded"; unload; }
	says | sed "s/^/st""ep $1: /"
	changes "st""ep $1"
}
# hold NAME OPTIONS: the same while perf stat counts.
hold() {
	perf stat $2 sleep 1000 >/dev/null 2>&1 &
	sleep 1
	step $1
	kill $!
	wait $!
}
# beside NAME MODULE PARAMETERS: the same beside the module.
beside() {
	./module load ./$2.ko "$3"
	step $1
	./module unload $2
}
hold atom "-C 3 -e cpu_atom/event=0xc4/"
hold both "-a -e cpu_core/event=0xc4/,cpu_atom/event=0xc4/"
beside counter taken what=counter
beside core-kept failing "what=unregister name=cpu_core"
beside atom-kept failing "what=unregister name=cpu_atom"
beside stuck wrong what=4
beside state taken what=state
beside atom-missing failing "what=register name=cpu_atom"
beside core-missing failing "what=register name=cpu_core"
load && unload && echo "st""ep end: loaded and unloaded"
changes "st""ep end"
counts fai""led "0 3"
beside type failing "what=type name=cpu_atom"
load && pmus ty""pe
unload; pmus ty""pe
'
# shellcheck disable=SC2016
late='load && echo "ear""ly: loaded"
echo 1 >/sys/devices/system/cpu/cpu2/online
load && echo "loa""ded"
pmus on""e
echo 1 >/sys/devices/system/cpu/cpu3/online
pmus tw""o
counts on "0 2 3"
alarm=/sys/class/rtc/rtc0/wakealarm
echo deep >/sys/power/mem_sleep
perf stat -x, -o /tmp/asleep -C 0 -e cpu_core/event=0xc4/u sh -c "taskset -c 0 ./exact_loop; echo 0 >$alarm; echo +3 >$alarm; echo mem >/sys/power/state; taskset -c 0 ./exact_loop"
sed -n "s/^[0-9]/asle""ep: &/p" /tmp/asleep
dmesg | sed -n "s/^\[[^]]*\] \(PM: suspend exit\)/asle""ep: \1/p"
pmus awa""ke
counts slept "1 2 3"
unload && echo "unloa""ded"
'
# shellcheck disable=SC2016
big='files >/tmp/before
echo 0 >/sys/devices/system/cpu/cpu3/online
load && echo "loa""ded"
echo 1 >/sys/devices/system/cpu/cpu3/online
pmus aft""er; changes lo""aded
counts on "0 3"
unload && echo "unloa""ded"
pmus ba""ck
'

# boot NAME STEPPING COMMANDS OPTION…: boots a guest and writes its output to the file $answer.
boot() {
	answer=$logs/guest-$1.answer
	ask "$answer" "$common$3$end" --cpu "SapphireRapids,model=151,stepping=$2" --smp 4,1 --name "$1" "${@:4}" || true
}

# shellcheck disable=SC2317 # check calls these
because() {
	grep -E '^(after|alone|again|asleep|awake|back|before|builtin|early|failed|loaded|offline|on|one|precise|says|slept|stack|step|trouble|two|type|unloaded|users)' \
		"$answer" | sed 's/^/# /'
}
# lines NUMBER PATTERN: succeeds if this many lines match.
# shellcheck disable=SC2317
lines() { (($(grep -c -- "$2" "$answer") == $1)); }
# count WORD CPU PMU COUNTERS: succeeds if events on this CPU have counted exactly, and others have not.
# shellcheck disable=SC2317
count() {
	lines "$4" "^$1 $2: 4999999,,$3/event=0xc4/u,.*,100.00," && lines "$4" "^$1 $2: [0-9]"
}
# types WORD TYPE NUMBER: succeeds if the PMUs have their CPUs, and cpu_atom this type, as often.
# shellcheck disable=SC2317
types() {
	lines "$3" "^$1: cpu_core type 4 cpus 0-1$" && lines "$3" "^$1: cpu_atom type $2 cpus 2-3$"
}
# fails STEP PATTERN…: succeeds if rpmu has logged exactly these lines, in this order.
# shellcheck disable=SC2317
fails() {
	local said
	mapfile -t said < <(sed -n "s/^step $1: //p" "$answer")
	shift
	((${#said[@]} == $#)) || return 1
	local i=0
	for pattern; do
		[[ ${said[i]} =~ $pattern ]] || return 1
		i=$((i + 1))
	done
}
# shellcheck disable=SC2317
untroubled() { lines 0 '^trouble: '; }
# In the order of the built-in driver's registrations.
given_back=('^cpu_atom: the built-in driver has its PMU back$' '^cpu_core: the built-in driver has its PMU back$')

echo 'TAP version 13'
if wants takeover samples offline failures; then
	name=hybrid commands='files >/tmp/before; pmus bef""ore
'
	for part in takeover samples offline failures; do
		! wants "$part" || commands+=${!part}
	done
	boot "$name" 2 "$commands" --icount --pebs
	check "$name: the built-in driver's types and CPUs" types before 10 1
fi
if wants takeover; then
	check "$name: loads" lines 1 '^loaded$'
	check "$name: names both PMUs" lines 6 '^says: cpu_\(core\|atom\): '
	check "$name: the same types and CPUs" types after 10 1
	check "$name: the same files" lines 0 '^loaded diff: '
	check "$name: the users have a part for each PMU" lines 2 '^users: # cpu_\(core\|atom\)$'
	check "$name: big cores count on 8 counters" count on 1 cpu_core 8
	check "$name: small cores count on 6 counters" count on 3 cpu_atom 6
	check "$name: unloads" lines 1 '^unloaded$'
	check "$name: types and CPUs are given back" types back 10 1
	check "$name: the files are given back" lines 0 '^back diff: '
	check "$name: the built-in driver counts on big cores" count builtin 0 cpu_core 8
	check "$name: the built-in driver counts on small cores" count builtin 2 cpu_atom 6
fi
if wants samples; then
	for pmu in cpu_core cpu_atom; do
		check "$name: $pmu samples precisely" lines 1 "^precise $pmu: 50 "
		# The loop alone has two addresses.
		check "$name: $pmu has call stacks" lines 1 "^stack $pmu: \\([3-9]\\|[1-9][0-9]\\)$"
	done
fi
if wants offline; then
	check "$name: refuses with one message while a type is offline" lines 1 '^offline: '
	check "$name: the message" lines 1 '^offline: a type of core has no CPU online'
	check "$name: big cores count while small ones are offline" count alone 1 cpu_core 24
	for cpu in 2 3; do
		check "$name: CPU $cpu counts after that" count again "$cpu" cpu_atom 6
	done
	check "$name: loads and unloads again" lines 5 '^loaded and unloaded$'
fi
if wants failures; then
	in_use="the built-in driver's PMU is in use:"
	check "$name: cpu_atom is in use" fails atom "$in_use events of user space: 1, 1 of perf\[[0-9]+\] "
	check "$name: both are in use" fails both "$in_use events of user space: 4, 4 of perf\[[0-9]+\] "
	check "$name: a counter is reserved" fails counter 'MSR 0xc4 is reserved by another module' "${given_back[@]}"
	check "$name: cpu_core cannot be unregistered" fails core-kept "$in_use nothing has changed"
	check "$name: cpu_atom cannot be unregistered" fails atom-kept "$in_use nothing has changed"
	check "$name: a counter is stuck" fails stuck 'does not hold what is written to it' "${given_back[@]}"
	check "$name: the hotplug state is taken" fails state 'CPU hotplug state [0-9]+ is taken' "${given_back[@]}"
	check "$name: cpu_atom cannot be registered" fails atom-missing "${given_back[@]}"
	check "$name: cpu_core cannot be registered" fails core-missing "${given_back[@]}"
	check "$name: then loads and unloads" lines 1 '^step end: loaded and unloaded$'
	check "$name: nothing has changed" lines 0 '^step [a-su-z].* diff: '
	check "$name: the built-in driver then counts on big cores" count failed 0 cpu_core 8
	check "$name: the built-in driver then counts on small cores" count failed 3 cpu_atom 6
	check "$name: says that cpu_atom's type is taken" lines 1 \
		'^step type: another PMU has taken the event type 10 of "cpu_atom"; load rpmu again$'
	check "$name: says that cpu_atom has another type" lines 1 \
		"^step type: the built-in driver's PMU \"cpu_atom\" now has the event type 1000: another PMU has its type 10$"
	check "$name: loads and unloads with that type" types type 1000 2
fi
! wants takeover samples offline failures || check "$name: no warning" untroubled
if wants late; then
	name=hybrid-late
	boot "$name" 2 "$late" --pebs --append maxcpus=2
	check "$name: refuses before there is a small core" lines 0 '^early: loaded$'
	check "$name: loads when there is one" lines 1 '^loaded$'
	check "$name: cpu_atom has that CPU" lines 1 '^one: cpu_atom type 10 cpus 2$'
	check "$name: cpu_atom has the CPU that comes later" types two 10 1
	check "$name: big cores count" count on 0 cpu_core 8
	for cpu in 2 3; do
		check "$name: CPU $cpu counts" count on "$cpu" cpu_atom 6
	done
	check "$name: sleeps" lines 1 '^asleep: PM: suspend exit$'
	check "$name: an event of the boot CPU counts on" lines 1 '^asleep: [1-9][0-9]\{7\},,cpu_core/event=0xc4/u,'
	check "$name: the same CPUs after that" types awake 10 1
	check "$name: big cores count after that" count slept 1 cpu_core 8
	for cpu in 2 3; do
		check "$name: CPU $cpu counts after that" count slept "$cpu" cpu_atom 6
	done
	check "$name: unloads" lines 1 '^unloaded$'
	check "$name: no warning" untroubled
fi
if wants big; then
	name=hybrid-big
	boot "$name" 5 "$big" --icount
	check "$name: loads while a CPU is offline" lines 1 '^loaded$'
	check "$name: cpu_core has all CPUs" lines 1 '^after: cpu_core type 4 cpus 0-3$'
	check "$name: the same files" lines 0 '^loaded diff: '
	for cpu in 0 3; do
		# On such a die, perf shows the counts of cpu_core under cpu_atom, too, with both drivers.
		check "$name: CPU $cpu counts on 8 counters" lines 8 "^on $cpu: 4999999,,cpu_core/event=0xc4/u,.*,100.00,"
	done
	check "$name: unloads" lines 1 '^unloaded$'
	check "$name: the PMU is given back" lines 1 '^back: cpu_core type 4 cpus 0-3$'
	check "$name: no warning" untroubled
fi
echo "1..$nr"
exit "$failed"
