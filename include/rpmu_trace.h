/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The tracepoints rpmu:*. rust/perf_core/trace.rs calls them, rust/trace.c makes
 * them; Documentation/explanations.md says what their fields mean.
 */

#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpmu

#if !defined(RPMU_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RPMU_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/types.h>

/*
 * perf trace cannot show a __string(), so a text is an array of characters. It
 * shows signed integers that are smaller than a long as unsigned, so they are
 * stored as long.
 *
 * perf and tracefs do not clear a record first. So there is no hole between
 * fields, and the padding behind a bool at the end is cleared.
 */
#define RPMU_TRACE_REASON 256

/*
 * An event is put on a counter, which is numbered as in
 * rust/logic/regs/counter.rs: only the branch records, LBR0, are behind the
 * metrics. libtraceevent, which prints for perf, needs all these parentheses.
 */
TRACE_EVENT(schedule,
	TP_PROTO(u64 id, u32 type, u64 config, s32 tid, bool pinned, u32 counter),
	TP_ARGS(id, type, config, tid, pinned, counter),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u64, config)
		__field(long, tid)
		__field(u32, type)
		__field(u32, counter)
		__field(bool, pinned)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->config = config;
		__entry->tid = tid;
		__entry->type = type;
		__entry->counter = counter;
		memset_after(__entry, 0, counter);
		__entry->pinned = pinned;
	),
	TP_printk("id=%llu type=%u config=0x%llx tid=%ld pinned=%d counter=%s%u",
		  __entry->id, __entry->type, __entry->config, __entry->tid,
		  __entry->pinned,
		  __entry->counter < 32 ? "PMC" :
		  (__entry->counter < 48 ? "FIXED" :
		  (__entry->counter < 56 ? "METRIC" : "LBR")),
		  __entry->counter < 48 ? (__entry->counter & 31) :
		  (__entry->counter & 7))
);

/* An event, or a group by its first event, finds no place. */
TRACE_EVENT(place_failed,
	TP_PROTO(u64 id, u32 type, u64 config, s32 tid, bool pinned, u32 members,
		 u64 counters, const char *reason),
	TP_ARGS(id, type, config, tid, pinned, members, counters, reason),
	TP_STRUCT__entry(
		__field(u64, id)
		__field(u64, config)
		__field(u64, counters)
		__field(long, tid)
		__field(u32, type)
		__field(u32, members)
		__array(char, reason, RPMU_TRACE_REASON)
		__field(bool, pinned)
	),
	TP_fast_assign(
		__entry->id = id;
		__entry->config = config;
		__entry->counters = counters;
		__entry->tid = tid;
		__entry->type = type;
		__entry->members = members;
		strscpy_pad(__entry->reason, reason, RPMU_TRACE_REASON);
		memset_after(__entry, 0, reason);
		__entry->pinned = pinned;
	),
	TP_printk("id=%llu type=%u config=0x%llx tid=%ld pinned=%d members=%u counters=0x%llx reason=%s",
		  __entry->id, __entry->type, __entry->config, __entry->tid,
		  __entry->pinned, __entry->members, __entry->counters,
		  __entry->reason)
);

/* perf_event_open() is refused. */
TRACE_EVENT(refused,
	TP_PROTO(u32 type, u64 config, u64 config1, s32 cpu, u32 group, s32 error,
		 const char *reason),
	TP_ARGS(type, config, config1, cpu, group, error, reason),
	TP_STRUCT__entry(
		__field(u64, config)
		__field(u64, config1)
		__field(long, cpu)
		__field(long, error)
		__field(u32, type)
		__field(u32, group)
		__array(char, reason, RPMU_TRACE_REASON)
	),
	TP_fast_assign(
		__entry->config = config;
		__entry->config1 = config1;
		__entry->cpu = cpu;
		__entry->error = error;
		__entry->type = type;
		__entry->group = group;
		strscpy_pad(__entry->reason, reason, RPMU_TRACE_REASON);
	),
	TP_printk("type=%u config=0x%llx config1=0x%llx cpu=%ld group=%u error=%ld reason=%s",
		  __entry->type, __entry->config, __entry->config1, __entry->cpu,
		  __entry->group, __entry->error, __entry->reason)
);

/* The CPU's timer has expired, and events have rotated. */
TRACE_EVENT(rotate,
	TP_PROTO(u32 counting, u32 wait),
	TP_ARGS(counting, wait),
	TP_STRUCT__entry(
		__field(u32, counting)
		__field(u32, wait)
	),
	TP_fast_assign(
		__entry->counting = counting;
		__entry->wait = wait;
	),
	TP_printk("counting=%u wait=%u", __entry->counting, __entry->wait)
);

#endif /* RPMU_TRACE_H */

/* This has to come last, and each time that the file is read. */
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE rpmu_trace
#include <trace/define_trace.h>
