//! Conversations as chat templates read them: messages, tools and variables as JSON.

use crate::calls::c_text;
use crate::{sys, Result};
use std::ffi::{c_char, CString};

/// A turn of text.
#[derive(Clone, Copy, Debug)]
pub struct Turn<'a> {
    /// "system", "user", "assistant".
    pub role: &'a str,
    /// The text of the message.
    pub content: &'a str,
}

/// A conversation, made from turns of text or from messages as JSON. Further fields have defaults:
/// `Conversation { tools: Some(tools), ..Conversation::from(messages) }`.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// JSON in the shape of OpenAI's clients: \[{"role", "content" (text, null or a list of parts),
    /// "tool_calls", "tool_call_id", "name", "reasoning_content"}\] and any member that the template
    /// reads.
    pub messages: String,
    /// Functions that the model may call: a JSON array.
    pub tools: Option<String>,
    /// A JSON array that some templates quote.
    pub documents: Option<String>,
    /// A JSON object of template variables, such as {"enable_thinking": false}.
    pub variables: Option<String>,
    /// The day that a template may tell, "2024-07-26"; None: today, in UTC.
    pub date: Option<String>,
    /// The prompt does not end where the assistant's reply begins.
    pub no_reply: bool,
    /// The prompt ends after the text of the last message, which the model continues.
    pub continue_final_message: bool,
}

impl From<&str> for Conversation {
    fn from(messages: &str) -> Self {
        Conversation { messages: messages.to_owned(), ..Default::default() }
    }
}

impl From<&[Turn<'_>]> for Conversation {
    fn from(turns: &[Turn<'_>]) -> Self {
        let rows = turns.iter().map(|turn| {
            format!("{{\"role\":{},\"content\":{}}}", quoted(turn.role), quoted(turn.content))
        });
        Conversation::from(format!("[{}]", rows.collect::<Vec<_>>().join(",")).as_str())
    }
}

impl<const N: usize> From<&[Turn<'_>; N]> for Conversation {
    fn from(turns: &[Turn<'_>; N]) -> Self {
        Conversation::from(turns.as_slice())
    }
}

impl From<&Conversation> for Conversation {
    fn from(other: &Conversation) -> Self {
        other.clone()
    }
}

/// A text of JSON.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if (c as u32) < 0x20 => out += &format!("\\u{:04x}", c as u32),
            c => out.push(c),
        }
    }
    out + "\""
}

/// A conversation as C takes it, with the owners of its pointers.
pub(crate) struct RawConversation {
    pub(crate) messages: CString,
    pub(crate) options: sys::loom_chat_options,
    _texts: Vec<CString>,
}

impl RawConversation {
    pub(crate) fn of(from: &Conversation) -> Result<Self> {
        let mut options = sys::loom_chat_options { ..Default::default() };
        let mut texts = Vec::new();
        let places: [(&Option<String>, &mut *const c_char); 4] = [
            (&from.tools, &mut options.tools),
            (&from.documents, &mut options.documents),
            (&from.variables, &mut options.variables),
            (&from.date, &mut options.date),
        ];
        for (text, place) in places {
            if let Some(text) = text {
                texts.push(c_text(text)?);
                *place = texts[texts.len() - 1].as_ptr();
            }
        }
        options.no_reply = i32::from(from.no_reply);
        options.continue_final_message = i32::from(from.continue_final_message);
        Ok(RawConversation { messages: c_text(&from.messages)?, options, _texts: texts })
    }
}
