//! How tokens are drawn, and what came of it.

use crate::calls::{c_text, check, list, text, user, Caught, Owned};
use crate::{sys, Result, Stop};
use std::ffi::{c_char, c_void, CString};

/// How the next tokens are chosen; zeros are the defaults of the library.
#[derive(Clone, Debug, Default)]
pub struct GenerateOptions {
    /// The limit of new tokens; 0 means 256.
    pub max_tokens: i64,
    /// Logits are divided by it; 0 takes the likeliest token.
    pub temperature: f32,
    /// Keep the k likeliest tokens; 0 keeps all.
    pub top_k: i64,
    /// Keep the fewest tokens that hold this share of the probability; 0 means 1.
    pub top_p: f32,
    /// Keep those with at least this share of the best one's.
    pub min_p: f32,
    /// Keskar et al., 2019; 0 means 1.
    pub repetition_penalty: f32,
    /// Equal seeds give equal texts, on any machine.
    pub seed: u64,
    /// Generation ends where one of these appears.
    pub stop: Vec<String>,
    /// The token that ends a text does not end it.
    pub ignore_eos: bool,
    /// Fills the log-probabilities.
    pub logprobs: bool,
    /// Marks of chats become text too, for [`crate::Model::read_reply`].
    pub special_text: bool,
}

/// A token that was drawn.
#[derive(Clone, Debug)]
pub struct Token {
    /// Its number in the vocabulary.
    pub id: i32,
    /// The text that it adds, in complete characters.
    pub text: String,
    /// With [`GenerateOptions::logprobs`].
    pub logprob: f32,
}

/// The result of a generation.
#[derive(Clone, Debug)]
pub struct Generation {
    /// New text.
    pub text: String,
    /// Without the one that ended the text.
    pub token_ids: Vec<i32>,
    /// Log-probabilities of the tokens, with [`GenerateOptions::logprobs`].
    pub logprobs: Vec<f32>,
    /// Why it ended; None: for a reason of a newer library.
    pub stop: Option<Stop>,
    /// Tokens of the prompt.
    pub prompt_tokens: i64,
}

/// The options as C takes them, with what their pointers are of.
pub(crate) struct RawOptions {
    raw: sys::loom_generate_options,
    _texts: Vec<CString>,
    _pointers: Vec<*const c_char>,
}

impl RawOptions {
    pub(crate) fn of(options: &GenerateOptions) -> Result<Self> {
        let texts = options.stop.iter().map(|s| c_text(s)).collect::<Result<Vec<_>>>()?;
        let pointers: Vec<_> = texts.iter().map(|text| text.as_ptr()).collect();
        let mut raw = sys::loom_generate_options { ..Default::default() };
        raw.max_tokens = options.max_tokens;
        raw.temperature = options.temperature;
        raw.top_k = options.top_k;
        raw.top_p = options.top_p;
        raw.min_p = options.min_p;
        raw.repetition_penalty = options.repetition_penalty;
        raw.seed = options.seed;
        raw.stop = pointers.as_ptr();
        raw.stop_count = pointers.len() as i32;
        raw.ignore_eos = i32::from(options.ignore_eos);
        raw.logprobs = i32::from(options.logprobs);
        raw.special_text = i32::from(options.special_text);
        Ok(RawOptions { raw, _texts: texts, _pointers: pointers })
    }
}

struct Watch<'f> {
    on_token: &'f mut dyn FnMut(&Token) -> bool,
    caught: Caught,
}

unsafe extern "C" fn token_drawn(to: *mut c_void, token: *const sys::loom_token) -> i32 {
    // SAFETY: run() hands out its Watch; the token is borrowed during the callback.
    let (watch, seen): (&mut Watch, _) = unsafe { (user(to), &*token) };
    let on_token = &mut *watch.on_token;
    watch.caught.run(|| {
        // SAFETY: the text ends with a NUL.
        let text = unsafe { text(seen.text) };
        on_token(&Token { id: seen.id, text, logprob: seen.logprob })
    })
}

/// Calls `generate`, which takes options and a place for the result.
pub(crate) fn run(
    mut options: RawOptions,
    on_token: Option<&mut dyn FnMut(&Token) -> bool>,
    generate: impl FnOnce(
        *const sys::loom_generate_options,
        *mut *mut sys::loom_generation,
    ) -> sys::loom_status,
) -> Result<Generation> {
    let mut out = std::ptr::null_mut();
    match on_token {
        Some(on_token) => {
            let mut watch = Watch { on_token, caught: Caught::default() };
            options.raw.on_token = Some(token_drawn);
            options.raw.user = std::ptr::addr_of_mut!(watch).cast();
            let status = generate(&options.raw, &mut out);
            let owned = made(out);
            watch.caught.check(status)?;
            read(&owned?)
        }
        None => {
            check(generate(&options.raw, &mut out))?;
            read(&made(out)?)
        }
    }
}

fn made(raw: *mut sys::loom_generation) -> Result<Owned<sys::loom_generation>> {
    Owned::from(sys::loom_generation_free, |out| {
        // SAFETY: `out` is the place of Owned::from().
        unsafe { *out = raw };
        sys::LOOM_OK
    })
}

fn read(from: &Owned<sys::loom_generation>) -> Result<Generation> {
    let (mut words, mut ids, mut scores) = (std::ptr::null(), std::ptr::null(), std::ptr::null());
    let (mut count, mut scored) = (0i64, 0i64);
    let mut info = sys::loom_generation_info::default();
    // SAFETY: what the calls give is borrowed while the generation lives, and copied here.
    unsafe {
        check(sys::loom_generation_text(from.get(), &mut words, std::ptr::null_mut()))?;
        check(sys::loom_generation_ids(from.get(), &mut ids, &mut count))?;
        check(sys::loom_generation_logprobs(from.get(), &mut scores, &mut scored))?;
        check(sys::loom_generation_get_info(from.get(), &mut info))?;
        Ok(Generation {
            text: text(words),
            token_ids: list(ids, count),
            logprobs: list(scores, scored),
            stop: Stop::from_raw(info.stop),
            prompt_tokens: info.prompt_tokens,
        })
    }
}
