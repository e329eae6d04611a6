//! Errors: the code and the line of text of the call that failed.

use crate::{calls, sys, Code};
use std::fmt;

/// One line: what, where, what to do; and its code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of the failure.
    pub code: Code,
    /// For people.
    pub message: String,
}

/// The result of a call that can fail.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Error { code: Code::InvalidArgument, message: message.into() }
    }

    /// The error of the last call of this thread, which returned `status`.
    pub(crate) fn last(status: sys::loom_status) -> Self {
        // SAFETY: the text is borrowed until the next call of this thread that fails.
        let message = unsafe { calls::text(sys::loom_last_error()) };
        Error { code: Code::from_raw(status).unwrap_or(Code::Internal), message }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
