//! What is sent.

use super::{AgenticArgs, ImageArgs, MooncakeArgs, SharedPrefixArgs, SpeedBenchArgs, values};
use clap::Args;
use servebench_datasets::DatasetName;
use std::path::PathBuf;

/// What is sent: dataset, sizes, seed.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset")]
pub struct DatasetArgs {
    /// Where prompts come from [default: sharegpt]
    ///
    /// `sharegpt`: a ShareGPT file. `custom`: a JSONL file of conversations. `random`: prompts of
    /// the asked lengths cut from the ShareGPT file. `random-ids`: running token ids, from no file.
    /// `random-words`: words that are one token each, of exact lengths, from no file.
    /// `generated-shared-prefix`: groups of random prompts that begin alike. `mooncake`: the requests
    /// of a trace, at its times. `openai`: a JSONL file of chat requests, with their tools and settings.
    /// `agentic-trace`: conversations whose turns are sent one after the other, with the server's replies.
    /// `longbench_v2`: questions about long documents, from a file or the hub. `speed-bench`: a file of
    /// SPEED-Bench prompts, whose text is more or less predictable. `image`: random text with pictures.
    /// `mmmu`: questions about pictures, from a file or the hub.
    #[arg(long, value_name = "NAME", value_parser = dataset_parser())]
    pub dataset_name: Option<DatasetName>,

    /// File to read; `sharegpt`, `random`, `longbench_v2`, `mmmu` fetch theirs once if it is left out
    ///
    /// `longbench_v2`, `speed-bench` and `mmmu` take a Parquet file, a file of a JSON object a line, a JSON array,
    /// or a folder of such files.
    #[arg(long, value_name = "FILE")]
    pub dataset_path: Option<PathBuf>,

    /// Requests to send [default: 1000]
    #[arg(long, value_name = "N")]
    pub num_prompts: Option<usize>,

    /// Stop with exit code 3 when the dataset has fewer usable rows than --num-prompts
    ///
    /// Without this the rows there are get sent, a warning tells how many and why, and the result holds
    /// the number that was sent.
    #[arg(long)]
    pub require_rows: bool,

    /// Output length of every request, in place of its own (sharegpt, custom, openai, agentic-trace, longbench_v2)
    #[arg(long, value_name = "TOKENS")]
    pub sharegpt_output_len: Option<u32>,

    /// Drop rows whose prompt and reply are longer than this (sharegpt, custom, longbench_v2)
    #[arg(long, value_name = "TOKENS")]
    pub sharegpt_context_len: Option<u32>,

    /// Longest prompt (random, random-ids, random-words), or the text of one (image) [default: 1024]
    #[arg(long, value_name = "TOKENS")]
    pub random_input_len: Option<u32>,

    /// Longest output (random, random-ids, random-words, image), or all outputs (mmmu) [default: 1024]
    #[arg(long, value_name = "TOKENS")]
    pub random_output_len: Option<u32>,

    /// Shortest length as a share of the longest; lengths are drawn evenly between [default: 0.0]
    ///
    /// 1.0 makes every length the asked one. The default draws from 1 to the asked length: half of
    /// it on average.
    #[arg(long, value_name = "RATIO", value_parser = values::ratio)]
    pub random_range_ratio: Option<f64>,

    /// Text appended to every prompt (sharegpt, custom)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub prompt_suffix: Option<String>,

    /// Put every prompt through the tokenizer's chat template (sharegpt, custom)
    #[arg(long)]
    pub apply_chat_template: bool,

    /// Send token ids instead of text (backend sglang; the random sets, generated-shared-prefix)
    #[arg(long)]
    pub tokenize_prompt: bool,

    /// Seed of all draws: the same seed gives the same requests at the same times [default: 42]
    #[arg(long)]
    pub seed: Option<u32>,

    /// Make prompts of `random` and `random-ids` tokenize to just the asked length
    ///
    /// Without it the prompts are those of the Python tool, whose text may tokenize to another
    /// length than asked for.
    #[arg(long)]
    pub exact_lengths: bool,

    /// The shape of `generated-shared-prefix`.
    #[command(flatten)]
    pub shared_prefix: SharedPrefixArgs,

    /// How `mooncake` is replayed.
    #[command(flatten)]
    pub mooncake: MooncakeArgs,

    /// The part of `agentic-trace` that is taken.
    #[command(flatten)]
    pub agentic: AgenticArgs,

    /// The rows of `speed-bench` that are taken.
    #[command(flatten)]
    pub speed_bench: SpeedBenchArgs,

    /// The pictures of `image`.
    #[command(flatten)]
    pub image: ImageArgs,
}

/// Takes the names of the datasets, and lists them in the help and in errors.
fn dataset_parser() -> impl clap::builder::TypedValueParser<Value = DatasetName> {
    use clap::builder::TypedValueParser;
    clap::builder::PossibleValuesParser::new(DatasetName::ALL.map(DatasetName::name)).try_map(
        |name| DatasetName::from_name(&name).ok_or_else(|| format!("no dataset is called {name}")),
    )
}
