// SPDX-License-Identifier: GPL-2.0

//! The files below `/sys/bus/event_source/devices/<pmu>/`.
//!
//! `format/` maps names of fields to bits of `perf_event_attr`, `events/` names of events to values
//! of these fields; `caps/` lists what the PMU can do. Each name is a file with a text.
//!
//! Some files are shown on request only, see [`Groups::with_request`].

use super::{
    Operations,
    Pmu, //
};
use crate::{
    bindings,
    kern::cpu::online_cpus, //
};
use core::{
    fmt,
    ptr, //
};
use kernel::{
    alloc::AllocError,
    cpu::nr_cpu_ids,
    cpumask::CpumaskVar,
    error::{
        from_result,
        to_result, //
    },
    ffi::c_char,
    new_mutex,
    prelude::*,
    str::CString,
    sync::Mutex, //
};

/// A setting of a PMU, in a file that reads as a number.
///
/// The methods are called in process context while the PMU is registered, by several tasks at the
/// same time.
pub trait Setting<T: Operations> {
    /// The type of its value.
    type Value: Value;

    /// The mode of the file.
    const MODE: u16;

    /// Returns the value.
    fn get(pmu: &Pmu<T>) -> Self::Value;

    /// Sets the value. It is in effect when this returns; on an error nothing has changed.
    fn set(pmu: &Pmu<T>, value: Self::Value) -> Result;
}

/// The value of a [`Setting`].
pub trait Value: Sized + Into<u64> {
    /// Parses the text written to the file; `EINVAL` or `ERANGE` if it is no value.
    fn parse(text: &CStr) -> Result<Self>;
}

/// Parses the text by `kstrtobool()`.
impl Value for bool {
    fn parse(text: &CStr) -> Result<Self> {
        let mut value = false;
        // SAFETY: `text` is a C string, and `value` is valid for the write of a `bool`.
        to_result(unsafe { bindings::kstrtobool(text.as_char_ptr(), &mut value) })?;
        Ok(value)
    }
}

/// Parses the text by `kstrtoull()`: a decimal number, or a hexadecimal or octal one with its
/// prefix.
impl Value for u64 {
    fn parse(text: &CStr) -> Result<Self> {
        let mut value = 0;
        // SAFETY: `text` is a C string, and `value` is valid for the write of a `u64`.
        to_result(unsafe { bindings::kstrtoull(text.as_char_ptr(), 0, &mut value) })?;
        Ok(value)
    }
}

/// A directory of files.
///
/// # Invariants
///
/// The n-th file's `attr.attr.name`, and its `event_str` if it has a text, point to the n-th pair
/// of texts.
pub struct Group {
    name: Option<&'static CStr>,
    files: KVec<bindings::perf_pmu_events_attr>,
    texts: KVec<[CString; 2]>,
}

impl Group {
    /// Creates an empty directory.
    pub const fn new(name: &'static CStr) -> Self {
        Self {
            name: Some(name),
            files: KVec::new(),
            texts: KVec::new(),
        }
    }

    /// Creates an empty group of files for the PMU's own directory.
    pub const fn top() -> Self {
        Self {
            name: None,
            files: KVec::new(),
            texts: KVec::new(),
        }
    }

    /// Adds the file of a setting.
    pub fn setting<T: Operations, S: Setting<T>>(&mut self, name: fmt::Arguments<'_>) -> Result {
        let name = CString::try_from_fmt(name)?;
        let mut file = new_file(&name, S::MODE);
        file.attr.__bindgen_anon_1.show = Some(show_setting_callback::<T, S>);
        file.attr.__bindgen_anon_2.store = Some(store_setting_callback::<T, S>);
        self.push(file, name)
    }

    /// Adds the file `cpus`: the online CPUs that the PMU [serves](Operations::serves). Users and
    /// perf conclude from this file that the PMU serves no other CPUs.
    pub fn cpus<T: Operations>(&mut self) -> Result {
        let name = CString::try_from_fmt(fmt!("cpus"))?;
        let mut file = new_file(&name, 0o444);
        file.attr.__bindgen_anon_1.show = Some(show_cpus_callback::<T>);
        self.push(file, name)
    }

    /// Adds the file that [shows](Groups::with_request) the files on request (1), or hides them
    /// (0).
    pub fn request<T: Operations>(&mut self, name: fmt::Arguments<'_>) -> Result {
        let name = CString::try_from_fmt(name)?;
        let mut file = new_file(&name, 0o644);
        // SAFETY: The helper sets a static lock class in the attribute, which is valid and has one
        // owner.
        unsafe { bindings::rpmu_helper_sysfs_attr_init_request(&mut file.attr.attr) };
        file.attr.__bindgen_anon_1.show = Some(show_request_callback::<T>);
        file.attr.__bindgen_anon_2.store = Some(store_request_callback::<T>);
        self.push(file, name)
    }

    /// Adds a file without a text.
    fn push(&mut self, file: bindings::perf_pmu_events_attr, name: CString) -> Result {
        let text = CString::try_from_fmt(fmt!(""))?;
        self.texts.push([name, text], GFP_KERNEL)?;
        self.files.push(file, GFP_KERNEL)?;
        Ok(())
    }

    /// Builds the `struct attribute_group` of the directory: its name, and a null-terminated list
    /// of its files, which must not move from here on.
    fn build(&mut self) -> Result<(bindings::attribute_group, Members), AllocError> {
        let mut files = KVec::with_capacity(self.files.len() + 1, GFP_KERNEL)?;
        for file in &mut self.files {
            files.push(&raw mut file.attr.attr, GFP_KERNEL)?;
        }
        files.push(ptr::null_mut(), GFP_KERNEL)?;

        let mut raw: bindings::attribute_group = pin_init::zeroed();
        raw.name = self.name.map_or(ptr::null(), |name| name.as_char_ptr());
        raw.__bindgen_anon_2.attrs = files.as_mut_ptr();
        Ok((raw, files))
    }

    /// Adds a file that reads as `text`, of which at most a page is shown.
    pub fn file(&mut self, name: fmt::Arguments<'_>, text: fmt::Arguments<'_>) -> Result {
        let name = CString::try_from_fmt(name)?;
        let text = CString::try_from_fmt(text)?;

        let mut file = new_file(&name, 0o444);
        file.attr.__bindgen_anon_1.show = Some(show_callback);
        // INVARIANT: Both texts are on the heap and do not change any more, so they do not move.
        file.event_str = text.as_char_ptr();

        self.texts.push([name, text], GFP_KERNEL)?;
        self.files.push(file, GFP_KERNEL)?;
        Ok(())
    }
}

/// A null-terminated list of files.
type Members = KVec<*mut bindings::attribute>;

/// Creates a file without callbacks. The name has to live as long as the file does.
fn new_file(name: &CStr, mode: u16) -> bindings::perf_pmu_events_attr {
    let mut file: bindings::perf_pmu_events_attr = pin_init::zeroed();
    file.attr.attr.name = name.as_char_ptr();
    file.attr.attr.mode = mode;
    // SAFETY: The helper sets a static lock class in the attribute, which is valid and has one
    // owner.
    unsafe { bindings::rpmu_helper_sysfs_attr_init(&mut file.attr.attr) };
    file
}

/// Prints the text of a file.
///
/// # Safety
///
/// To be called by sysfs, with a file of a [`Group`] and a page to print to.
unsafe extern "C" fn show_callback(
    _dev: *mut bindings::device,
    attr: *mut bindings::device_attribute,
    page: *mut c_char,
) -> isize {
    // SAFETY: Each file of a group is a `perf_pmu_events_attr`.
    let file = unsafe { kernel::container_of!(attr, bindings::perf_pmu_events_attr, attr) };
    // SAFETY: By the type invariant of `Group`, `event_str` is a C string. `page` is a page of
    // sysfs, as `sysfs_emit()` requires.
    let len = unsafe { bindings::sysfs_emit(page, c"%s".as_char_ptr(), (*file).event_str) };
    // CAST: an `int` is an `isize`.
    len as isize
}

/// Returns the PMU of a device.
///
/// # Safety
///
/// `dev` must be the device of a registered [`Pmu<T>`], for `'a`.
unsafe fn pmu_of<'a, T: Operations>(dev: *mut bindings::device) -> &'a Pmu<T> {
    // SAFETY: The perf core sets the PMU as its device's driver data.
    unsafe { Pmu::from_raw(bindings::rpmu_helper_dev_get_drvdata(dev).cast()) }
}

/// Prints a value as a number, and returns the length of the text.
///
/// # Safety
///
/// `page` must be a page of sysfs to print to.
unsafe fn emit(page: *mut c_char, value: impl Value) -> isize {
    let value: u64 = value.into();
    // SAFETY: `page` is a page of sysfs, as `sysfs_emit()` requires, and `%llu` prints a `u64`.
    let len = unsafe { bindings::sysfs_emit(page, c"%llu\n".as_char_ptr(), value) };
    // CAST: an `int` is an `isize`.
    len as isize
}

/// Parses a value and calls `set` with it. Returns the length of the text, or an error.
///
/// # Safety
///
/// `dev` must be the device of a [`Pmu<T>`], one of whose files is being written, and `text` a C
/// string of `len` bytes.
unsafe fn store<T: Operations, V: Value>(
    dev: *mut bindings::device,
    text: *const c_char,
    len: usize,
    set: impl FnOnce(&Pmu<T>, V) -> Result,
) -> isize {
    from_result(|| {
        // SAFETY: By this function's requirements.
        let value = V::parse(unsafe { CStr::from_char_ptr(text) })?;
        // SAFETY: By this function's requirements. The file is removed before the PMU is freed.
        set(unsafe { pmu_of::<T>(dev) }, value)?;
        // CAST: the length is at most a page.
        Ok(len as isize)
    })
}

/// # Safety
///
/// To be called by sysfs, with the device of a [`Pmu<T>`] and a page to print to.
unsafe extern "C" fn show_setting_callback<T: Operations, S: Setting<T>>(
    dev: *mut bindings::device,
    _attr: *mut bindings::device_attribute,
    page: *mut c_char,
) -> isize {
    // SAFETY: By this function's requirements. The file is removed before the PMU is freed.
    let value = S::get(unsafe { pmu_of::<T>(dev) });
    // SAFETY: By this function's requirements.
    unsafe { emit(page, value) }
}

/// # Safety
///
/// To be called by sysfs, with the device of a [`Pmu<T>`] and a C string of `len` bytes.
unsafe extern "C" fn store_setting_callback<T: Operations, S: Setting<T>>(
    dev: *mut bindings::device,
    _attr: *mut bindings::device_attribute,
    text: *const c_char,
    len: usize,
) -> isize {
    // SAFETY: By this function's requirements.
    unsafe { store(dev, text, len, S::set) }
}

/// # Safety
///
/// To be called by sysfs, with the device of a [`Pmu<T>`] and a page to print to.
unsafe extern "C" fn show_cpus_callback<T: Operations>(
    dev: *mut bindings::device,
    _attr: *mut bindings::device_attribute,
    page: *mut c_char,
) -> isize {
    from_result(|| {
        // SAFETY: By this function's requirements. The file is removed before the PMU is freed.
        let pmu = unsafe { pmu_of::<T>(dev) };
        let mut cpus = CpumaskVar::new_zero(GFP_KERNEL)?;
        online_cpus()
            .filter(|cpu| pmu.serves(*cpu))
            .for_each(|cpu| cpus.set(cpu));
        // SAFETY: `page` is a page of sysfs, as `sysfs_emit()` requires. `%*pbl` prints a bitmap of
        // the given number of bits: a mask has at least `nr_cpu_ids` bits.
        let len = unsafe {
            bindings::sysfs_emit(page, c"%*pbl\n".as_char_ptr(), nr_cpu_ids(), cpus.as_raw())
        };
        // CAST: an `int` is an `isize`.
        Ok(len as isize)
    })
}

/// # Safety
///
/// To be called by sysfs, with the device of a [`Pmu<T>`] and a page to print to.
unsafe extern "C" fn show_request_callback<T: Operations>(
    dev: *mut bindings::device,
    _attr: *mut bindings::device_attribute,
    page: *mut c_char,
) -> isize {
    // SAFETY: By this function's requirements. The file is removed before the PMU is freed.
    let pmu = unsafe { pmu_of::<T>(dev) };
    let request = pmu.groups.request.as_ref();
    let shown = request.is_some_and(|request| *request.shown.lock());
    // SAFETY: By this function's requirements.
    unsafe { emit(page, shown) }
}

/// # Safety
///
/// To be called by sysfs, with the device of a [`Pmu<T>`] and a C string of `len` bytes.
unsafe extern "C" fn store_request_callback<T: Operations>(
    dev: *mut bindings::device,
    _attr: *mut bindings::device_attribute,
    text: *const c_char,
    len: usize,
) -> isize {
    let show = |pmu: &Pmu<T>, on| match &pmu.groups.request {
        // SAFETY: This runs in a file of the device, whose removal waits for it. The files on
        // request belong to the PMU, which outlives its device.
        Some(request) => unsafe { request.show(dev, on) },
        None => Ok(()),
    };
    // SAFETY: By this function's requirements.
    unsafe { store(dev, text, len, show) }
}

/// Files that a directory of the PMU shows on request only.
///
/// # Invariants
///
/// The only element of `raw` names `group` and points to `members`, which is a null-terminated list
/// of pointers to the files of `group`. None of them changes after it was built, so their elements
/// do not move.
struct Request {
    raw: KVec<bindings::attribute_group>,
    _members: Members,
    _group: Group,
    /// Set while the files are shown. The lock is held while they are shown or hidden.
    shown: Pin<KBox<Mutex<bool>>>,
}

impl Request {
    fn new(mut group: Group) -> Result<Self> {
        let (raw_group, members) = group.build()?;
        let mut raw = KVec::with_capacity(1, GFP_KERNEL)?;
        raw.push(raw_group, GFP_KERNEL)?;
        // INVARIANT: As built above.
        Ok(Self {
            raw,
            _members: members,
            _group: group,
            shown: KBox::pin_init(new_mutex!(false), GFP_KERNEL)?,
        })
    }

    /// Shows or hides the files. Fails with `ENOENT` if the device is being removed, or with
    /// `ENOMEM`. Process context.
    ///
    /// # Safety
    ///
    /// `dev` must be the device of the PMU to which these files belong.
    unsafe fn show(&self, dev: *mut bindings::device, on: bool) -> Result {
        let mut shown = self.shown.lock();
        if *shown == on {
            return Ok(());
        }
        let group = self.raw.as_ptr();
        match on {
            // SAFETY: `dev` is the PMU's device by this function's requirements, and `group` is a
            // named group with a null-terminated list by the type invariant. The files live until
            // the PMU is freed, and the device is removed before.
            true => to_result(unsafe { bindings::rpmu_helper_sysfs_merge_group(dev, group) })?,
            // SAFETY: `dev` is the PMU's device by this function's requirements, and `group` a
            // named group with a null-terminated list by the type invariant. Removing a file waits
            // for its users (`kernfs_drain()`): the caller runs in none of these files.
            false => unsafe { bindings::rpmu_helper_sysfs_unmerge_group(dev, group) },
        }
        *shown = on;
        Ok(())
    }
}

/// The directories of a PMU.
///
/// # Invariants
///
/// - `list` is a null-terminated list of pointers to the elements of `raw`.
/// - The n-th element of `raw` names `groups[n]` and points to `members[n]`, which is a
///   null-terminated list of pointers to the files of `groups[n]`.
///
/// None of the vectors is changed after [`new()`](Self::new), so their elements do not move.
pub struct Groups {
    list: KVec<*const bindings::attribute_group>,
    _raw: KVec<bindings::attribute_group>,
    _members: KVec<Members>,
    _groups: KVec<Group>,
    request: Option<Request>,
}

// SAFETY: The pointers point to data that the value itself owns.
unsafe impl Send for Groups {}

// SAFETY: A shared reference does not allow any change.
unsafe impl Sync for Groups {}

impl Groups {
    /// Builds sysfs's lists from the directories.
    pub fn new(mut groups: KVec<Group>) -> Result<Self, AllocError> {
        let mut raw = KVec::with_capacity(groups.len(), GFP_KERNEL)?;
        let mut members = KVec::with_capacity(groups.len(), GFP_KERNEL)?;
        let mut list = KVec::with_capacity(groups.len() + 1, GFP_KERNEL)?;

        for group in &mut groups {
            let (raw_group, files) = group.build()?;
            members.push(files, GFP_KERNEL)?;
            raw.push(raw_group, GFP_KERNEL)?;
        }
        for raw_group in &raw {
            list.push(ptr::from_ref(raw_group), GFP_KERNEL)?;
        }
        list.push(ptr::null(), GFP_KERNEL)?;

        // INVARIANT: As built above.
        Ok(Self {
            list,
            _raw: raw,
            _members: members,
            _groups: groups,
            request: None,
        })
    }

    /// Adds files on request: while the file of [`Group::request`] is 1, the files of `group` are
    /// in the directory with the name of `group`, which has to be one of the directories.
    #[inline(never)]
    pub fn with_request(mut self, group: Group) -> Result<Self> {
        self.request = Some(Request::new(group)?);
        Ok(self)
    }

    /// Returns the value of `pmu.attr_groups`. The perf core does not change the list.
    pub(super) fn as_raw(&self) -> *mut *const bindings::attribute_group {
        self.list.as_ptr().cast_mut()
    }
}
