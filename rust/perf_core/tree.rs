// SPDX-License-Identifier: GPL-2.0

//! The tree of a context's flexible groups: `perf_event_groups` in `kernel/events/core.c`.

use crate::bindings;
use core::{
    cmp::Ordering,
    ptr, //
};
use kernel::cpu::CpuId;

/// Returns the id of the control group that an event is for. The tree is sorted by it.
///
/// # Safety
///
/// `event` must be valid, and in a context that is locked.
pub(super) unsafe fn cgroup_of(event: *mut bindings::perf_event) -> Option<u64> {
    #[cfg(CONFIG_CGROUP_PERF)]
    // SAFETY: The event holds a reference to its control group as long as it is in a context
    // (`perf_detach_cgroup()` comes later).
    return unsafe {
        let cgroup = (*event).cgrp;
        (!cgroup.is_null()).then(|| (*(*(*cgroup).css.cgroup).kn).id)
    };
    #[cfg(not(CONFIG_CGROUP_PERF))]
    return {
        let _ = event;
        None
    };
}

/// Returns whether the event is for a control group.
///
/// # Safety
///
/// `event` must be valid.
pub(super) unsafe fn is_of_cgroup(event: *mut bindings::perf_event) -> bool {
    #[cfg(CONFIG_CGROUP_PERF)]
    // SAFETY: By this function's requirements; the pointer does not change once the event is open.
    return unsafe { !(*event).cgrp.is_null() };
    #[cfg(not(CONFIG_CGROUP_PERF))]
    return {
        let _ = event;
        false
    };
}

/// A part of the tree: the groups for one CPU (-1 for any), one PMU and one control group, or none.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Subtree {
    pub(super) cpu: i32,
    pub(super) pmu: *mut bindings::pmu,
    pub(super) cgroup: Option<u64>,
}

impl Subtree {
    /// # Safety
    ///
    /// `leader` must be valid, and in a context that is locked.
    pub(super) unsafe fn of(leader: *mut bindings::perf_event) -> Self {
        // SAFETY: By this function's requirements.
        unsafe {
            Self {
                cpu: (*leader).cpu,
                pmu: (*(*leader).pmu_ctx).pmu,
                cgroup: cgroup_of(leader),
            }
        }
    }

    /// Compares a place in this subtree with the leader of a group, as `perf_event_groups_cmp()`.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of).
    unsafe fn compare(&self, place: u64, leader: *mut bindings::perf_event) -> Ordering {
        // SAFETY: By this function's requirements.
        unsafe {
            let cpu = self.cpu.cmp(&(*leader).cpu);
            let pmu = || self.pmu.addr().cmp(&(*(*leader).pmu_ctx).pmu.addr());
            // As there, events without a control group come first.
            let cgroup = || self.cgroup.cmp(&cgroup_of(leader));
            let place = || place.cmp(&(*leader).group_index);
            cpu.then_with(pmu).then_with(cgroup).then_with(place)
        }
    }
}

/// # Safety
///
/// `node` must be the `group_node` of an event.
unsafe fn leader_at(node: *mut bindings::rb_node) -> *mut bindings::perf_event {
    // SAFETY: By this function's requirements.
    unsafe { kernel::container_of!(node, bindings::perf_event, group_node) }
}

/// Moves a group in its tree to `place`, behind all groups of its subtree whose place is not
/// greater.
///
/// As `perf_event_groups_delete()` and `perf_event_groups_insert()`, except that the latter always
/// moves a group to the end.
///
/// # Safety
///
/// `leader` must lead a flexible group in a context that is locked and whose `rotate_disable` is
/// not set. The perf core must not be iterating over the context's tree.
pub(super) unsafe fn move_to(leader: *mut bindings::perf_event, place: u64) {
    // SAFETY: By this function's requirements, the leader is in the tree, and nothing else uses the
    // tree. It is sorted by `perf_event_groups_cmp()`, before and after.
    unsafe {
        let groups = &raw mut (*(*leader).ctx).flexible_groups;
        let tree = &raw mut (*groups).tree;
        let node = &raw mut (*leader).group_node;
        bindings::rb_erase(node, tree);
        (*leader).group_index = place;
        if (*groups).index < place {
            (*groups).index = place;
        }
        let subtree = Subtree::of(leader);
        let mut parent: *mut bindings::rb_node = ptr::null_mut();
        let mut link = &raw mut (*tree).rb_node;
        while !(*link).is_null() {
            parent = *link;
            link = match subtree.compare(place, leader_at(parent)) {
                Ordering::Less => &raw mut (*parent).rb_left,
                _ => &raw mut (*parent).rb_right,
            };
        }
        // `rb_link_node()`.
        (*node).__rb_parent_color = parent.expose_provenance();
        (*node).rb_left = ptr::null_mut();
        (*node).rb_right = ptr::null_mut();
        *link = node;
        bindings::rb_insert_color(node, tree);
    }
}

/// Returns the next leader in the subtree, or null.
///
/// # Safety
///
/// `leader` must be in the tree of a context that is locked.
pub(super) unsafe fn following(leader: *mut bindings::perf_event) -> *mut bindings::perf_event {
    // SAFETY: By this function's requirements the leader is in the tree, and so is the next node.
    unsafe {
        let node = bindings::rb_next(&raw const (*leader).group_node);
        if node.is_null() {
            return ptr::null_mut();
        }
        let next = leader_at(node);
        let same = (*next).cpu == (*leader).cpu
            && ptr::eq((*next).pmu_ctx, (*leader).pmu_ctx)
            && is_of_same_cgroup(next, leader);
        if same {
            next
        } else {
            ptr::null_mut()
        }
    }
}

/// # Safety
///
/// Both must be valid.
unsafe fn is_of_same_cgroup(a: *mut bindings::perf_event, b: *mut bindings::perf_event) -> bool {
    #[cfg(CONFIG_CGROUP_PERF)]
    // SAFETY: By this function's requirements; each control group has one `struct perf_cgroup`.
    return unsafe { ptr::eq((*a).cgrp, (*b).cgrp) };
    #[cfg(not(CONFIG_CGROUP_PERF))]
    return {
        let _ = (a, b);
        true
    };
}

/// Returns the first leader of a subtree from `place` on, or null.
///
/// # Safety
///
/// `context` must be valid and locked.
pub(super) unsafe fn first_from(
    context: *mut bindings::perf_event_context,
    subtree: Subtree,
    place: u64,
) -> *mut bindings::perf_event {
    let mut first = ptr::null_mut();
    // SAFETY: By this function's requirements.
    unsafe {
        let mut node = (*context).flexible_groups.tree.rb_node;
        while !node.is_null() {
            let leader = leader_at(node);
            if subtree.compare(place, leader) == Ordering::Greater {
                node = (*node).rb_right;
            } else {
                first = leader;
                node = (*node).rb_left;
            }
        }
        if !first.is_null() && Subtree::of(first) != subtree {
            first = ptr::null_mut();
        }
    }
    first
}

/// Returns the last leader of a subtree, or null.
///
/// # Safety
///
/// `context` must be valid and locked.
pub(super) unsafe fn last_of(
    context: *mut bindings::perf_event_context,
    subtree: Subtree,
) -> *mut bindings::perf_event {
    let mut last = ptr::null_mut();
    // SAFETY: By this function's requirements.
    unsafe {
        let mut node = (*context).flexible_groups.tree.rb_node;
        while !node.is_null() {
            let leader = leader_at(node);
            if subtree.compare(u64::MAX, leader) == Ordering::Less {
                node = (*node).rb_left;
            } else {
                last = leader;
                node = (*node).rb_right;
            }
        }
        if !last.is_null() && Subtree::of(last) != subtree {
            last = ptr::null_mut();
        }
    }
    last
}

/// Calls `f` for each subtree whose groups the perf core offers on this CPU.
///
/// # Safety
///
/// `context` must be valid and locked, and belong to this CPU or its task.
pub(super) unsafe fn for_each_subtree(
    context: *mut bindings::perf_event_context,
    pmu: *mut bindings::pmu,
    mut f: impl FnMut(Subtree),
) {
    // CAST: a CPU's number is an `int`.
    let here = CpuId::current().as_u32() as i32;
    let mut on = |cpu, cgroup| f(Subtree { cpu, pmu, cgroup });
    // SAFETY: By this function's requirements.
    unsafe {
        if !(*context).task.is_null() {
            on(-1, None);
            on(here, None);
        } else {
            on(here, None);
            for_each_current_cgroup(context, |cgroup| on(here, Some(cgroup)));
        }
    }
}

/// Calls `f` with the ids of the control groups of the task on this CPU: first its own, then the
/// ancestors from the inside outwards.
///
/// # Safety
///
/// `context` must be this CPU's own, and locked.
pub(super) unsafe fn for_each_current_cgroup(
    context: *mut bindings::perf_event_context,
    f: impl FnMut(u64),
) {
    #[cfg(CONFIG_CGROUP_PERF)]
    // SAFETY: By this function's requirements. A CPU's own context is part of its
    // `perf_cpu_context`, whose pointer to a control group the context's lock guards. The control
    // group and its parents live as long as it has events or tasks.
    unsafe {
        let mut f = f;
        let cpu = kernel::container_of!(context, bindings::perf_cpu_context, ctx);
        let cgroup = (*cpu).cgrp;
        if cgroup.is_null() {
            return;
        }
        let mut css = &raw mut (*cgroup).css;
        while !css.is_null() {
            f((*(*(*css).cgroup).kn).id);
            css = (*css).parent;
        }
    }
    #[cfg(not(CONFIG_CGROUP_PERF))]
    let _ = (context, f);
}
