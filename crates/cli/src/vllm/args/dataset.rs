//! What is sent.

use super::{GeneratedArgs, HfArgs, MediaArgs, QuestionArgs, TraceArgs};
use clap::{Args, ValueEnum};
use servebench_datasets::vllm::RangeRatio;
use std::path::PathBuf;

/// The datasets that can be sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum DatasetName {
    /// A ShareGPT file.
    #[value(name = "sharegpt")]
    ShareGpt,
    /// Random tokens.
    #[default]
    Random,
    /// A JSONL file of prompts.
    Custom,
    /// A random query and random documents.
    #[value(name = "random-rerank")]
    RandomRerank,
    /// Random prompts that share prefixes.
    PrefixRepetition,
    /// The lengths of the BurstGPT trace.
    #[value(name = "burstgpt")]
    BurstGpt,
    /// The questions of Spec-Bench.
    SpecBench,
    /// The questions of SPEED-Bench.
    SpeedBench,
    /// A trace of lengths, blocks and times.
    TimedTrace,
    /// Random prompts with images.
    #[value(name = "random-mm")]
    RandomMedia,
    /// A JSONL file of prompts with images.
    CustomImage,
    /// A JSONL file of prompts with audio.
    CustomAudio,
    /// A dataset of the hub.
    Hf,
    /// Lines of a text.
    Sonnet,
}

/// What is sent: dataset and sizes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset")]
pub struct VllmDatasetArgs {
    /// Where prompts come from [default: random]
    #[arg(long, value_name = "NAME")]
    pub dataset_name: Option<DatasetName>,

    /// File to read, or folder of speed_bench; for hf a name on the hub, or a copy
    #[arg(long, value_name = "FILE")]
    pub dataset_path: Option<PathBuf>,

    /// Send fewer requests than asked for where a file has fewer rows
    #[arg(long)]
    pub no_oversample: bool,

    /// Take rows in the order of the file
    #[arg(long)]
    pub disable_shuffle: bool,

    /// Prompt length, for --random-input-len
    #[arg(long, value_name = "TOKENS")]
    pub input_len: Option<u32>,

    /// Output length of every dataset whose rows have none of their own, as its own flag sets it
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true)]
    pub output_len: Option<i64>,

    /// Prompt length of random data [default: 1024]
    #[arg(long, value_name = "TOKENS")]
    pub random_input_len: Option<u32>,

    /// Output length of random data [default: 128]
    #[arg(long, value_name = "TOKENS")]
    pub random_output_len: Option<u32>,

    /// How far random lengths may be from those, below 1: a number, or {"input":R,"output":R} [default: 0.0]
    #[arg(long, value_name = "RATIO")]
    pub random_range_ratio: Option<RangeRatio>,

    /// Tokens that all random prompts begin with, on top of their own [default: 0]
    #[arg(long, value_name = "TOKENS")]
    pub random_prefix_len: Option<u32>,

    /// Random prompts in one request [default: 1]
    #[arg(long, value_name = "N")]
    pub random_batch_size: Option<usize>,

    /// Output length of ShareGPT data, in place of the reply's own
    #[arg(long, value_name = "TOKENS")]
    pub sharegpt_output_len: Option<u32>,

    /// Output length of custom data; -1 takes each row's own [default: 256]
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true)]
    pub custom_output_len: Option<i64>,

    /// How some datasets make their rows.
    #[command(flatten)]
    pub generated: GeneratedArgs,

    /// What media go with prompts.
    #[command(flatten)]
    pub media: MediaArgs,

    /// Which questions are asked.
    #[command(flatten)]
    pub questions: QuestionArgs,

    /// Which dataset of the hub is taken.
    #[command(flatten)]
    pub hf: HfArgs,

    /// How traces are replayed.
    #[command(flatten)]
    pub trace: TraceArgs,
}
