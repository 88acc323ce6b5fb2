//! What the requests of a run ask for.

use serde_json::{Map, Value};

/// Options of text generation, for every protocol. Each takes what its endpoint knows.
#[derive(Clone, Debug, PartialEq)]
pub struct GenerateOptions {
    /// Model name sent to the OpenAI routes.
    pub model: String,
    /// Ask for a stream.
    pub stream: bool,
    /// Sampling temperature.
    pub temperature: f64,
    /// Nucleus sampling; sent only below 1.
    pub top_p: f64,
    /// Tell the server to go on past the end-of-text token.
    pub ignore_eos: bool,
    /// Fields set on the command line. They win over the built-in ones and lose against a row's.
    pub extra_body: Map<String, Value>,
    /// Ask for log probabilities.
    pub return_logprob: bool,
    /// How many alternatives to ask log probabilities for. The native route sends it when above 0, the
    /// completions route (as `logprobs`) only together with [`return_logprob`](Self::return_logprob).
    pub top_logprobs_num: u32,
    /// First prompt position with log probabilities (native route; −1: output only).
    pub logprob_start_len: i64,
    /// Token ids to ask log probabilities for (native route).
    pub token_ids_logprob: Option<Vec<i64>>,
    /// Ask which experts were used (native route).
    pub return_routed_experts: bool,
    /// Ask streaming OpenAI routes for a final usage chunk. A `stream_options` of the extra body keeps
    /// its own `include_usage` and its other keys.
    pub include_usage: bool,
    /// Ask SGLang's OpenAI routes where cached prompt tokens were found. What a reply says about cached
    /// tokens is read in any case.
    pub cache_report: bool,
}

impl Default for GenerateOptions {
    /// Greedy, streaming, to the full length, with usage.
    fn default() -> Self {
        Self {
            model: String::new(),
            stream: true,
            temperature: 0.0,
            top_p: 1.0,
            ignore_eos: true,
            extra_body: Map::new(),
            return_logprob: false,
            top_logprobs_num: 0,
            logprob_start_len: -1,
            token_ids_logprob: None,
            return_routed_experts: false,
            include_usage: true,
            cache_report: false,
        }
    }
}
