// SPDX-License-Identifier: GPL-2.0

//! The C interface, `qemu/vpmu.h`: the only `unsafe` of the crate.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::env;
use std::ffi::{
    c_char,
    c_void,
    CStr,
    OsString, //
};
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{
    Arc,
    Mutex,
    OnceLock,
    PoisonError, //
};

use crate::accounting::Accounting;
use crate::branch::Branch;
use crate::model;
use crate::pmu::Pmu;
use crate::profile;
use crate::sample::{
    Memory,
    Sample, //
};
use crate::shared::{
    Core,
    Node,
    Thread, //
};
use crate::{
    retired,
    Fault, //
};

const ABI: u32 = 11;

const DONE: u32 = 0;
const FAULT: u32 = 1;
const NOT_MINE: u32 = 2;

const PMI_NONE: u32 = 0;
const PMI_DELIVER: u32 = 1;
const PMI_DELIVER_AND_MASK: u32 = 2;

/// `struct vpmu`.
pub(crate) struct Vpmu {
    apic_id: u32,
    /// Used by the CPU's thread, or while the CPU is stopped.
    pmu: UnsafeCell<Pmu>,
    accounting: Arc<Accounting>,
}

/// `struct vpmu_config`.
#[repr(C)]
pub(crate) struct Config {
    family: u32,
    model: u32,
    stepping: u32,
    apic_id: u32,
    threads_per_core: u32,
    defects: *const c_char,
    pebs: bool,
    profile: *const c_char,
}

/// `struct vpmu_sample`.
#[repr(C)]
pub(crate) struct CpuSample {
    sample: Sample,
    cpu: *mut c_void,
    read: unsafe extern "C" fn(*mut c_void, u64, *mut c_void, u32) -> bool,
    write: unsafe extern "C" fn(*mut c_void, u64, *const c_void, u32) -> bool,
}

impl Memory for &CpuSample {
    fn read(&self, address: u64, buffer: &mut [u8]) -> bool {
        let size = buffer.len() as u32;
        // SAFETY: By `vpmu.h`, the function may be called with `cpu` and a buffer of that size
        // while `sample()` runs, as this borrow of its argument does not outlive it.
        unsafe { (self.read)(self.cpu, address, buffer.as_mut_ptr().cast(), size) }
    }

    fn write(&mut self, address: u64, buffer: &[u8]) -> bool {
        let size = buffer.len() as u32;
        // SAFETY: As for `read`; the function only reads the buffer.
        unsafe { (self.write)(self.cpu, address, buffer.as_ptr().cast(), size) }
    }
}

/// `struct vpmu_ops`.
#[repr(C)]
pub(crate) struct Ops {
    abi: u32,
    create: unsafe extern "C" fn(*const Config, *mut *const c_char) -> *mut Vpmu,
    reset: unsafe extern "C" fn(*mut Vpmu),
    cpuid: unsafe extern "C" fn(*const Vpmu, u32, u32, *mut u32),
    retire: unsafe extern "C" fn(*mut Vpmu, bool, *const i64),
    counting: unsafe extern "C" fn(*const Vpmu) -> u32,
    records_branches: unsafe extern "C" fn(*const Vpmu) -> bool,
    sample_due: unsafe extern "C" fn(*const Vpmu) -> bool,
    sample: unsafe extern "C" fn(*mut Vpmu, *const CpuSample),
    branch: unsafe extern "C" fn(*mut Vpmu, *const Branch),
    sibling_must_ask: unsafe extern "C" fn(*mut Vpmu) -> bool,
    sibling_counts: unsafe extern "C" fn(*const Vpmu) -> bool,
    smm: unsafe extern "C" fn(*mut Vpmu, bool),
    counts_interrupts: unsafe extern "C" fn(*const Vpmu) -> bool,
    svm: unsafe extern "C" fn(*mut Vpmu, bool, bool),
    budget: unsafe extern "C" fn(*const Vpmu, bool) -> i64,
    pmi: unsafe extern "C" fn(*mut Vpmu, bool) -> u32,
    lvtpc_write: unsafe extern "C" fn(*mut Vpmu),
    rdmsr: unsafe extern "C" fn(*mut Vpmu, u32, *mut u64) -> u32,
    wrmsr: unsafe extern "C" fn(*mut Vpmu, u32, u64) -> u32,
    rdpmc: unsafe extern "C" fn(*mut Vpmu, u32, *mut u64) -> u32,
    report: unsafe extern "C" fn(*const Vpmu),
}

#[no_mangle]
pub(crate) static vpmu_ops: Ops = Ops {
    abi: ABI,
    create,
    reset,
    cpuid,
    retire,
    counting,
    records_branches,
    sample_due,
    sample,
    branch,
    sibling_must_ask,
    sibling_counts,
    smm,
    counts_interrupts,
    svm,
    budget,
    pmi,
    lvtpc_write,
    rdmsr,
    wrmsr,
    rdpmc,
    report,
};

/// All cores, by the part of the APIC ID that their threads share.
static CORES: Mutex<BTreeMap<u32, Arc<Core>>> = Mutex::new(BTreeMap::new());

/// The only node.
static NODE: OnceLock<Arc<Node>> = OnceLock::new();

/// Returns the PMU behind a handle.
///
/// # Safety
///
/// `vpmu` comes from [`create`], and the caller runs on this CPU's thread or the CPU is stopped
/// (`vpmu.h`). So no other reference to the [`Pmu`] exists, and none outlives the C call that made
/// it.
#[allow(clippy::mut_from_ref)]
unsafe fn pmu<'a>(vpmu: *const Vpmu) -> &'a mut Pmu {
    // SAFETY: By this function's contract the handle is valid and this is the only reference;
    // handles are never freed.
    unsafe { &mut *(*vpmu).pmu.get() }
}

unsafe extern "C" fn create(config: *const Config, error: *mut *const c_char) -> *mut Vpmu {
    // SAFETY: By `vpmu.h`, `config` points to a valid configuration.
    let config = unsafe { &*config };
    let string = |it: *const c_char| {
        // SAFETY: By `vpmu.h` it is a string unless it is NULL.
        (!it.is_null()).then(|| unsafe { CStr::from_ptr(it) })
    };
    match make(config, string(config.defects), string(config.profile)) {
        Ok(pmu) => Box::into_raw(Box::new(Vpmu {
            apic_id: config.apic_id,
            accounting: pmu.accounting(),
            pmu: UnsafeCell::new(pmu),
        })),
        Err(text) => {
            // SAFETY: By `vpmu.h`, `error` points to a variable.
            unsafe { *error = text.as_ptr() };
            std::ptr::null_mut()
        }
    }
}

fn make(
    config: &Config,
    defects: Option<&CStr>,
    profile: Option<&CStr>,
) -> Result<Pmu, &'static CStr> {
    let threads = config.threads_per_core;
    if !matches!(threads, 1 | 2) {
        return Err(c"a core must have one or two threads");
    }
    let (core, index) = (config.apic_id / threads, config.apic_id % threads);
    let found = model::find_core(config.family, config.model, config.stepping, core);
    let (model, core_type) = found.ok_or(c"no model of this CPU's PMU")?;
    let defects = match defects {
        Some(list) => model.defects.listed(&list.to_string_lossy())?,
        None => model.defects.usual(),
    };
    let mut cores = CORES.lock().unwrap_or_else(PoisonError::into_inner);
    let core = cores
        .entry(core)
        .or_insert_with(|| Core::on(NODE.get_or_init(Arc::default).clone(), threads));
    let thread = Thread::new(core.clone(), index as usize);
    let mut pmu = Pmu::on(thread, model, defects).of_type(core_type);
    if let Some(name) = profile {
        let profile = profile::find(&name.to_string_lossy())?;
        if core_type.is_some() {
            // KVM: `kvm_init_pmu_capability()`.
            return Err(c"guests of hypervisors on hybrid processors have no PMU");
        }
        pmu = pmu.with_profile(profile);
    }
    if config.pebs {
        pmu = pmu.with_pebs().ok_or(c"this CPU has no PEBS")?;
    }
    if report_path().is_some() {
        pmu.accounting().watch();
    }
    Ok(pmu)
}

unsafe extern "C" fn reset(vpmu: *mut Vpmu) {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.reset();
}

unsafe extern "C" fn cpuid(vpmu: *const Vpmu, leaf: u32, subleaf: u32, regs: *mut u32) {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped, and `regs` points
    // to four registers, which the caller does not use meanwhile.
    let (pmu, regs) = unsafe { (pmu(vpmu), &mut *regs.cast::<[u32; 4]>()) };
    *regs = pmu.cpuid(leaf, subleaf, *regs);
}

unsafe extern "C" fn retire(vpmu: *mut Vpmu, user: bool, counts: *const i64) {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped, and `counts` points
    // to an array of that many counts.
    let (pmu, reported) = unsafe { (pmu(vpmu), &*counts.cast::<[i64; retired::REPORTED]>()) };
    let mut counts = [0; retired::COUNTS];
    counts[..retired::REPORTED].copy_from_slice(reported);
    pmu.retire(user, &counts);
}

unsafe extern "C" fn counting(vpmu: *const Vpmu) -> u32 {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.counting() as u32
}

unsafe extern "C" fn records_branches(vpmu: *const Vpmu) -> bool {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.records_branches()
}

unsafe extern "C" fn sample_due(vpmu: *const Vpmu) -> bool {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.sample_due()
}

unsafe extern "C" fn sample(vpmu: *mut Vpmu, sample: *const CpuSample) {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped, and `sample` points
    // to a valid sample, which the caller does not change meanwhile.
    let (pmu, mut sample) = unsafe { (pmu(vpmu), &*sample) };
    pmu.sample(&sample.sample, &mut sample);
}

unsafe extern "C" fn branch(vpmu: *mut Vpmu, branch: *const Branch) {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped, and `branch` points
    // to a valid branch.
    unsafe { pmu(vpmu).branch(&*branch) }
}

unsafe extern "C" fn sibling_must_ask(vpmu: *mut Vpmu) -> bool {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.sibling_must_ask()
}

unsafe extern "C" fn sibling_counts(vpmu: *const Vpmu) -> bool {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.sibling_counts()
}

unsafe extern "C" fn smm(vpmu: *mut Vpmu, inside: bool) {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.smm(inside);
}

unsafe extern "C" fn counts_interrupts(vpmu: *const Vpmu) -> bool {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.counts_interrupts()
}

unsafe extern "C" fn svm(vpmu: *mut Vpmu, enabled: bool, guest: bool) {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.svm(enabled, guest);
}

unsafe extern "C" fn budget(vpmu: *const Vpmu, user: bool) -> i64 {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.budget(user)
}

unsafe extern "C" fn pmi(vpmu: *mut Vpmu, masked: bool) -> u32 {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    let pmu = unsafe { pmu(vpmu) };
    match (pmu.pmi(masked), pmu.pmi_masks()) {
        (false, _) => PMI_NONE,
        (true, false) => PMI_DELIVER,
        (true, true) => PMI_DELIVER_AND_MASK,
    }
}

unsafe extern "C" fn lvtpc_write(vpmu: *mut Vpmu) {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    unsafe { pmu(vpmu) }.lvtpc_write();
}

unsafe extern "C" fn rdmsr(vpmu: *mut Vpmu, msr: u32, value: *mut u64) -> u32 {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped, and `value` points
    // to a variable.
    unsafe { answer(pmu(vpmu).rdmsr(msr), value) }
}

unsafe extern "C" fn wrmsr(vpmu: *mut Vpmu, msr: u32, value: u64) -> u32 {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped.
    match unsafe { pmu(vpmu) }.wrmsr(msr, value) {
        Some(Ok(())) => DONE,
        Some(Err(Fault)) => FAULT,
        None => NOT_MINE,
    }
}

unsafe extern "C" fn rdpmc(vpmu: *mut Vpmu, ecx: u32, value: *mut u64) -> u32 {
    // SAFETY: By `vpmu.h`, this runs on the CPU's thread or the CPU is stopped, and `value` points
    // to a variable.
    unsafe { answer(Some(pmu(vpmu).rdpmc(ecx)), value) }
}

/// Stores the value that was read, unless the access failed. Returns the result of the access, an
/// `enum vpmu_access`.
///
/// # Safety
///
/// `value` is valid for a write.
unsafe fn answer(result: Option<Result<u64, Fault>>, value: *mut u64) -> u32 {
    match result {
        Some(Ok(read)) => {
            // SAFETY: By this function's contract.
            unsafe { *value = read };
            DONE
        }
        Some(Err(Fault)) => FAULT,
        None => NOT_MINE,
    }
}

/// Returns the file to write the report to, if any.
fn report_path() -> Option<OsString> {
    env::var_os("VPMU_REPORT").filter(|path| !path.is_empty())
}

/// Appends the report to the file that `$VPMU_REPORT` names. Does nothing if it is not set.
unsafe extern "C" fn report(vpmu: *const Vpmu) {
    // SAFETY: The handle comes from `create` and is never freed. Only fields that threads may share
    // are used.
    let (apic_id, accounting) = unsafe { ((*vpmu).apic_id, &(*vpmu).accounting) };
    let Some(path) = report_path() else {
        return;
    };
    let cpu = format!("cpu {apic_id} ");
    let text = accounting.to_string();
    let text: String = text.lines().flat_map(|line| [&cpu, line, "\n"]).collect();
    let written = OpenOptions::new().create(true).append(true).open(&path);
    let written = written.and_then(|mut file| file.write_all(text.as_bytes()));
    if let Err(error) = written {
        eprintln!("vpmu: {}: {error}", path.to_string_lossy());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = include_str!("../qemu/vpmu.h");

    #[test]
    fn the_header_matches() {
        assert!(HEADER.contains(&format!("#define VPMU_ABI {ABI}\n")));
        // Every operation is a pointer in struct vpmu_ops, in the order of `Ops`.
        let operations = &HEADER[HEADER.find("struct vpmu_ops {").unwrap()..];
        let operations = operations
            .match_indices("(*")
            .map(|(at, name)| &operations[at + name.len()..]);
        let names: Vec<_> = operations
            .map(|rest| &rest[..rest.find(')').unwrap()])
            .collect();
        assert_eq!(
            names,
            [
                "create",
                "reset",
                "cpuid",
                "retire",
                "counting",
                "records_branches",
                "sample_due",
                "sample",
                "branch",
                "sibling_must_ask",
                "sibling_counts",
                "smm",
                "counts_interrupts",
                "svm",
                "budget",
                "pmi",
                "lvtpc_write",
                "rdmsr",
                "wrmsr",
                "rdpmc",
                "report"
            ]
        );
        let first = HEADER.find("    VPMU_INSTRUCTIONS,").unwrap();
        let last = HEADER.find("    VPMU_RETIRED_COUNTS").unwrap();
        assert_eq!(
            HEADER[first..last].matches("    VPMU_").count(),
            retired::REPORTED
        );
        // The values of `enum vpmu_counting` follow from its order.
        assert!(HEADER.contains("    VPMU_COUNTING_NOTHING,\n    VPMU_COUNTING_INSTRUCTIONS,"));
        // So do those of `enum vpmu_pmi`.
        assert!(HEADER
            .contains("    VPMU_PMI_NONE,\n    VPMU_PMI_DELIVER,\n    VPMU_PMI_DELIVER_AND_MASK "));
    }

    #[test]
    fn operations_work() {
        let mut config = Config {
            family: 6,
            model: 60,
            stepping: 0,
            apic_id: 0,
            threads_per_core: 2,
            defects: std::ptr::null(),
            pebs: false,
            profile: std::ptr::null(),
        };
        let mut error = std::ptr::null();
        let mut value = 0;
        // SAFETY: There is one thread, and all pointers are to this stack or from `create`.
        unsafe {
            let vpmu = (vpmu_ops.create)(&config, &mut error);
            assert_eq!((vpmu_ops.wrmsr)(vpmu, 0x309, 41), DONE);
            assert_eq!((vpmu_ops.wrmsr)(vpmu, 0x38d, 2), DONE);
            assert_eq!((vpmu_ops.wrmsr)(vpmu, 0x38f, 1 << 32), DONE);
            let mut retired = [0; retired::COUNTS];
            retired[retired::INSTRUCTIONS] = 1;
            (vpmu_ops.retire)(vpmu, true, retired.as_ptr());
            assert_eq!((vpmu_ops.rdpmc)(vpmu, 1 << 30, &mut value), DONE);
            assert_eq!(value, 42);
            assert_eq!((vpmu_ops.rdmsr)(vpmu, 0x600, &mut value), FAULT);
            assert_eq!((vpmu_ops.rdmsr)(vpmu, 0x10, &mut value), NOT_MINE);
            assert_eq!(value, 42);
            config.model = 1;
            assert!((vpmu_ops.create)(&config, &mut error).is_null());
            assert!(CStr::from_ptr(error).to_str().unwrap().contains("no model"));
        }
    }

    /// The number of the core decides its type, not the number of the thread.
    #[test]
    fn a_hybrid_processor_has_two_big_cores() {
        const BIG: u32 = 0x4000_0001;
        const SMALL: u32 = 0x2000_0001;
        for (threads_per_core, types) in [(1, [BIG, BIG, SMALL, SMALL]), (2, [BIG; 4])] {
            for (index, native_id) in types.into_iter().enumerate() {
                let config = Config {
                    family: 6,
                    model: 151,
                    stepping: 2,
                    // The cores of the other tests have two threads.
                    apic_id: index as u32,
                    threads_per_core,
                    defects: std::ptr::null(),
                    pebs: true,
                    profile: std::ptr::null(),
                };
                let mut error = std::ptr::null();
                let mut regs = [0; 4];
                // SAFETY: There is one thread, and all pointers are to this stack or from `create`.
                unsafe {
                    let vpmu = (vpmu_ops.create)(&config, &mut error);
                    (vpmu_ops.cpuid)(vpmu, 0x1a, 0, regs.as_mut_ptr());
                }
                assert_eq!(regs, [native_id, 0, 0, 0]);
            }
        }
    }

    #[test]
    fn profiles_are_checked() {
        // Haswell and Alder Lake, in cores of their own.
        for (apic_id, model, profile, exists) in [
            (0x80, 60, c"few", true),
            (0x82, 60, c"most", false),
            (0x84, 151, c"few", false),
        ] {
            let config = Config {
                family: 6,
                model,
                stepping: 2,
                apic_id,
                threads_per_core: 2,
                defects: std::ptr::null(),
                pebs: false,
                profile: profile.as_ptr(),
            };
            let mut error = std::ptr::null();
            let mut regs = [0; 4];
            // SAFETY: There is one thread, and all pointers are to this stack or from `create`.
            unsafe {
                let vpmu = (vpmu_ops.create)(&config, &mut error);
                assert_eq!(vpmu.is_null(), !exists, "{profile:?}");
                assert_eq!(error.is_null(), exists, "{profile:?}");
                if exists {
                    (vpmu_ops.cpuid)(vpmu, 0xa, 0, regs.as_mut_ptr());
                    assert_eq!((regs[0] >> 8) & 0xff, 2);
                }
            }
        }
    }

    #[test]
    fn threads_of_a_core_share_it() {
        let config = |apic_id, defects| Config {
            family: 6,
            model: 60,
            stepping: 0,
            apic_id,
            threads_per_core: 2,
            defects,
            pebs: false,
            profile: std::ptr::null(),
        };
        let mut error = std::ptr::null();
        let mut value = 0;
        // SAFETY: There is one thread, and all pointers are to this stack or from `create`.
        unsafe {
            // Cores 0x10 and 0x11.
            let cpus = [0x20, 0x21, 0x22].map(|apic_id| {
                let vpmu = (vpmu_ops.create)(&config(apic_id, std::ptr::null()), &mut error);
                (vpmu_ops.wrmsr)(vpmu, 0x186, 0x4381d0); // MEM_UOPS_RETIRED.ALL_LOADS
                vpmu
            });
            let mut loads = [0; retired::COUNTS];
            loads[retired::LOADS] = 1 << 20;
            (vpmu_ops.retire)(cpus[0], true, loads.as_ptr());
            for (cpu, leaked) in cpus.into_iter().zip([true, true, false]) {
                (vpmu_ops.retire)(cpu, true, [0; retired::COUNTS].as_ptr());
                assert_eq!((vpmu_ops.rdpmc)(cpu, 0, &mut value), DONE);
                assert_eq!(value != 0, leaked);
            }
            for list in [c"ht-leak", c"none"] {
                let config = config(0x30, list.as_ptr());
                assert!(!(vpmu_ops.create)(&config, &mut error).is_null());
            }
            for (threads_per_core, list) in [(2, c"tfa"), (2, c"x"), (3, c"none")] {
                let config = Config {
                    threads_per_core,
                    ..config(0x30, list.as_ptr())
                };
                error = std::ptr::null();
                assert!((vpmu_ops.create)(&config, &mut error).is_null());
                assert!(!error.is_null());
            }
        }
    }
}
