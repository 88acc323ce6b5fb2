//! The datasets of `vllm bench`: its rows, drawn with its generators.
//!
//! One file for each dataset, one variant of [`VllmDataset`] with the dataset's own options, one arm in
//! [`load`]. What they share (the filter of lengths, oversampling, fitting of random prompts) is in
//! `shared`, `fit` and `lengths`.

mod buckets;
mod burstgpt;
mod csv;
mod custom;
mod custom_media;
mod fit;
mod hf;
mod lengths;
mod media;
mod multi_turn;
mod prefix_repetition;
mod questions;
mod random;
mod random_mm;
mod rerank;
mod shared;
mod sharegpt;
mod sonnet;
mod structured;
mod timed_trace;
#[cfg(feature = "video")]
mod video;

pub use buckets::{MediaBuckets, MediaBucketsError, MediaShape};
pub use custom::CustomOptions;
pub use hf::HfOptions;
pub use lengths::RangeRatio;
pub use multi_turn::{
    GeneratorConfig, LengthDistribution, MultiTurnConversation, MultiTurnInput, ShareGptConversion,
    ShareGptConverted, convert_share_gpt, generate_multi_turn, load_multi_turn,
};
pub use prefix_repetition::PrefixRepetitionOptions;
pub use questions::{QuestionOptions, SpeedBenchSubset};
pub use random::RandomOptions;
pub use random_mm::RandomMediaOptions;
pub use rerank::RerankOptions;
pub use sharegpt::ShareGptOptions;
pub use sonnet::SonnetOptions;
pub use structured::{StructuredKind, StructuredLoaded, StructuredOptions, load_structured};
pub use timed_trace::TimedTraceOptions;

use crate::DatasetError;
use custom_media::Kind;
use serde::Serialize;
use serde_json::{Map, Value};
use servebench_core::Sample;
use servebench_core::random::Draws;
use servebench_tokens::{Hub, Tokenizer};
use std::path::{Path, PathBuf};

/// What is sampled from, with its own options.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "name", rename_all = "snake_case")]
#[non_exhaustive]
pub enum VllmDataset {
    /// Runs of consecutive token ids.
    Random(RandomOptions),
    /// A ShareGPT file.
    #[serde(rename = "sharegpt")]
    ShareGpt(ShareGptOptions),
    /// A JSONL file of prompts.
    Custom(CustomOptions),
    /// Random prompts that share prefixes.
    PrefixRepetition(PrefixRepetitionOptions),
    /// The lengths of the BurstGPT trace.
    #[serde(rename = "burstgpt")]
    BurstGpt {
        /// Its first rows at their times, in place of rows drawn at random.
        timed: bool,
    },
    /// Lines of a text.
    Sonnet(SonnetOptions),
    /// The questions of Spec-Bench.
    SpecBench(QuestionOptions),
    /// The questions of SPEED-Bench.
    SpeedBench {
        /// Its file.
        subset: SpeedBenchSubset,
        /// What is taken of it.
        #[serde(flatten)]
        questions: QuestionOptions,
    },
    /// A trace of lengths, blocks and times.
    TimedTrace(TimedTraceOptions),
    /// A random query and random documents.
    #[serde(rename = "random-rerank")]
    RandomRerank(RerankOptions),
    /// Random prompts with images.
    #[serde(rename = "random-mm")]
    RandomMedia(RandomMediaOptions),
    /// A JSONL file of prompts with images.
    CustomImage {
        /// How its rows are used.
        #[serde(flatten)]
        rows: CustomOptions,
        /// Whether image files are read here and sent along.
        client_side_data: bool,
    },
    /// A JSONL file of prompts with audio.
    CustomAudio(CustomOptions),
    /// A dataset of the hub.
    Hf(HfOptions),
    /// Prompts whose replies must have a given form.
    Structured(StructuredOptions),
}

impl VllmDataset {
    /// The name on the command line.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Random(_) => "random",
            Self::ShareGpt(_) => "sharegpt",
            Self::Custom(_) => "custom",
            Self::PrefixRepetition(_) => "prefix_repetition",
            Self::BurstGpt { .. } => "burstgpt",
            Self::Sonnet(_) => "sonnet",
            Self::SpecBench(_) => "spec_bench",
            Self::SpeedBench { .. } => "speed_bench",
            Self::TimedTrace(_) => "timed_trace",
            Self::RandomRerank(_) => "random-rerank",
            Self::RandomMedia(_) => "random-mm",
            Self::CustomImage { .. } => "custom_image",
            Self::CustomAudio(_) => "custom_audio",
            Self::Hf(_) => "hf",
            Self::Structured(own) => own.kind.name(),
        }
    }

    /// Whether its prompts are checked against the server's own tokenizer.
    pub const fn is_aligned(&self) -> bool {
        matches!(self, Self::Random(_) | Self::PrefixRepetition(_))
    }

    /// Whether generation runs to its full length on OpenAI-compatible backends.
    pub const fn ignores_eos(&self) -> bool {
        matches!(self, Self::Random(_) | Self::RandomMedia(_) | Self::TimedTrace(_))
    }

    /// Whether it makes its rows and a file is refused.
    pub const fn is_generated(&self) -> bool {
        matches!(self, Self::Random(_) | Self::RandomRerank(_) | Self::RandomMedia(_))
    }

    /// Whether its prompts go through the chat template, where that is not skipped.
    pub const fn is_templated(&self) -> bool {
        matches!(
            self,
            Self::Custom(_) | Self::Sonnet(_) | Self::SpecBench(_) | Self::SpeedBench { .. }
        )
    }

    /// Whether its rows are messages with images, videos or audio, which only some backends take.
    pub const fn has_media(&self) -> bool {
        matches!(self, Self::RandomMedia(_) | Self::CustomImage { .. } | Self::CustomAudio(_))
    }

    /// Whether its rows have times.
    pub const fn has_timestamps(&self) -> bool {
        matches!(self, Self::TimedTrace(_) | Self::BurstGpt { timed: true })
    }
}

/// What is sampled, and how.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VllmDatasetOptions {
    /// The dataset.
    pub dataset: VllmDataset,
    /// Its file.
    pub path: Option<PathBuf>,
    /// Rows to sample; `None`: all there are.
    pub num_prompts: Option<usize>,
    /// Seed of its draws.
    pub seed: u32,
    /// Send fewer requests than asked for where a file has fewer rows.
    pub no_oversample: bool,
    /// Take rows in the order of the file.
    pub disable_shuffle: bool,
    /// Send prompts as they are, not through the chat template.
    pub skip_chat_template: bool,
    /// Further variables of the chat template.
    pub chat_template_kwargs: Map<String, Value>,
}

impl VllmDatasetOptions {
    /// All rows of a dataset, with nothing else said.
    pub fn new(dataset: VllmDataset) -> Self {
        Self {
            dataset,
            path: None,
            num_prompts: None,
            seed: 0,
            no_oversample: false,
            disable_shuffle: false,
            skip_chat_template: false,
            chat_template_kwargs: Map::new(),
        }
    }
}

/// Rows, ready to be sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VllmLoaded {
    /// The rows in plan order.
    pub samples: Vec<Sample>,
    /// Whether requests go by an id of their own (prefix and index).
    pub request_ids: bool,
    /// By how many tokens prompts miss their lengths in the sum, where they were fitted to one.
    pub mismatch: u64,
    /// What the user should know.
    pub warnings: Vec<String>,
}

/// Samples rows. `draws` are the tool's global generators, as its seeding left them.
///
/// # Errors
///
/// A file that cannot be read or has no usable row, options that contradict each other, a tokenizer that
/// is missing (`None`: the run has none) or fails.
pub fn load(
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    load_from(options, tokenizer, None, draws)
}

/// Samples rows as [`load`] does; what is not on this machine is fetched from the hub, if there is one.
///
/// # Errors
///
/// Those of [`load`], and whatever keeps a dataset from being fetched.
pub fn load_from(
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    hub: Option<&Hub>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    match &options.dataset {
        VllmDataset::Random(random) => random::load(random, options, tokenizer),
        VllmDataset::ShareGpt(own) => sharegpt::load(own, options, tokenizer, draws),
        VllmDataset::Custom(custom) => custom::load(custom, options, tokenizer, draws),
        VllmDataset::PrefixRepetition(own) => {
            prefix_repetition::load(own, options, tokenizer, draws)
        }
        VllmDataset::BurstGpt { timed } => burstgpt::load(*timed, options, tokenizer),
        VllmDataset::Sonnet(own) => sonnet::load(own, options, tokenizer, draws),
        VllmDataset::SpecBench(own) => questions::load_spec_bench(own, options, tokenizer, draws),
        VllmDataset::SpeedBench { subset, questions } => {
            questions::load_speed_bench(*subset, questions, options, tokenizer, draws)
        }
        VllmDataset::TimedTrace(own) => timed_trace::load(own, options, tokenizer),
        VllmDataset::RandomRerank(own) => rerank::load(own, options, tokenizer),
        VllmDataset::RandomMedia(own) => random_mm::load(own, options, tokenizer),
        VllmDataset::CustomImage { rows, client_side_data } => {
            let kind = Kind::Image { inside: *client_side_data };
            custom_media::load(kind, rows, options, tokenizer, draws)
        }
        VllmDataset::CustomAudio(rows) => {
            custom_media::load(Kind::Audio, rows, options, tokenizer, draws)
        }
        VllmDataset::Hf(own) => hf::load(own, options, tokenizer, hub, draws),
        VllmDataset::Structured(own) => {
            load_structured(own, options, tokenizer, hub, draws).map(|loaded| loaded.rows)
        }
    }
}

pub(crate) use multi_turn::fuzzed as fuzzed_multi_turn;

/// The body of a fuzz target: bytes as a row of each file that is read.
pub(crate) fn fuzzed(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let tokenizer = Tokenizer::byte_level();
    if let Ok(Some(sample)) = sharegpt::sample(&text, &ShareGptOptions::default(), &tokenizer) {
        assert!(shared::is_usual(sample.prompt_len, sample.output_len, false), "an unusual length");
    }
    let own = CustomOptions { output_len: None };
    if custom::row(&text, &own, false).is_ok() {
        assert!(text.contains("output_tokens"), "a length from nowhere");
    }
    drop(burstgpt::rows(&text, Path::new("trace"), true));
    for place in [questions::Place::Turns, questions::Place::Messages] {
        drop(questions::question(&text, place, true));
    }
    let custom = CustomOptions::default();
    drop(custom_media::Row::read(&text, Kind::Image { inside: false }, &custom));
    // What names a file would have it read.
    if serde_json::from_str(&text).is_ok_and(|row: Value| !row["audio"].is_string()) {
        drop(custom_media::Row::read(&text, Kind::Audio, &custom));
    }
    drop(hf::Call::read(&text));
    structured::fuzzed(&text);
    drop(text.parse::<MediaBuckets>());
    drop(timed_trace::Row::read(&text, &TimedTraceOptions::default()));
}
