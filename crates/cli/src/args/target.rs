//! The server and the model.

use super::values;
use clap::Args;
use serde_json::{Map, Value};
use servebench_backends::BackendKind;

/// The server and the model.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Target and model")]
pub struct TargetArgs {
    /// The server's protocol [default: sglang]
    ///
    /// `sglang` and `sglang-native` use `/generate`; `sglang-oai`, `vllm` and `lmdeploy` use
    /// `/v1/completions`; the `-chat` backends use `/v1/chat/completions`.
    #[arg(long, value_name = "NAME", value_parser = backend_parser())]
    pub backend: Option<BackendKind>,

    /// Address of the server, as in http://127.0.0.1:30000; replaces --host and --port
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// Host of the server [default: 0.0.0.0]
    #[arg(long)]
    pub host: Option<String>,

    /// Port of the server [default: 30000 for sglang, 8000 for vllm, 23333 for lmdeploy]
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
    pub header: Vec<(String, String)>,

    /// JSON object merged into the top level of every request body; it wins over what is there
    #[arg(long, value_name = "JSON", value_parser = values::object)]
    pub extra_request_body: Option<Map<String, Value>>,

    /// Send the bootstrap fields of a decode server that runs without a prefill server
    #[arg(long)]
    pub fake_prefill: bool,
}

/// Takes the registry's names, and lists them in the help and in errors.
fn backend_parser() -> impl clap::builder::TypedValueParser<Value = BackendKind> {
    use clap::builder::TypedValueParser;
    clap::builder::PossibleValuesParser::new(servebench_backends::names())
        .try_map(|name| name.parse::<BackendKind>())
}
