//! Groups of flags of `send-one`.

use crate::args::{AddressArgs, StepsArgs};
use clap::Args;

/// Every flag of `sglang.test.send_one` 0.5.23: what may be abbreviated.
pub const SEND_ONE_FLAGS: &[&str] = &[
    "--base-url",
    "--batch-size",
    "--different-prompts",
    "--frequency-penalty",
    "--help",
    "--host",
    "--image",
    "--json",
    "--many-images",
    "--max-new-tokens",
    "--port",
    "--presence-penalty",
    "--profile",
    "--profile-by-stage",
    "--profile-prefix",
    "--profile-steps",
    "--prompt",
    "--random-input-len",
    "--random-input-vocab-size",
    "--return-logprob",
    "--seed",
    "--stop",
    "--stream",
    "--temperature",
];

/// What is asked.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Request")]
pub struct PromptArgs {
    /// The prompt [default: a request for a small web server's code]
    #[arg(long, value_name = "TEXT")]
    pub prompt: Option<String>,

    /// Prompts in the one request; figures are those of the first
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub batch_size: u32,

    /// Make the prompts of a batch differ
    #[arg(long)]
    pub different_prompts: bool,

    /// Send so many random token ids instead of a text
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub random_input_len: Option<u32>,

    /// Random ids lie below this
    #[arg(long, value_name = "N", default_value_t = 32768,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub random_input_vocab_size: u32,

    /// The server's seed for sampling
    #[arg(long, value_name = "N")]
    pub seed: Option<i64>,

    /// Sampling temperature
    #[arg(long, default_value_t = 0.0)]
    pub temperature: f64,

    /// Most tokens of the reply
    #[arg(long, value_name = "N", default_value_t = 512,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub max_new_tokens: u32,

    /// Penalty for tokens by how often they came
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub frequency_penalty: f64,

    /// Penalty for tokens that came at all
    #[arg(long, value_name = "X", default_value_t = 0.0)]
    pub presence_penalty: f64,

    /// Ask about a capital city and want the reply as a JSON object
    #[arg(long)]
    pub json: bool,

    /// Ask for log probabilities
    #[arg(long)]
    pub return_logprob: bool,

    /// Texts that end the reply
    #[arg(long, num_args = 0.., value_name = "TEXT")]
    pub stop: Vec<String>,

    /// Send an example image along (the server fetches it)
    #[arg(long, conflicts_with = "many_images")]
    pub image: bool,

    /// Send four images along
    #[arg(long)]
    pub many_images: bool,

    /// Take the reply as a stream and print it as it comes; TTFT and ITL need this
    #[arg(long)]
    pub stream: bool,
}

/// The server's profiler around the request.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Profiling")]
pub struct AroundArgs {
    /// Profile the first steps of the request (CPU and GPU)
    #[arg(long)]
    pub profile: bool,

    /// How many steps, and where to.
    #[command(flatten)]
    pub steps: StepsArgs,
}

/// All that `send-one` takes.
#[derive(Args, Clone, Debug, Default)]
pub struct SendOneArgs {
    /// Which server is asked.
    #[command(flatten)]
    pub address: AddressArgs,
    /// What is asked.
    #[command(flatten)]
    pub prompt: PromptArgs,
    /// The server's profiler around the request.
    #[command(flatten)]
    pub around: AroundArgs,
}
