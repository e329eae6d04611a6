//! Layers in a 3D grid, with their weights, and what runs them.

use crate::calls::{c_text, check, field, taken_text, Owned};
use crate::engine::raw_engine;
use crate::tensor::{report, sample_shape};
use crate::{sys, Array, DType, Engine, Error, Result, Tensor};
use std::path::Path;

pub(crate) fn path_text(path: &Path) -> Result<std::ffi::CString> {
    c_text(path.to_str().ok_or_else(|| Error::invalid("the path is not UTF-8"))?)
}

/// The properties of a network. Shapes are those of one sample.
#[derive(Clone, Debug)]
pub struct NetworkInfo {
    /// The shape of one input.
    pub input: Vec<i64>,
    /// The shape of one output.
    pub output: Vec<i64>,
    /// Cells in use.
    pub layers: i64,
    /// Numbers; shared ones once.
    pub parameters: i64,
    /// The number type of the matrices.
    pub dtype: Option<DType>,
    /// That it was trained with; "" if it was not trained.
    pub loss: String,
}

/// A network. Training changes it; sessions keep the weights that it had when they were made.
pub struct Network {
    pub(crate) raw: Owned<sys::loom_network>,
}

impl Network {
    fn from(call: impl FnOnce(*mut *mut sys::loom_network) -> sys::loom_status) -> Result<Self> {
        Ok(Network { raw: Owned::from(sys::loom_network_free, call)? })
    }

    /// A description as [`Network::json`] gives it. `seed`: of starting weights.
    pub fn from_json(json: &str, seed: Option<u64>) -> Result<Self> {
        Self::from_json_on(None, json, seed)
    }

    /// The same on an engine of the caller.
    pub fn from_json_on(engine: Option<&Engine>, json: &str, seed: Option<u64>) -> Result<Self> {
        let text = c_text(json)?;
        let mut how = sys::loom_load_options { ..Default::default() };
        how.has_seed = i32::from(seed.is_some());
        how.seed = seed.unwrap_or(0);
        // SAFETY: text and options live during the call.
        Self::from(|out| unsafe {
            sys::loom_network_from_json(raw_engine(engine), text.as_ptr(), &how, out)
        })
    }

    /// .entity, .json, .onnx, .npz, .safetensors.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_on(None, path)
    }

    /// The same on an engine of the caller.
    pub fn load_on(engine: Option<&Engine>, path: impl AsRef<Path>) -> Result<Self> {
        let path = path_text(path.as_ref())?;
        // SAFETY: the path lives during the call.
        Self::from(|out| unsafe {
            sys::loom_network_load(raw_engine(engine), path.as_ptr(), std::ptr::null(), out)
        })
    }

    /// The same of a file in memory, which is copied.
    pub fn load_bytes(bytes: &[u8]) -> Result<Self> {
        // SAFETY: the bytes are read during the call alone.
        Self::from(|out| unsafe {
            sys::loom_network_load_memory(
                std::ptr::null_mut(),
                bytes.as_ptr().cast(),
                bytes.len() as i64,
                std::ptr::null(),
                std::ptr::null(),
                out,
            )
        })
    }

    /// The format is that of the ending.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path_text(path.as_ref())?;
        // SAFETY: the path lives during the call.
        check(unsafe { sys::loom_network_save(self.raw.get(), path.as_ptr(), std::ptr::null()) })
    }

    /// The description, without weights.
    pub fn json(&self) -> Result<String> {
        // SAFETY: the handle is ours.
        taken_text(|out| unsafe { sys::loom_network_json(self.raw.get(), out) })
    }

    /// A table for people.
    pub fn summary(&self) -> Result<String> {
        // SAFETY: the handle is ours.
        taken_text(|out| unsafe { sys::loom_network_summary(self.raw.get(), out) })
    }

    /// Shapes, sizes, number type.
    pub fn info(&self) -> Result<NetworkInfo> {
        // SAFETY: the size of the struct is set.
        let info: sys::loom_network_info =
            report(|out| unsafe { sys::loom_network_get_info(self.raw.get(), out) })?;
        Ok(NetworkInfo {
            input: sample_shape(&info.input, info.input_rank),
            output: sample_shape(&info.output, info.output_rank),
            layers: info.layers,
            parameters: info.parameters,
            dtype: DType::from_raw(info.dtype),
            loss: field(&info.loss),
        })
    }

    /// Inputs [n, ...] to float32 outputs [n, ...].
    pub fn predict(&self, inputs: &Tensor<'_>) -> Result<Array> {
        // SAFETY: the tensor borrows its memory.
        Array::from(|out| unsafe { sys::loom_network_predict(self.raw.get(), inputs.raw(), out) })
    }

    /// Values of a parameter as float32.
    pub fn parameter(&self, name: &str) -> Result<Array> {
        let name = c_text(name)?;
        // SAFETY: the text lives during the call.
        Array::from(|out| unsafe {
            sys::loom_network_parameter(self.raw.get(), name.as_ptr(), out)
        })
    }

    /// Packs new values. Errors: another shape.
    pub fn set_parameter(&mut self, name: &str, values: &Tensor<'_>) -> Result<()> {
        let name = c_text(name)?;
        // SAFETY: the tensor borrows its memory.
        check(unsafe {
            sys::loom_network_set_parameter(self.raw.get(), name.as_ptr(), values.raw())
        })
    }

    /// One user of the network, with the memory that running it takes.
    pub fn session(&self, options: &SessionOptions) -> Result<Session> {
        let mut how = sys::loom_session_options { ..Default::default() };
        how.max_batch = options.max_batch;
        how.float_activations = i32::from(options.float_activations);
        how.stateful = i32::from(options.stateful);
        how.max_steps = options.max_steps;
        // SAFETY: the options live during the call.
        let raw = Owned::from(sys::loom_session_free, |out| unsafe {
            sys::loom_network_session(self.raw.get(), &how, out)
        })?;
        Ok(Session { raw })
    }
}

/// How a network is run.
#[derive(Clone, Debug, Default)]
pub struct SessionOptions {
    /// Samples computed at a time; changes speed, never bits; 0 means 1.
    pub max_batch: i64,
    /// Inputs of integer weights are never rounded to 8 bits.
    pub float_activations: bool,
    /// Each call goes on where the one before ended.
    pub stateful: bool,
    /// Stateful: steps that caches hold; 0 means those of one input.
    pub max_steps: i64,
}

/// Runs a network, for one thread at a time.
pub struct Session {
    raw: Owned<sys::loom_session>,
}

impl Session {
    /// Inputs [n, ...] to float32 outputs [n, ...].
    pub fn run(&mut self, inputs: &Tensor<'_>) -> Result<Array> {
        // SAFETY: the tensor borrows its memory.
        Array::from(|out| unsafe { sys::loom_session_run(self.raw.get(), inputs.raw(), out) })
    }

    /// The same into memory of the caller, of the shape that the outputs have.
    pub fn run_into(
        &mut self,
        inputs: &Tensor<'_>,
        outputs: &mut [f32],
        shape: &[i64],
    ) -> Result<()> {
        let address: *mut f32 = outputs.as_mut_ptr();
        let mut place = unsafe { *Tensor::new(outputs, shape)?.raw() };
        place.data = address.cast();
        // SAFETY: `outputs` is borrowed mutably, and the shape fills it.
        check(unsafe { sys::loom_session_run_into(self.raw.get(), inputs.raw(), &place) })
    }

    /// Stateful: begins new streams.
    pub fn reset(&mut self) -> Result<()> {
        // SAFETY: the handle is ours.
        check(unsafe { sys::loom_session_reset(self.raw.get()) })
    }

    /// Stateful: steps since.
    pub fn position(&self) -> Result<i64> {
        let mut out = 0;
        // SAFETY: the handle is ours.
        check(unsafe { sys::loom_session_position(self.raw.get(), &mut out) })?;
        Ok(out)
    }
}
