//! One row of a dataset.

use crate::Stamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is sent as the prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Prompt {
    /// Text, tokenized by the server.
    Text(String),
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
}
