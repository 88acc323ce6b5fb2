//! The server and the model.

use crate::hidden::Header;
use clap::{Args, ValueEnum};
use serde::Serialize;
use servebench_backends::vllm::VllmBackend;

/// The server and the model.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Target and model")]
pub struct VllmTargetArgs {
    /// The request protocol [default: openai]
    #[arg(long, value_name = "NAME", value_parser = backend_parser())]
    pub backend: Option<VllmBackend>,

    /// Address of the server, as in https://host/prefix; replaces --host and --port
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// Host of the server [default: 127.0.0.1]
    #[arg(long)]
    pub host: Option<String>,

    /// Port of the server [default: 8000]
    #[arg(long)]
    pub port: Option<u16>,

    /// Path of the endpoint below the address [default: the backend's own]
    #[arg(long, value_name = "PATH")]
    pub endpoint: Option<String>,

    /// Headers sent with every call to the server
    #[arg(long, num_args = 0.., value_name = "KEY=VALUE", value_parser = super::super::values::header)]
    pub header: Vec<Header>,

    /// Trust any certificate
    #[arg(long)]
    pub insecure: bool,

    /// Model name or path; if left out, the first model the server offers
    #[arg(long)]
    pub model: Option<String>,

    /// Model name sent in requests, if it differs from --model
    #[arg(long, value_name = "NAME")]
    pub served_model_name: Option<String>,

    /// Tokenizer: a folder, a tokenizer.json or a hub name [default: the model]
    #[arg(long, value_name = "PATH_OR_NAME")]
    pub tokenizer: Option<String>,

    /// Kind of tokenizer: `auto` and `hf` are spoken [default: auto]
    #[arg(long, value_name = "MODE")]
    pub tokenizer_mode: Option<String>,

    /// Has no effect, and says so: no code from a hub is run here
    #[arg(long)]
    pub trust_remote_code: bool,

    /// Use no tokenizer: tokens are neither drawn nor counted
    #[arg(long)]
    pub skip_tokenizer_init: bool,

    /// LoRA adapters to spread over the requests
    #[arg(long, num_args = 1.., value_name = "NAME")]
    pub lora_modules: Vec<String>,

    /// How adapters are spread [default: random]
    #[arg(long, value_name = "HOW")]
    pub lora_assignment: Option<LoraAssignment>,
}

/// How LoRA adapters are spread over requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoraAssignment {
    /// Each as often as the others, at random.
    #[default]
    Random,
    /// One after the other.
    RoundRobin,
}

fn backend_parser() -> impl clap::builder::TypedValueParser<Value = VllmBackend> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(VllmBackend::all().map(VllmBackend::name))
        .try_map(|name| name.parse::<VllmBackend>())
}
