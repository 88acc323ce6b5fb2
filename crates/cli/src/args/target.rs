//! The server and the model.

use super::values;
use crate::hidden::Header;
use clap::{Args, ValueEnum};
use serde::Serialize;
use serde_json::{Map, Value};
use servebench_backends::BackendKind;
use servebench_http::Balance;

/// The server and the model.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Target and model")]
pub struct TargetArgs {
    /// The server's protocol [default: sglang]
    ///
    /// `sglang` and `sglang-native` use `/generate`; `sglang-oai`, `vllm` and `lmdeploy` use
    /// `/v1/completions`; the `-chat` backends use `/v1/chat/completions`, the `-embedding` ones
    /// `/v1/embeddings`; `trt` is TensorRT-LLM behind Triton
    /// (`/v2/models/ensemble/generate_stream`), `truss` is `/v1/models/model:predict`.
    #[arg(long, value_name = "NAME", value_parser = backend_parser())]
    pub backend: Option<BackendKind>,

    /// Address of the server, as in http://127.0.0.1:30000; replaces --host and --port
    ///
    /// `unix:/run/server.sock` is a server behind a Unix socket. The kernel stamps nothing there, so
    /// receive times are those of the reads.
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// Addresses of several servers to which the requests are dealt; replaces --base-url
    ///
    /// All must serve the same model. The model's name, the tokenizer and `server_info` are the
    /// first one's; each is waited for, warmed up and flushed. What each had is in the result, under `targets`.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "URL", conflicts_with_all = ["base_url", "host", "port"])]
    pub base_urls: Vec<String>,

    /// How requests are dealt to several servers [default: round-robin]
    #[arg(long, value_name = "HOW")]
    pub balance: Option<BalanceName>,

    /// Host of the server [default: 0.0.0.0]
    #[arg(long)]
    pub host: Option<String>,

    /// Port of the server [default: 30000 for sglang, 8000 for vllm and trt, 23333 for lmdeploy, 8080
    /// for truss]
    #[arg(long)]
    pub port: Option<u16>,

    /// Seconds to wait for the server to become ready; 0 skips the check [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub ready_check_timeout_sec: Option<i64>,

    /// Model name or path; if left out, the first model the server offers
    #[arg(long)]
    pub model: Option<String>,

    /// Model name sent in requests, if it differs from --model
    #[arg(long, value_name = "NAME")]
    pub served_model_name: Option<String>,

    /// Tokenizer: a folder, a tokenizer.json or a hub name; if left out, the one the server names,
    /// else the model's
    #[arg(long, value_name = "PATH_OR_NAME")]
    pub tokenizer: Option<String>,

    /// Headers sent with every call to the server
    #[arg(long, num_args = 1.., value_name = "KEY=VALUE", value_parser = values::header)]
    pub header: Vec<Header>,

    /// JSON object merged into the top level of every request body; it wins over what is there
    #[arg(long, value_name = "JSON", value_parser = values::object)]
    pub extra_request_body: Option<Map<String, Value>>,

    /// Send the bootstrap fields of a decode server that runs without a prefill server
    #[arg(long)]
    pub fake_prefill: bool,
}

/// How requests are dealt to several servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BalanceName {
    /// One after the other, by their place in the plan.
    #[default]
    RoundRobin,
    /// To the one with the fewest requests under way.
    LeastInFlight,
}

impl From<BalanceName> for Balance {
    fn from(name: BalanceName) -> Self {
        match name {
            BalanceName::RoundRobin => Self::RoundRobin,
            BalanceName::LeastInFlight => Self::LeastInFlight,
        }
    }
}

/// Takes the registry's names, and lists them in the help and in errors.
fn backend_parser() -> impl clap::builder::TypedValueParser<Value = BackendKind> {
    use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
    let known = servebench_backends::names().map(PossibleValue::new);
    // Let in so that the registry can say what is the matter with it.
    let never_built = PossibleValue::new(servebench_backends::NEVER_BUILT).hide(true);
    PossibleValuesParser::new(known.chain([never_built]))
        .try_map(|name| name.parse::<BackendKind>())
}
