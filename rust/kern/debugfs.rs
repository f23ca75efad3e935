// SPDX-License-Identifier: GPL-2.0

//! Read-only files in debugfs that keep their module loaded while they are open.
//!
//! The files of [`kernel::debugfs`] have no owner. When such a file is closed after the module was
//! unloaded, debugfs looks for its `release()` in memory that was freed (`full_proxy_release()`,
//! `fs/debugfs/file.c`).
//!
//! C header: [`include/linux/debugfs.h`](srctree/include/linux/debugfs.h)

// Without debugfs there are no files, and their writers are never called.
#![cfg_attr(not(CONFIG_DEBUG_FS), allow(dead_code, unused_variables))]

use core::{
    marker::PhantomData,
    ptr, //
};
use kernel::{
    bindings,
    ffi::{
        c_int,
        c_void, //
    },
    fmt,
    module::this_module,
    prelude::*,
    seq_file::SeqFile,
    seq_print,
    ModuleMetadata, //
};

/// Writes the content of a file.
pub trait Writer: Send + Sync + 'static {
    /// The module that implements the trait.
    type OwnerModule: ModuleMetadata;

    /// Writes the text that a read returns. Process context.
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// A directory at the root of debugfs. Dropping removes it with all its files and directories, and
/// waits until no file is being read.
///
/// If debugfs is missing, or refuses the directory, this is no error: there are no files then.
///
/// A module that fails to load is freed even if its files are open. So a module makes its files
/// after everything that can fail.
///
/// # Invariants
///
/// `entry` is null, an error, or a directory that only this value removes. `data` holds the data of
/// its files and of its subdirectories' files, which are neither changed nor moved.
pub struct Dir {
    entry: *mut bindings::dentry,
    data: KVec<KBox<dyn Send + Sync>>,
}

// SAFETY: debugfs has its own locks; any thread may use and remove an entry. The data can be sent.
unsafe impl Send for Dir {}

// SAFETY: No method takes a shared reference.
unsafe impl Sync for Dir {}

impl Dir {
    /// Makes a directory. Process context.
    pub fn new(name: &CStr) -> Self {
        // INVARIANT: The directory is new and has no files.
        Self {
            // SAFETY: Null stands for the root.
            entry: unsafe { make_dir(name, ptr::null_mut()) },
            data: KVec::new(),
        }
    }

    /// Makes a subdirectory. Process context.
    pub fn subdir(&mut self, name: &CStr) -> Subdir<'_> {
        // SAFETY: By the type invariant.
        let entry = unsafe { make_dir(name, self.entry) };
        // INVARIANT: The directory is in this one.
        Subdir { dir: self, entry }
    }

    /// Makes a file that shows `data` and that only root can read. While the file is open, its
    /// module cannot be unloaded. Fails with `ENOMEM`. Process context.
    pub fn file<T: Writer>(&mut self, name: &CStr, data: T) -> Result {
        let entry = self.entry;
        // SAFETY: By the type invariant.
        unsafe { self.file_in(entry, name, data) }
    }

    /// Makes a file in `parent`.
    ///
    /// # Safety
    ///
    /// `parent` must be what debugfs returned for this directory or for one in it: a directory, or
    /// an error.
    unsafe fn file_in<T: Writer>(
        &mut self,
        parent: *mut bindings::dentry,
        name: &CStr,
        data: T,
    ) -> Result {
        let data = KBox::new(data, GFP_KERNEL)?;
        let shown = ptr::from_ref(&*data);
        // INVARIANT: Nothing takes the data out of its box, or changes it.
        self.data.push(data, GFP_KERNEL)?;
        #[cfg(CONFIG_DEBUG_FS)]
        // SAFETY: `name` is a C string, which debugfs copies. By this function's requirements
        // `parent` is a directory, or an error, which debugfs returns. The operations are for files
        // whose inodes point to a `T`, which this file's inode does until the directory is dropped.
        unsafe {
            bindings::debugfs_create_file_full(
                name.as_char_ptr(),
                0o400,
                parent,
                shown.cast_mut().cast(),
                ptr::null(),
                File::<T>::OPERATIONS,
            );
        }
        Ok(())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        #[cfg(CONFIG_DEBUG_FS)]
        // SAFETY: debugfs ignores null and errors; otherwise, by the type invariant, only this
        // value removes the directory. The data are dropped afterwards.
        unsafe {
            bindings::debugfs_remove(self.entry);
        }
    }
}

/// A directory in a [`Dir`]. It is removed together with the [`Dir`].
///
/// # Invariants
///
/// `entry` is null, an error, or a directory in `dir`.
pub struct Subdir<'a> {
    dir: &'a mut Dir,
    entry: *mut bindings::dentry,
}

impl Subdir<'_> {
    /// Makes a file, as [`Dir::file`].
    pub fn file<T: Writer>(&mut self, name: &CStr, data: T) -> Result {
        // SAFETY: By the type invariant.
        unsafe { self.dir.file_in(self.entry, name, data) }
    }
}

/// Makes a directory in `parent`.
///
/// # Safety
///
/// `parent` must be a directory in debugfs, the error that debugfs returned instead, or null for
/// the root.
unsafe fn make_dir(name: &CStr, parent: *mut bindings::dentry) -> *mut bindings::dentry {
    #[cfg(CONFIG_DEBUG_FS)]
    // SAFETY: `name` is a C string, which debugfs copies; by this function's requirements.
    return unsafe { bindings::debugfs_create_dir(name.as_char_ptr(), parent) };
    #[cfg(not(CONFIG_DEBUG_FS))]
    return ptr::null_mut();
}

/// A file whose inode points to a `T`.
struct File<T>(PhantomData<T>);

impl<T: Writer> File<T> {
    const OPERATIONS: &'static bindings::file_operations = &bindings::file_operations {
        owner: this_module::<T::OwnerModule>().as_ptr(),
        open: Some(open_callback::<T>),
        read: Some(bindings::seq_read),
        llseek: Some(bindings::seq_lseek),
        release: Some(bindings::single_release),
        ..pin_init::zeroed()
    };
}

/// # Safety
///
/// `inode` must belong to a file with the operations of a [`File<T>`], which debugfs protects from
/// removal during the call. `file` must be the file being opened.
unsafe extern "C" fn open_callback<T: Writer>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> c_int {
    // SAFETY: By this function's requirements the inode's data is a `T`. Only reads and seeks call
    // `show_callback()`; debugfs protects the file from removal during these as well.
    unsafe { bindings::single_open(file, Some(show_callback::<T>), (*inode).i_private) }
}

/// # Safety
///
/// `seq` must be a `seq_file` that only this thread uses, and its private data a `T` to which there
/// are only shared references.
unsafe extern "C" fn show_callback<T: Writer>(
    seq: *mut bindings::seq_file,
    _: *mut c_void,
) -> c_int {
    // SAFETY: By this function's requirements.
    let (data, seq) = unsafe { (&*(*seq).private.cast::<T>(), SeqFile::from_raw(seq)) };
    seq_print!(seq, "{}", Text(data));
    0
}

/// The text of a writer.
struct Text<'a, T>(&'a T);

impl<T: Writer> fmt::Display for Text<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write(f)
    }
}
