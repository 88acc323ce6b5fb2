//! One row of a dataset.

use crate::Stamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::Arc;

/// What is sent as the prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Prompt {
    /// Text, tokenized by the server.
    Text(String),
    /// Several texts in one request.
    Texts(Vec<String>),
    /// Token ids.
    Ids(Vec<u32>),
    /// Chat messages, as JSON objects.
    Messages(Vec<Value>),
    /// A conversation of several requests: for each turn, the messages that come after the server's
    /// reply to the turn before it. At least one turn, none of them empty.
    Turns(Vec<Vec<Value>>),
}

impl Default for Prompt {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

/// How a prompt's length was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Counted {
    /// The length that was asked for; the text may tokenize to another one.
    #[default]
    Nominal,
    /// Counted by the tokenizer on the final prompt.
    Tokenizer,
    /// The number of ids sent.
    Exact,
}

/// A picture of a prompt. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The encoded picture as a data URI, `data:image/png;base64,…`.
    pub uri: Arc<str>,
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

/// The pictures of a prompt, and what they are to the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pictures {
    /// In the order in which they are sent, before the text.
    pub list: Vec<Picture>,
    /// The part of [`Sample::prompt_len`] that stands for them; `None` where it is not known how the model
    /// counts, and `prompt_len` is that of the text alone.
    pub tokens: Option<u32>,
}

/// A recording that is sent as a file. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Audio {
    /// Name of the file.
    pub name: Arc<str>,
    /// Its media type, as in `audio/wav`, where it is known.
    pub kind: Option<Arc<str>>,
    /// The file.
    pub bytes: Arc<[u8]>,
    /// How long it plays.
    pub seconds: f64,
}

/// One row of a dataset: what to send and what to expect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What is sent.
    pub prompt: Prompt,
    /// Prompt length in tokens, without what a chat endpoint adds.
    pub prompt_len: u32,
    /// How `prompt_len` was found.
    pub counted: Counted,
    /// Output tokens to ask for.
    pub output_len: u32,
    /// Fields of the request body that this row sets itself; they win over the command line's.
    pub extra_body: Map<String, Value>,
    /// When a trace sends the row, from the start of the trace on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Stamp>,
    /// What rows share that a router should send to the same server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing_key: Option<String>,
    /// Pictures sent with the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pictures: Option<Box<Pictures>>,
    /// A recording sent in place of the prompt, to endpoints that transcribe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audio: Option<Box<Audio>>,
}
