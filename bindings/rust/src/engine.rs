//! The threads, the instruction set and the device that models share.

use crate::calls::{c_text, check, field, Owned};
use crate::{sys, Activations, Device, Result};

/// How an engine computes. The default: all cores, the best instruction set, the CPU.
#[derive(Clone, Debug, Default)]
pub struct EngineOptions {
    /// Lanes of work, the caller's included; 0 means all cores.
    pub threads: i32,
    /// So many also beyond the cores.
    pub exact_threads: bool,
    /// "scalar", "avx2", ...; None: the best one here.
    pub isa: Option<String>,
    /// How inputs meet weights of integer types.
    pub activations: Activations,
    /// The device that computes.
    pub device: Device,
}

/// The properties of an engine.
#[derive(Clone, Debug)]
pub struct EngineInfo {
    /// As they run, after the limit of cores.
    pub threads: i32,
    /// That this process may use.
    pub cores: i32,
    /// In use.
    pub isa: String,
    /// "cpu", or the name of the GPU.
    pub device: String,
}

/// Threads, instruction set, device. Models and networks keep their engine alive.
pub struct Engine {
    pub(crate) raw: Owned<sys::loom_engine>,
}

impl Engine {
    /// Errors: an instruction set or a GPU that is not here.
    pub fn new(options: &EngineOptions) -> Result<Self> {
        let isa = options.isa.as_deref().map(c_text).transpose()?;
        let mut how = sys::loom_engine_options { ..Default::default() };
        how.threads = options.threads;
        how.exact_threads = i32::from(options.exact_threads);
        how.isa = isa.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        how.activations = options.activations as i32;
        how.device = options.device as i32;
        // SAFETY: options and texts live during the call.
        let raw = Owned::from(sys::loom_engine_free, |out| unsafe {
            sys::loom_engine_create(&how, out)
        })?;
        Ok(Engine { raw })
    }

    /// The engine of everything that is not given one.
    pub fn shared() -> Result<Self> {
        // SAFETY: `out` may be written.
        let raw =
            Owned::from(sys::loom_engine_free, |out| unsafe { sys::loom_engine_shared(out) })?;
        Ok(Engine { raw })
    }

    /// Threads, instruction set, device.
    pub fn info(&self) -> Result<EngineInfo> {
        let mut info = sys::loom_engine_info::default();
        // SAFETY: the size of the struct is set.
        check(unsafe { sys::loom_engine_get_info(self.raw.get(), &mut info) })?;
        Ok(EngineInfo {
            threads: info.threads,
            cores: info.cores,
            isa: field(&info.isa),
            device: field(&info.device),
        })
    }
}

/// The handle of an engine, or null, which means the shared one.
pub(crate) fn raw_engine(engine: Option<&Engine>) -> *mut sys::loom_engine {
    engine.map_or(std::ptr::null_mut(), |engine| engine.raw.get())
}
