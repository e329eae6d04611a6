//! Loom, a neural engine that other programs embed: networks, training, language models.
//!
//! Values of the library are owned and freed by `Drop`; arrays of the caller are borrowed as
//! [`Tensor`] for a call; what can fail returns [`Result`]. Equal calls give the bits that C, C++ and
//! Python get. [`sys`] is the C interface itself, for what has no safe form here.

#[allow(missing_docs)]
#[rustfmt::skip]
mod enums;
#[rustfmt::skip]
mod options;
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod sys;

mod calls;
mod conversation;
mod engine;
mod error;
mod generation;
mod model;
mod network;
mod tensor;
mod training;

pub use conversation::{Conversation, Turn};
pub use engine::{Engine, EngineInfo, EngineOptions};
pub use enums::*;
pub use error::{Error, Result};
pub use generation::{GenerateOptions, Generation, Token};
pub use model::{Model, ModelInfo, ModelSession};
pub use network::{Network, NetworkInfo, Session, SessionOptions};
pub use tensor::{Array, Element, Tensor};
pub use training::{Dataset, Epoch, Evaluation, FitOptions, Step, Trainer};
pub use options::TrainerOptions;

/// The version of the library that runs.
pub fn version() -> String {
    // SAFETY: the text is borrowed forever.
    unsafe { calls::text(sys::loom_version()) }
}
