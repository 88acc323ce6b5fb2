//! When requests are sent.

use super::{EndingArgs, values};
use clap::{Args, ValueEnum};
use serde::Serialize;
use servebench_http::{HttpReader, Stamps};

/// When requests are sent, and what goes before.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Requests per second, as a Poisson process; `inf` sends all at once [default: inf]
    #[arg(long, value_name = "RATE")]
    pub request_rate: Option<String>,

    /// Send each request at the time that its row has (mooncake, where it is the default)
    ///
    /// `false` sends by --request-rate instead.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub use_trace_timestamps: Option<bool>,

    /// Most requests under way at once; the others wait in the client [default: no cap]
    #[arg(long, value_name = "N")]
    pub max_concurrency: Option<usize>,

    /// Open a connection for each request, inside its measured time, as the Python tool does
    ///
    /// Otherwise connections are opened before the clock starts and used again.
    #[arg(long)]
    pub cold_connections: bool,

    /// Where the times at which bytes were received come from
    ///
    /// The kernel stamps them as they arrive, however late the client reads. What it merged because
    /// the client was late is reported as an interval.
    #[arg(long, value_name = "SOURCE", default_value = "kernel")]
    pub receive_stamps: ReceiveStamps,

    /// Who reads HTTP/1.1
    #[arg(long, value_name = "READER", default_value = "auto")]
    pub http_reader: HttpReaderName,

    /// Seconds between a reply and the next turn of its conversation [default: 0]
    #[arg(long, value_name = "SECONDS", value_parser = values::not_negative)]
    pub think_time: Option<f64>,

    /// Let a conversation give its place under --max-concurrency to others between its turns
    ///
    /// A conversation otherwise keeps its place from its first request to its last reply, pauses of
    /// --think-time included, as the Python tool has it: --max-concurrency then is the number of users.
    /// With this it is the number of requests: while a user thinks, others are served, and the next turn
    /// waits in line behind all that were due before it. That wait is in no latency; the result has it
    /// as queue_wait, and turn by turn under `conversations`.
    #[arg(long)]
    pub release_slot_between_turns: bool,

    /// Requests sent before the measured ones [default: 1]
    #[arg(long, value_name = "N")]
    pub warmup_requests: Option<usize>,

    /// Empty the server's prefix cache after the warm-up
    #[arg(long)]
    pub flush_cache: bool,

    /// Seconds an SGLang server may take to become idle for the flush [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = values::positive_time)]
    pub flush_cache_timeout: Option<f64>,

    /// LoRA adapters to choose from for each request
    #[arg(long, num_args = 0.., value_name = "NAME")]
    pub lora_name: Vec<String>,

    /// How adapters are chosen
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pub lora_request_distribution: LoraDistribution,

    /// Base of the `skewed` distribution: adapter i has weight ALPHA^-i [default: 1.5]
    #[arg(long, value_name = "ALPHA")]
    pub lora_zipf_alpha: Option<f64>,

    /// When the run ends before everything is sent and answered.
    #[command(flatten)]
    pub endings: EndingArgs,
}

/// How LoRA adapters are chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LoraDistribution {
    /// Each as often as the others, at random.
    #[default]
    Uniform,
    /// One after the other.
    Distinct,
    /// The first most often, each next one less often by a constant factor.
    Skewed,
}

/// Where receive times come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiveStamps {
    /// The kernel, on Linux; elsewhere as `user`.
    #[default]
    Kernel,
    /// The time at which the client read them.
    User,
}

impl From<ReceiveStamps> for Stamps {
    fn from(name: ReceiveStamps) -> Self {
        match name {
            ReceiveStamps::Kernel => Self::Kernel,
            ReceiveStamps::User => Self::User,
        }
    }
}

/// Who reads HTTP/1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpReaderName {
    /// `lean` in the clear, `hyper` under TLS.
    #[default]
    Auto,
    /// A reader made for event streams: no copies, no buffer per connection.
    Lean,
    /// The library most Rust clients use.
    Hyper,
}

impl From<HttpReaderName> for HttpReader {
    fn from(name: HttpReaderName) -> Self {
        match name {
            HttpReaderName::Auto => Self::Auto,
            HttpReaderName::Lean => Self::Lean,
            HttpReaderName::Hyper => Self::Hyper,
        }
    }
}
