//! What can be said of each dataset alone.

use clap::Args;
use clap::builder::PossibleValuesParser;
use servebench_datasets::vllm::SpeedBenchSubset;

/// How `random-rerank` and `prefix_repetition` make their rows.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset: random-rerank, prefix_repetition")]
pub struct GeneratedArgs {
    /// The model embeds query and documents apart, in place of reading both as one text
    #[arg(long)]
    pub no_reranker: bool,

    /// Tokens that the prompts of a group begin with [default: 256]
    #[arg(long, value_name = "TOKENS")]
    pub prefix_repetition_prefix_len: Option<u32>,

    /// Tokens of each prompt after those [default: 256]
    #[arg(long, value_name = "TOKENS")]
    pub prefix_repetition_suffix_len: Option<u32>,

    /// Groups; --num-prompts is rounded down to a multiple of it [default: 10]
    #[arg(long, value_name = "N")]
    pub prefix_repetition_num_prefixes: Option<usize>,

    /// Output length [default: 128]
    #[arg(long, value_name = "TOKENS")]
    pub prefix_repetition_output_len: Option<u32>,
}

/// Which questions are asked.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset: spec_bench, speed_bench, sonnet")]
pub struct QuestionArgs {
    /// Output length of spec_bench [default: 256]
    #[arg(long, value_name = "TOKENS")]
    pub spec_bench_output_len: Option<u32>,

    /// Only its questions of this category, such as writing, math, coding, summarization or rag
    #[arg(long, value_name = "NAME")]
    pub spec_bench_category: Option<String>,

    /// File of speed_bench, which --dataset-path is the folder of [default: qualitative]
    #[arg(
        long,
        value_name = "NAME",
        value_parser = PossibleValuesParser::new(SpeedBenchSubset::ALL.map(SpeedBenchSubset::name))
    )]
    pub speed_bench_dataset_subset: Option<String>,

    /// Output length of speed_bench [default: 4096]
    #[arg(long, value_name = "TOKENS")]
    pub speed_bench_output_len: Option<u32>,

    /// Only its questions of this category: of qualitative such as coding or rag, of the others
    /// high_entropy, mixed or low_entropy
    #[arg(long, value_name = "NAME")]
    pub speed_bench_category: Option<String>,

    /// Most tokens of a prompt of sonnet, chat template and all [default: 550]
    #[arg(long, value_name = "TOKENS")]
    pub sonnet_input_len: Option<u32>,

    /// Output length of sonnet [default: 150]
    #[arg(long, value_name = "TOKENS")]
    pub sonnet_output_len: Option<u32>,

    /// About how many tokens all prompts of sonnet begin with [default: 200]
    #[arg(long, value_name = "TOKENS")]
    pub sonnet_prefix_len: Option<u32>,
}

/// How traces are replayed.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset: timed_trace, burstgpt")]
pub struct TraceArgs {
    /// Send each request at the time that the trace has for it [default for timed_trace]; burstgpt
    /// then takes its first rows, and time begins with the first
    #[arg(long, overrides_with = "no_self_timed")]
    pub self_timed: bool,

    /// Send at --request-rate, whatever the trace says
    #[arg(long)]
    pub no_self_timed: bool,

    /// Tokens of a block of timed_trace [default: 16]
    #[arg(long, value_name = "TOKENS")]
    pub timed_trace_chunk_hash_size: Option<u32>,

    /// Seconds in a unit of its times: 0.001 for milliseconds [default: 1]
    #[arg(long, value_name = "SECONDS")]
    pub timed_trace_sec_multiplier: Option<f64>,

    /// Begin with its first row at once, however late it comes in the trace
    #[arg(long)]
    pub timed_trace_rebase: bool,

    /// Its field with the time [default: timestamp]
    #[arg(long, value_name = "FIELD")]
    pub timed_trace_label_timestamp: Option<String>,

    /// Its field with the prompt's length [default: input_length]
    #[arg(long, value_name = "FIELD")]
    pub timed_trace_label_input_length: Option<String>,

    /// Its field with the output's length [default: output_length]
    #[arg(long, value_name = "FIELD")]
    pub timed_trace_label_output_length: Option<String>,

    /// Its field with the numbers of the prompt's blocks; prompts share what has the same number
    /// [default: hash_ids]
    #[arg(long, value_name = "FIELD")]
    pub timed_trace_label_hash_ids: Option<String>,
}

impl TraceArgs {
    /// What was said of the trace's times, if anything.
    pub(crate) const fn timed(&self) -> Option<bool> {
        match (self.self_timed, self.no_self_timed) {
            (true, _) => Some(true),
            (false, true) => Some(false),
            (false, false) => None,
        }
    }
}
