//! How the C interface is called: statuses, texts and lists that are handed over, owned handles, and
//! closures whose panics stay on this side.

use crate::{sys, Error, Result};
use std::any::Any;
use std::ffi::{c_char, c_void, CStr, CString};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::NonNull;

pub(crate) fn check(status: sys::loom_status) -> Result<()> {
    if status == sys::LOOM_OK {
        Ok(())
    } else {
        Err(Error::last(status))
    }
}

/// A text as C takes it.
pub(crate) fn c_text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid("a text for Loom cannot hold the character NUL"))
}

/// Numbers as an option by name takes them.
pub(crate) fn numbers<T: ToString>(values: &[T]) -> String {
    values.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

/// Texts likewise: an array of JSON.
pub(crate) fn texts(values: &[String]) -> String {
    let quoted =
        values.iter().map(|v| format!("\"{}\"", v.replace('\\', "\\\\").replace('"', "\\\"")));
    format!("[{}]", quoted.collect::<Vec<_>>().join(", "))
}

/// Patterns with factors likewise.
pub(crate) fn rates(values: &[(String, f64)]) -> String {
    texts(&values.iter().map(|(pattern, factor)| format!("{pattern}={factor}")).collect::<Vec<_>>())
}

/// # Safety
/// `from` is null or a text that ends with a NUL.
pub(crate) unsafe fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: as the caller says.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}

/// The text of a field of fixed size.
pub(crate) fn field(from: &[c_char]) -> String {
    let bytes: Vec<u8> = from.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A text that a call hands over.
pub(crate) fn taken_text(
    call: impl FnOnce(*mut *mut c_char) -> sys::loom_status,
) -> Result<String> {
    let mut out = std::ptr::null_mut();
    check(call(&mut out))?;
    // SAFETY: the call gave a text that is ours to free.
    unsafe {
        let made = text(out);
        sys::loom_free(out.cast());
        Ok(made)
    }
}

/// Ids that a call hands over.
pub(crate) fn taken_ids(
    call: impl FnOnce(*mut *mut i32, *mut i64) -> sys::loom_status,
) -> Result<Vec<i32>> {
    let (mut ids, mut count) = (std::ptr::null_mut(), 0i64);
    check(call(&mut ids, &mut count))?;
    // SAFETY: the call gave a list of `count` ids that is ours to free.
    unsafe {
        let made = list(ids, count);
        sys::loom_free(ids.cast());
        Ok(made)
    }
}

/// # Safety
/// `from` holds `count` values, or `count` is 0.
pub(crate) unsafe fn list<T: Copy>(from: *const T, count: i64) -> Vec<T> {
    if count <= 0 || from.is_null() {
        return Vec::new();
    }
    // SAFETY: as the caller says.
    unsafe { std::slice::from_raw_parts(from, count as usize) }.to_vec()
}

/// An object of the library, freed once.
pub(crate) struct Owned<T> {
    raw: NonNull<T>,
    free: unsafe extern "C" fn(*mut T),
}

// SAFETY: handles are numbers that any thread may use; what one thread at a time may call takes
// `&mut self` in the types above.
unsafe impl<T> Send for Owned<T> {}
// SAFETY: the same.
unsafe impl<T> Sync for Owned<T> {}

impl<T> Owned<T> {
    /// The object that a call writes to its last argument.
    pub(crate) fn from(
        free: unsafe extern "C" fn(*mut T),
        call: impl FnOnce(*mut *mut T) -> sys::loom_status,
    ) -> Result<Self> {
        let mut out = std::ptr::null_mut();
        check(call(&mut out))?;
        NonNull::new(out)
            .map(|raw| Owned { raw, free })
            .ok_or_else(|| Error::invalid("the library gave no object"))
    }

    pub(crate) fn get(&self) -> *mut T {
        self.raw.as_ptr()
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: this is the only owner.
        unsafe { (self.free)(self.raw.as_ptr()) }
    }
}

/// The panic of a closure that C called, kept until C has returned.
#[derive(Default)]
pub(crate) struct Caught(Option<Box<dyn Any + Send>>);

impl Caught {
    /// Runs the body of a callback; 0 means continue.
    pub(crate) fn run(&mut self, callback: impl FnOnce() -> bool) -> i32 {
        match catch_unwind(AssertUnwindSafe(callback)) {
            Ok(go_on) => i32::from(!go_on),
            Err(panic) => {
                self.0 = Some(panic);
                1
            }
        }
    }

    /// After the call: the panic goes on, if there was one.
    pub(crate) fn check(self, status: sys::loom_status) -> Result<()> {
        match self.0 {
            Some(panic) => resume_unwind(panic),
            None => check(status),
        }
    }
}

/// A `user` of C as what it is.
///
/// # Safety
/// `user` is the address of a `T` that has no other user during the callback.
pub(crate) unsafe fn user<'a, T>(user: *mut c_void) -> &'a mut T {
    // SAFETY: as the caller says.
    unsafe { &mut *user.cast::<T>() }
}
