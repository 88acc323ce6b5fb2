//! What requests ask for.

use super::super::values::object;
use clap::Args;
use serde_json::{Map, Value};

/// What requests ask for.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Request content")]
pub struct ContentArgs {
    /// Tell the server to go on past the end-of-text token (always for random data)
    #[arg(long)]
    pub ignore_eos: bool,

    /// Log probabilities per token (completions)
    #[arg(long, value_name = "N")]
    pub logprobs: Option<i64>,

    /// Taken, and without effect, as in the Python tool
    #[arg(long)]
    pub use_beam_search: bool,

    /// Nucleus sampling
    #[arg(long)]
    pub top_p: Option<f64>,

    /// Sample from this many most likely tokens
    #[arg(long)]
    pub top_k: Option<i64>,

    /// Least probability, as a part of the likeliest token's
    #[arg(long)]
    pub min_p: Option<f64>,

    /// Sampling temperature; if left out, the server's own
    #[arg(long)]
    pub temperature: Option<f64>,

    /// Penalty on tokens by how often they came
    #[arg(long)]
    pub frequency_penalty: Option<f64>,

    /// Penalty on tokens that came
    #[arg(long)]
    pub presence_penalty: Option<f64>,

    /// Factor against repetition
    #[arg(long)]
    pub repetition_penalty: Option<f64>,

    /// JSON object merged into every request body; it wins over what is there
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub extra_body: Option<Map<String, Value>>,

    /// Further variables of the chat template that is applied here
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub chat_template_kwargs: Option<Map<String, Value>>,

    /// Begin of each request's id, sent as x-request-id [default: bench- and 8 random digits]
    #[arg(long, value_name = "TEXT")]
    pub request_id_prefix: Option<String>,

    /// Send prompts as they are, not through the tokenizer's chat template
    #[arg(long)]
    pub skip_chat_template: bool,

    /// Has no effect, and says so: media always go into the messages here
    #[arg(long)]
    pub enable_multimodal_chat: bool,
}
