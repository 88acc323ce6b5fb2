//! What the server is asked to do with a prompt.

use super::{LimitArgs, NetworkArgs};
use clap::Args;

/// What the server is asked to do with a prompt.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Sampling and transport")]
pub struct SamplingArgs {
    /// Ask for whole replies instead of streams
    #[arg(long)]
    pub disable_stream: bool,

    /// Let the model end a reply before its output length
    #[arg(long)]
    pub disable_ignore_eos: bool,

    /// Sampling temperature [default: 0.0]
    #[arg(long)]
    pub temperature: Option<f64>,

    /// Nucleus sampling; sent only when below 1 [default: 1.0]
    #[arg(long)]
    pub top_p: Option<f64>,

    /// Ask for log probabilities (native and completions backends)
    ///
    /// They make replies many times larger, which is part of what is measured; they are read over, not
    /// kept.
    #[arg(long)]
    pub return_logprob: bool,

    /// Number of top log probabilities per token (native and completions backends) [default: 0]
    #[arg(long, value_name = "N")]
    pub top_logprobs_num: Option<u32>,

    /// Token ids whose log probabilities are wanted (native backends)
    #[arg(long, num_args = 1.., value_name = "ID")]
    pub token_ids_logprob: Vec<i64>,

    /// First prompt token with log probabilities; -1: none of the prompt (native) [default: -1]
    #[arg(long, value_name = "N")]
    pub logprob_start_len: Option<i64>,

    /// Ask for the experts that tokens were routed to (native backends)
    ///
    /// With --output-details the result has them, request by request, under `routed_experts`: SGLang
    /// writes base64 of 32-bit integers, token by layer by expert.
    #[arg(long)]
    pub return_routed_experts: bool,

    /// Do not ask OpenAI endpoints for token counts; outputs are then counted by the tokenizer
    #[arg(long)]
    pub disable_include_usage: bool,

    /// Trust any certificate
    #[arg(long)]
    pub insecure: bool,

    /// How long a request may take, and how often it is tried.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// The way to the server.
    #[command(flatten)]
    pub network: NetworkArgs,
}
