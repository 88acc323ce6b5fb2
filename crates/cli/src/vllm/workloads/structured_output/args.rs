//! Flags of `structured-output`.

use crate::args::OwnArgs;
use crate::hidden::Header;
use crate::vllm::args::TransportArgs;
use crate::vllm::values;
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};
use serde::Serialize;
use servebench_backends::vllm::VllmBackend;
use servebench_datasets::vllm::StructuredKind;
use servebench_metrics::Slo;
use std::path::PathBuf;

/// Every flag of vLLM's `benchmark_serving_structured_output.py` 0.32.0, and `--structure-type` of older
/// releases: what may be abbreviated.
pub const STRUCTURED_OUTPUT_FLAGS: &[&str] = &[
    "--backend",
    "--base-url",
    "--burstiness",
    "--dataset",
    "--disable-tqdm",
    "--endpoint",
    "--goodput",
    "--help",
    "--host",
    "--ignore-eos",
    "--json-schema-path",
    "--max-concurrency",
    "--metric-percentiles",
    "--model",
    "--no-structured-output",
    "--num-prompts",
    "--output-len",
    "--percentile-metrics",
    "--port",
    "--profile",
    "--random-prefix-len",
    "--request-rate",
    "--result-dir",
    "--result-filename",
    "--save-results",
    "--seed",
    "--structure-type",
    "--structured-output-ratio",
    "--tokenizer",
    "--tokenizer-mode",
    "--trust-remote-code",
];

/// Flags of `structured-output`.
#[derive(Args, Clone, Debug, Default)]
pub struct StructuredOutputArgs {
    /// The server and the model.
    #[command(flatten)]
    pub(super) server: ServerArgs,
    /// What is asked for.
    #[command(flatten)]
    pub(super) question: QuestionArgs,
    /// When requests are sent.
    #[command(flatten)]
    pub(super) pace: PaceArgs,
    /// What is reported.
    #[command(flatten)]
    pub(super) report: ReportArgs,
    /// How requests are carried.
    #[command(flatten)]
    pub(super) transport: TransportArgs,
    /// The simulated server and the client.
    #[command(flatten)]
    pub(super) own: OwnArgs,
}

/// The server and the model.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Target and model")]
pub(super) struct ServerArgs {
    /// The server: openai-chat speaks the chat protocol; vllm, openai, lmdeploy, scalellm, sglang and llama.cpp
    /// that of completions [default: vllm]
    #[arg(long, value_name = "NAME", value_parser = StructuredBackend::parse)]
    pub(super) backend: Option<StructuredBackend>,

    /// Address of the server, as in https://host/prefix; replaces --host and --port
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<String>,

    /// Host of the server [default: 127.0.0.1]
    #[arg(long)]
    pub(super) host: Option<String>,

    /// Port of the server [default: 8000]
    #[arg(long)]
    pub(super) port: Option<u16>,

    /// Path of the endpoint below the address [default: the backend's own]
    #[arg(long, value_name = "PATH")]
    pub(super) endpoint: Option<String>,

    /// Headers sent with every call to the server
    #[arg(long, num_args = 0.., value_name = "KEY=VALUE", value_parser = values::header)]
    pub(super) header: Vec<Header>,

    /// Trust any certificate
    #[arg(long)]
    pub(super) insecure: bool,

    /// Model name or path; if left out, the first model the server offers
    #[arg(long)]
    pub(super) model: Option<String>,

    /// Model name sent in requests, if it differs from --model
    #[arg(long, value_name = "NAME")]
    pub(super) served_model_name: Option<String>,

    /// Tokenizer: a folder, a tokenizer.json or a hub name [default: the model]
    #[arg(long, value_name = "PATH_OR_NAME")]
    pub(super) tokenizer: Option<String>,

    /// Kind of tokenizer: `auto` and `hf` are spoken
    #[arg(long, value_name = "MODE")]
    pub(super) tokenizer_mode: Option<String>,

    /// Has no effect, and says so: no code from a hub is run here
    #[arg(long)]
    pub(super) trust_remote_code: bool,
}

/// What is asked for.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Prompts and constraints")]
pub(super) struct QuestionArgs {
    /// What replies are constrained to
    #[arg(long, value_name = "NAME", default_value = "json",
        value_parser = PossibleValuesParser::new(StructuredKind::ALL.map(StructuredKind::name)))]
    pub(super) dataset: String,

    /// Copy of NousResearch/json-mode-eval for xgrammar_bench, a file or a folder [default: from the hub]
    #[arg(long, value_name = "FILE")]
    pub(super) dataset_path: Option<PathBuf>,

    /// JSON schema of json and json-unique [default: that of a user's profile]
    #[arg(long, value_name = "FILE")]
    pub(super) json_schema_path: Option<PathBuf>,

    /// Flag of older releases: taken where it says what --dataset says anyway
    #[arg(long, value_name = "TYPE")]
    pub(super) structure_type: Option<StructureType>,

    /// Share of the requests that have the constraint
    #[arg(long, value_name = "RATIO", default_value_t = 1.0, value_parser = values::share)]
    pub(super) structured_output_ratio: f64,

    /// No request has the constraint: what the same prompts cost without it
    #[arg(long)]
    pub(super) no_structured_output: bool,

    /// Requests [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) num_prompts: Option<u32>,

    /// Most tokens of each reply
    #[arg(long, value_name = "TOKENS", default_value_t = 128,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) output_len: u32,

    /// Random tokens that all prompts begin with, the same for all
    #[arg(long, value_name = "TOKENS", default_value_t = 0,
        value_parser = clap::value_parser!(u32).range(..=16_777_216))]
    pub(super) random_prefix_len: u32,

    /// Tell the server to go on past the end-of-text token
    #[arg(long)]
    pub(super) ignore_eos: bool,

    /// Seed of all draws: the same seed gives the same requests at the same times
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u32,
}

impl Default for QuestionArgs {
    fn default() -> Self {
        Self {
            dataset: StructuredKind::default().name().to_owned(),
            dataset_path: None,
            json_schema_path: None,
            structure_type: None,
            structured_output_ratio: 1.0,
            no_structured_output: false,
            num_prompts: None,
            output_len: 128,
            random_prefix_len: 0,
            ignore_eos: false,
            seed: 0,
        }
    }
}

/// When requests are sent, and what goes around them.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Load")]
pub(super) struct PaceArgs {
    /// Requests per second; `inf` sends all at once [default: inf]
    #[arg(long, value_name = "RATE")]
    pub(super) request_rate: Option<String>,

    /// Shape of the gamma distribution of the gaps: 1 is a Poisson process, less is burstier [default: 1.0]
    #[arg(long, value_name = "SHAPE")]
    pub(super) burstiness: Option<String>,

    /// Most requests under way at once; the others wait in the client [default: no cap]
    #[arg(long, value_name = "N")]
    pub(super) max_concurrency: Option<i64>,

    /// Profile the server during the run
    #[arg(long)]
    pub(super) profile: bool,

    /// Seconds to wait until the server is ready [default: 0]
    #[arg(long, value_name = "SECONDS")]
    pub(super) ready_check_timeout_sec: Option<i64>,

    /// Show no progress
    #[arg(long)]
    pub(super) disable_tqdm: bool,
}

/// What is reported and where.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Report")]
pub(super) struct ReportArgs {
    /// Latencies to show and keep, separated by commas: ttft, tpot, itl, e2el [default: ttft,tpot,itl]
    #[arg(long, value_name = "NAMES")]
    pub(super) percentile_metrics: Option<String>,

    /// Percentiles of them, separated by commas [default: 99]
    #[arg(long, value_name = "NUMBERS")]
    pub(super) metric_percentiles: Option<String>,

    /// Objectives: a request is good if it meets them all
    #[arg(long, num_args = 1.., value_name = "NAME:MS", value_parser = values::objective)]
    pub(super) goodput: Vec<Slo>,

    /// Write the result to a file, replies included
    #[arg(long)]
    pub(super) save_results: bool,

    /// Folder of the result file [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub(super) result_dir: Option<PathBuf>,

    /// Name of the result file [default: made of ratio, backend, rate, model, dataset and lengths]
    #[arg(long, value_name = "NAME")]
    pub(super) result_filename: Option<PathBuf>,
}

/// `--structure-type` of older releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum StructureType {
    /// A JSON schema.
    #[value(alias = "guided_json")]
    Json,
    /// A grammar.
    #[value(alias = "guided_grammar")]
    Grammar,
    /// A regular expression.
    #[value(alias = "guided_regex")]
    Regex,
    /// One of several words.
    #[value(alias = "guided_choice")]
    Choice,
}

impl StructureType {
    /// Whether that is what the dataset of this kind has.
    pub(super) fn is_of(self, kind: StructuredKind) -> bool {
        self == match kind {
            StructuredKind::Grammar => Self::Grammar,
            StructuredKind::Regex => Self::Regex,
            StructuredKind::Choice => Self::Choice,
            _ => Self::Json,
        }
    }
}

/// A name that the script's `--backend` takes, and the protocol behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct StructuredBackend {
    pub(super) name: &'static str,
    #[serde(skip)]
    pub(super) protocol: VllmBackend,
    /// Whether the field of the constraint is one that its servers are known to heed.
    #[serde(skip)]
    pub(super) heeds: bool,
}

impl Default for StructuredBackend {
    fn default() -> Self {
        ALL[0]
    }
}

const ALL: [StructuredBackend; 7] = [
    backend("vllm", VllmBackend::Vllm, true),
    backend("openai", VllmBackend::Openai, true),
    backend("openai-chat", VllmBackend::OpenaiChat, true),
    backend("lmdeploy", VllmBackend::Openai, false),
    backend("scalellm", VllmBackend::Openai, false),
    backend("sglang", VllmBackend::Openai, false),
    backend("llama.cpp", VllmBackend::Openai, false),
];

const fn backend(name: &'static str, protocol: VllmBackend, heeds: bool) -> StructuredBackend {
    StructuredBackend { name, protocol, heeds }
}

impl StructuredBackend {
    fn parse(name: &str) -> Result<Self, String> {
        let found = ALL.into_iter().find(|backend| backend.name == name);
        found.ok_or_else(|| match name {
            "tgi" | "tensorrt-llm" | "deepspeed-mii" => {
                "the script sends it no constraint, so there is nothing to measure here; bench-serving and \
                 bench-vllm serve measure plain replies"
                    .to_owned()
            }
            "openai-audio" => "it takes recordings, and there are none here".to_owned(),
            _ => format!("known: {}", ALL.map(|backend| backend.name).join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_are_known_by_the_scripts_names() {
        for known in ALL {
            assert_eq!(StructuredBackend::parse(known.name), Ok(known));
        }
        for (name, why) in [
            ("tgi", "no constraint"),
            ("openai-audio", "recordings"),
            ("vllm-pooling", "openai-chat"),
        ] {
            let said = StructuredBackend::parse(name).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn the_type_of_old_must_be_that_of_the_dataset() {
        let types = [
            StructureType::Json,
            StructureType::Grammar,
            StructureType::Regex,
            StructureType::Choice,
        ];
        for kind in StructuredKind::ALL {
            assert_eq!(types.iter().filter(|old| old.is_of(kind)).count(), 1, "{kind:?}");
        }
        assert!(StructureType::Json.is_of(StructuredKind::XgrammarBench));
        assert!(StructureType::Choice.is_of(StructuredKind::Choice));
    }
}
