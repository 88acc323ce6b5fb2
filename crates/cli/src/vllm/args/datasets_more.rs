//! What can be said of each dataset alone.

use super::super::values::object;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Map, Value};
use servebench_datasets::vllm::{MediaBuckets, SpeedBenchSubset};

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

/// What media go with prompts.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset: random-mm, custom_image, custom_audio")]
pub struct MediaArgs {
    /// Images and videos in a random request [default: 1]
    #[arg(long, value_name = "N")]
    pub random_mm_base_items_per_request: Option<u32>,

    /// How far that number may be from it, from 0 to 1 [default: 0.0]
    #[arg(long, value_name = "RATIO")]
    pub random_mm_num_mm_items_range_ratio: Option<f64>,

    /// Most images and videos in a request [default: {"image": 255, "video": 1}]
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub random_mm_limit_mm_per_prompt: Option<Map<String, Value>>,

    /// Shapes and their weights: {(HEIGHT, WIDTH, FRAMES): WEIGHT, ...}; 1 frame is an image, more
    /// are a video of 30 in a second [default: images of 256x256 and 1280x720]
    #[arg(long, value_name = "MAPPING")]
    pub random_mm_bucket_config: Option<MediaBuckets>,

    /// Read image files here and send them along, in place of their addresses
    #[arg(long)]
    pub custom_ensure_client_side_data: bool,
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

/// Which dataset of the hub is taken, and which of its rows.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset: hf")]
pub struct HfArgs {
    /// Name on the hub, where --dataset-path is a file or folder with a copy
    #[arg(long, value_name = "OWNER/NAME")]
    pub hf_name: Option<String>,

    /// Part of the dataset
    #[arg(long, value_name = "NAME")]
    pub hf_subset: Option<String>,

    /// Split of the dataset [default: the dataset's usual one]
    #[arg(long, value_name = "NAME")]
    pub hf_split: Option<String>,

    /// Output length, in place of the dataset's own
    #[arg(long, value_name = "TOKENS")]
    pub hf_output_len: Option<u32>,

    /// Taken: a dataset is always read from its files, and shuffled as a whole
    #[arg(long)]
    pub no_stream: bool,

    /// Least distance of an edit in edit_5k_char and edit_10k_char [default: 0.0]
    #[arg(long, value_name = "DISTANCE")]
    pub blazedit_min_distance: Option<f64>,

    /// Most distance of an edit in them [default: 1.0]
    #[arg(long, value_name = "DISTANCE")]
    pub blazedit_max_distance: Option<f64>,

    /// Shortest recording of speech datasets, in seconds [default: 0.0]
    #[arg(long, value_name = "SECONDS")]
    pub asr_min_audio_len_sec: Option<f64>,

    /// Longest recording of them, in seconds; 0 for any [default: inf]
    #[arg(long, value_name = "SECONDS")]
    pub asr_max_audio_len_sec: Option<f64>,

    /// Categories of the function-calling leaderboard, by commas [default: simple,live_simple,multiple]
    #[arg(long, value_name = "NAMES")]
    pub bfcl_categories: Option<String>,
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
