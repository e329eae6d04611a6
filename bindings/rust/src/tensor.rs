//! Numbers with a shape: borrowed from the caller for a call, or owned by the library.

use crate::calls::{check, list, Owned};
use crate::{sys, DType, Error, Result};
use std::marker::PhantomData;

mod sealed {
    pub trait Sealed {}
}

/// Number types that tensors have.
pub trait Element: Copy + sealed::Sealed + 'static {
    /// In the library.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($kind:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $kind {}
        impl Element for $kind {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}
elements!(f32 => Float32, f64 => Float64, i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
          u8 => Uint8, u16 => Uint16, u32 => Uint32, u64 => Uint64);

/// Numbers of the caller, one row after the other.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    raw: sys::loom_tensor,
    owner: PhantomData<&'a [u8]>,
}

impl<'a> Tensor<'a> {
    /// Errors: a shape that `data` does not fill.
    pub fn new<T: Element>(data: &'a [T], shape: &'a [i64]) -> Result<Self> {
        let count =
            shape.iter().try_fold(
                1i64,
                |all, extent| {
                    if *extent < 0 {
                        None
                    } else {
                        all.checked_mul(*extent)
                    }
                },
            );
        if count != Some(data.len() as i64) {
            return Err(Error::invalid(format!(
                "{} numbers do not fill the shape {shape:?}",
                data.len()
            )));
        }
        let raw = sys::loom_tensor {
            dtype: T::DTYPE as i32,
            rank: shape.len() as i32,
            shape: shape.as_ptr(),
            strides: std::ptr::null(),
            data: data.as_ptr().cast_mut().cast(),
        };
        Ok(Tensor { raw, owner: PhantomData })
    }

    pub(crate) fn raw(&self) -> *const sys::loom_tensor {
        &self.raw
    }
}

/// Numbers that the library owns.
pub struct Array {
    pub(crate) raw: Owned<sys::loom_array>,
}

impl Array {
    pub(crate) fn from(
        call: impl FnOnce(*mut *mut sys::loom_array) -> sys::loom_status,
    ) -> Result<Self> {
        Ok(Array { raw: Owned::from(sys::loom_array_free, call)? })
    }

    fn view(&self) -> sys::loom_tensor {
        let mut view = sys::loom_tensor::default();
        // SAFETY: the handle is ours, so that the call cannot fail.
        unsafe { sys::loom_array_view(self.raw.get(), &mut view) };
        view
    }

    /// Extents.
    pub fn shape(&self) -> Vec<i64> {
        let view = self.view();
        // SAFETY: the shape is borrowed while the array lives.
        unsafe { list(view.shape, i64::from(view.rank)) }
    }

    /// The number type.
    pub fn dtype(&self) -> Option<DType> {
        DType::from_raw(self.view().dtype)
    }

    /// The numbers. Errors: another number type, or rows with gaps between them.
    pub fn as_slice<T: Element>(&self) -> Result<&[T]> {
        let view = self.view();
        if view.dtype != T::DTYPE as i32 || !view.strides.is_null() {
            return Err(Error::invalid(format!(
                "the array holds {:?}, not {:?} without gaps",
                DType::from_raw(view.dtype),
                T::DTYPE
            )));
        }
        let count = self.shape().iter().product::<i64>() as usize;
        if count == 0 || view.data.is_null() {
            return Ok(&[]);
        }
        // SAFETY: the memory is borrowed while the array lives, and of this type and size.
        Ok(unsafe { std::slice::from_raw_parts(view.data.cast::<T>(), count) })
    }

    /// A copy of the numbers as another plain type.
    pub fn convert(&self, dtype: DType) -> Result<Array> {
        // SAFETY: the handle is ours.
        Array::from(|out| unsafe { sys::loom_array_convert(self.raw.get(), dtype as i32, out) })
    }
}

pub(crate) fn sample_shape(shape: &[i64; 8], rank: i32) -> Vec<i64> {
    shape[..rank.clamp(0, 8) as usize].to_vec()
}

/// A report of the library, filled by a call.
pub(crate) fn report<T: Default>(call: impl FnOnce(&mut T) -> sys::loom_status) -> Result<T> {
    let mut out = T::default();
    check(call(&mut out))?;
    Ok(out)
}
