//! What the user can say.

use clap::{Parser, ValueEnum};
use std::net::IpAddr;
use std::path::PathBuf;

/// A simulated LLM inference server
///
/// Answers the HTTP endpoints of SGLang (/generate, /flush_cache, /start_profile, /server_info …)
/// and of OpenAI-compatible servers (/v1/completions, /v1/chat/completions, /v1/embeddings,
/// /v1/models), streamed or not, without a model: output is filler text of exactly the length
/// asked for. Tokens come at fixed times (--ttft-ms, --itl-ms) or as an engine model has them
/// (--engine). A fault script (--faults) makes it fail as servers fail.
///
/// It prints one line, `sim-server listening on http://HOST:PORT` (or `unix:PATH`), and runs until SIGINT or
/// SIGTERM.
#[derive(Debug, Parser)]
#[command(name = "sim-server", version, after_long_help = EXAMPLES, max_term_width = 100)]
pub struct Args {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,

    /// Port to listen on; 0 takes a free one, which is printed
    #[arg(long, default_value_t = 0)]
    pub port: u16,

    /// Unix socket to listen at instead; it must not exist yet
    #[cfg(unix)]
    #[arg(long, value_name = "PATH", conflicts_with_all = ["host", "port", "threads"])]
    pub socket: Option<PathBuf>,

    /// Threads, each with its own listener on the same port (more than 1 needs Linux)
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,

    /// JSON file with fields of the configuration, as `GET /sim/config` shows it; flags win
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Name of the model served [default: sim]
    #[arg(long)]
    pub model: Option<String>,

    /// Key that requests must carry as `Authorization: Bearer KEY` (none by default)
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<String>,

    /// Most tokens of a prompt and its output together; more is refused with status 400
    #[arg(long, value_name = "TOKENS")]
    pub max_tokens: Option<u32>,

    /// Milliseconds from a request to its first token [default: 0]
    #[arg(long, value_name = "MS", help_heading = "Timing")]
    pub ttft_ms: Option<f64>,

    /// Milliseconds between two tokens [default: 0]
    #[arg(long, value_name = "MS", help_heading = "Timing")]
    pub itl_ms: Option<f64>,

    /// Engine model instead of fixed times: tiny, small, large, or a JSON file
    ///
    /// The model batches, queues, prefills in chunks and caches prefixes, so that load makes it
    /// slower. A file holds fields of the cost model, as `GET /sim/config` shows them under
    /// `timing`; those left out are those of `small`.
    #[arg(long, value_name = "NAME|FILE", help_heading = "Timing",
          conflicts_with_all = ["ttft_ms", "itl_ms"])]
    pub engine: Option<String>,

    /// Tokens that the engine's KV memory holds
    #[arg(long, value_name = "TOKENS", help_heading = "Timing", requires = "engine")]
    pub max_kv_tokens: Option<u64>,

    /// Speculative decoding: probability that a draft token is accepted
    #[arg(long, value_name = "P", help_heading = "Timing", requires = "engine")]
    pub spec_accept: Option<f64>,

    /// Tokens in a draft [default: 4]
    #[arg(long, value_name = "N", help_heading = "Timing", requires = "spec_accept")]
    pub spec_draft: Option<u32>,

    /// Tokens per stream event [default: 1]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub coalesce: Option<u32>,

    /// Write every event on its own, even where several are due at once
    #[arg(long, help_heading = "Output")]
    pub yield_each: bool,

    /// What output is made of [default: bytes]
    #[arg(long, value_enum, help_heading = "Output")]
    pub text: Option<Text>,

    /// How prompt tokens are counted [default: bytes]
    #[arg(long, value_enum, help_heading = "Output")]
    pub prompt_count: Option<Count>,

    /// Reasoning tokens at the start of each chat reply [default: 0]
    #[arg(long, value_name = "N", help_heading = "Output")]
    pub reasoning_tokens: Option<u32>,

    /// Share of requests without ignore_eos that stop before their limit [default: 0]
    #[arg(long, value_name = "SHARE", help_heading = "Output")]
    pub early_stop: Option<f64>,

    /// Seed of every random choice [default: 0]
    #[arg(long, help_heading = "Output")]
    pub seed: Option<u64>,

    /// JSON file of fault rules (the README lists the actions)
    #[arg(long, value_name = "FILE", help_heading = "Faults and truth")]
    pub faults: Option<PathBuf>,

    /// Where the true send times are written on exit, one JSON object per request
    #[arg(long, value_name = "FILE", help_heading = "Faults and truth")]
    pub truth_log: Option<PathBuf>,

    /// PEM certificate chain: serve HTTPS
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// PEM key of the certificate
    #[cfg(feature = "tls")]
    #[arg(long, value_name = "FILE", help_heading = "TLS", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

/// Kinds of output text.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Text {
    /// One ASCII byte per token, exact under a byte-level tokenizer
    Bytes,
    /// One short word per token
    Words,
}

/// Ways to count prompt tokens.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Count {
    /// One per UTF-8 byte
    Bytes,
    /// One per four bytes
    QuarterBytes,
}

const EXAMPLES: &str = "\
Examples:
  sim-server --port 30000 --ttft-ms 50 --itl-ms 10
  sim-server --port 30000 --engine small --spec-accept 0.7
  sim-server --port 30000 --faults faults.json --truth-log truth.jsonl

  curl -N localhost:30000/v1/completions -d '{\"model\":\"sim\",\"prompt\":\"Hi\",\"stream\":true}'
  curl localhost:30000/sim/stats
  curl localhost:30000/sim/config -d '{\"timing\":{\"canned\":{\"ttft_ms\":5,\"itl_ms\":1}}}'

Exit status: 0 stopped by a signal · 2 usage · 3 a file is missing or wrong · 4 cannot listen ·
7 the truth log could not be written";
