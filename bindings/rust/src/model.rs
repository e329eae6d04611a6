//! Language models and conversations with them.

use crate::calls::{c_text, check, field, list, taken_ids, taken_text, Owned};
use crate::conversation::{Conversation, RawConversation};
use crate::engine::raw_engine;
use crate::generation::{run, RawOptions};
use crate::network::path_text;
use crate::tensor::report;
use crate::{sys, Engine, GenerateOptions, Generation, Result, Token};
use std::path::Path;

/// The properties of a model.
#[derive(Clone, Debug)]
pub struct ModelInfo {
    /// Blocks.
    pub layers: i64,
    /// Logits per position.
    pub vocab: i64,
    /// Positions the model was made for.
    pub context: i64,
    /// Numbers, tied ones once.
    pub parameters: i64,
    /// "LlamaForCausalLM".
    pub architecture: String,
}

/// A language model with its weights, tokenizer and chat template. Never changes.
pub struct Model {
    raw: Owned<sys::loom_model>,
}

impl Model {
    /// An .entity file, a GGUF file, or a Hugging Face folder.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::load_on(None, path)
    }

    /// The same on an engine of the caller.
    pub fn load_on(engine: Option<&Engine>, path: impl AsRef<Path>) -> Result<Self> {
        let path = path_text(path.as_ref())?;
        // SAFETY: the path lives during the call.
        let raw = Owned::from(sys::loom_model_free, |out| unsafe {
            sys::loom_model_load(raw_engine(engine), path.as_ptr(), std::ptr::null(), out)
        })?;
        Ok(Model { raw })
    }

    /// Layers, sizes, architecture.
    pub fn info(&self) -> Result<ModelInfo> {
        // SAFETY: the size of the struct is set.
        let info: sys::loom_model_info =
            report(|out| unsafe { sys::loom_model_get_info(self.raw.get(), out) })?;
        Ok(ModelInfo {
            layers: info.layers,
            vocab: info.vocab,
            context: info.context,
            parameters: info.parameters,
            architecture: field(&info.architecture),
        })
    }

    /// Ids of a text, with the tokens that the tokenizer puts around it.
    pub fn tokenize(&self, text: &str) -> Result<Vec<i32>> {
        let text = c_text(text)?;
        // SAFETY: the text lives during the call.
        taken_ids(|ids, count| unsafe {
            sys::loom_model_tokenize(self.raw.get(), text.as_ptr(), 1, ids, count)
        })
    }

    /// Text of ids, without special tokens.
    pub fn detokenize(&self, ids: &[i32]) -> Result<String> {
        // SAFETY: the ids live during the call.
        taken_text(|out| unsafe {
            sys::loom_model_detokenize(self.raw.get(), ids.as_ptr(), ids.len() as i64, 1, out)
        })
    }

    /// The conversation as the model's chat template writes it.
    pub fn render_chat(&self, conversation: impl Into<Conversation>) -> Result<String> {
        let raw = RawConversation::of(&conversation.into())?;
        // SAFETY: the texts live during the call.
        taken_text(|out| unsafe {
            sys::loom_model_render_messages(
                self.raw.get(),
                raw.messages.as_ptr(),
                &raw.options,
                out,
            )
        })
    }

    /// A reply to the prompt of [`Model::render_chat`] as a message of JSON: {"role", "content",
    /// "reasoning_content", "tool_calls"}. `tools`: those of the conversation.
    pub fn read_reply(&self, reply: &str, prompt: &str, tools: Option<&str>) -> Result<String> {
        let (reply, prompt) = (c_text(reply)?, c_text(prompt)?);
        let tools = tools.map(c_text).transpose()?;
        let at = tools.as_ref().map_or(std::ptr::null(), |text| text.as_ptr());
        // SAFETY: the texts live during the call.
        taken_text(|out| unsafe {
            sys::loom_model_read_reply(self.raw.get(), reply.as_ptr(), prompt.as_ptr(), at, out)
        })
    }

    /// A conversation. `context`: positions; 0 means the model's, at most 2048.
    pub fn session(&self, context: i64) -> Result<ModelSession> {
        let mut how = sys::loom_model_session_options { ..Default::default() };
        how.context = context;
        // SAFETY: the options live during the call.
        let raw = Owned::from(sys::loom_model_session_free, |out| unsafe {
            sys::loom_model_start(self.raw.get(), &how, out)
        })?;
        Ok(ModelSession { raw })
    }

    /// New text after a prompt, in a session of its own.
    pub fn generate(&self, prompt: &str, options: &GenerateOptions) -> Result<Generation> {
        self.session(0)?.generate(prompt, options)
    }

    /// The same, token by token; false stops.
    pub fn stream(
        &self,
        prompt: &str,
        options: &GenerateOptions,
        on_token: impl FnMut(&Token) -> bool,
    ) -> Result<Generation> {
        self.session(0)?.stream(prompt, options, on_token)
    }

    /// The next turn of a conversation, written with the model's own template. With tools the text
    /// is one for [`Model::read_reply`].
    pub fn chat(
        &self,
        conversation: impl Into<Conversation>,
        options: &GenerateOptions,
    ) -> Result<Generation> {
        let conversation = conversation.into();
        let prompt = c_text(&self.render_chat(&conversation)?)?;
        // SAFETY: the prompt lives during the call.
        let ids = taken_ids(|ids, count| unsafe {
            sys::loom_model_tokenize(self.raw.get(), prompt.as_ptr(), 0, ids, count)
        })?;
        let special = options.special_text || conversation.tools.is_some();
        let options = GenerateOptions { special_text: special, ..options.clone() };
        self.session(0)?.generate_ids(&ids, &options)
    }
}

/// One conversation, for one thread at a time.
pub struct ModelSession {
    raw: Owned<sys::loom_model_session>,
}

impl ModelSession {
    /// Reads tokens. Errors: out_of_range, and then nothing was fed.
    pub fn feed(&mut self, ids: &[i32]) -> Result<()> {
        // SAFETY: the ids live during the call.
        check(unsafe {
            sys::loom_model_session_feed(self.raw.get(), ids.as_ptr(), ids.len() as i64)
        })
    }

    /// Logits [vocab] after the last token fed; none before the first.
    pub fn logits(&self) -> Result<Vec<f32>> {
        let (mut values, mut count) = (std::ptr::null(), 0);
        // SAFETY: the values are borrowed until the next call, and copied here.
        unsafe {
            check(sys::loom_model_session_logits(self.raw.get(), &mut values, &mut count))?;
            Ok(list(values, count))
        }
    }

    /// Tokens fed.
    pub fn position(&self) -> Result<i64> {
        let mut out = 0;
        // SAFETY: the handle is ours.
        check(unsafe {
            sys::loom_model_session_position(self.raw.get(), &mut out, std::ptr::null_mut())
        })?;
        Ok(out)
    }

    /// Forgets everything from `position` on.
    pub fn rewind(&mut self, position: i64) -> Result<()> {
        // SAFETY: the handle is ours.
        check(unsafe { sys::loom_model_session_rewind(self.raw.get(), position) })
    }

    /// Reads the prompt, then draws tokens. The last one drawn is not fed.
    pub fn generate(&mut self, prompt: &str, options: &GenerateOptions) -> Result<Generation> {
        self.text(prompt, options, None)
    }

    /// The same, token by token; false stops.
    pub fn stream(
        &mut self,
        prompt: &str,
        options: &GenerateOptions,
        mut on_token: impl FnMut(&Token) -> bool,
    ) -> Result<Generation> {
        self.text(prompt, options, Some(&mut on_token))
    }

    /// The same for a prompt of tokens.
    pub fn generate_ids(
        &mut self,
        prompt: &[i32],
        options: &GenerateOptions,
    ) -> Result<Generation> {
        // SAFETY: prompt and options live during the call.
        run(RawOptions::of(options)?, None, |how, out| unsafe {
            sys::loom_model_session_generate_ids(
                self.raw.get(),
                prompt.as_ptr(),
                prompt.len() as i64,
                how,
                out,
            )
        })
    }

    fn text(
        &mut self,
        prompt: &str,
        options: &GenerateOptions,
        on_token: Option<&mut dyn FnMut(&Token) -> bool>,
    ) -> Result<Generation> {
        let prompt = c_text(prompt)?;
        // SAFETY: prompt and options live during the call.
        run(RawOptions::of(options)?, on_token, |how, out| unsafe {
            sys::loom_model_session_generate(self.raw.get(), prompt.as_ptr(), how, out)
        })
    }
}
