//! What to load.

use crate::{
    AgenticOptions, DatasetError, ImageOptions, MooncakeOptions, SharedPrefixOptions,
    SpeedBenchOptions,
};
use serde::Serialize;
use std::path::PathBuf;

/// The datasets there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
#[non_exhaustive]
pub enum DatasetName {
    /// Conversations of a ShareGPT file.
    ShareGpt,
    /// Conversations of a JSONL file.
    Custom,
    /// ShareGPT prompts, repeated or cut to drawn lengths.
    Random,
    /// Runs of consecutive token ids of drawn lengths.
    RandomIds,
    /// Random words that are one token each.
    RandomWords,
    /// Groups of random prompts that begin alike.
    SharedPrefix,
    /// The requests of a trace, at its times.
    Mooncake,
    /// Chat requests of a JSONL file, with their tools and settings.
    OpenAi,
    /// Conversations of several turns, each with the server's own replies to those before it.
    AgenticTrace,
    /// Questions about long documents (LongBench v2).
    LongBench,
    /// Prompts of more or less predictable text (SPEED-Bench).
    SpeedBench,
    /// Random text with pictures.
    Image,
    /// Questions about pictures (MMMU).
    Mmmu,
}

impl DatasetName {
    /// Every dataset.
    pub const ALL: [Self; 13] = [
        Self::ShareGpt,
        Self::Custom,
        Self::Random,
        Self::RandomIds,
        Self::RandomWords,
        Self::SharedPrefix,
        Self::Mooncake,
        Self::OpenAi,
        Self::AgenticTrace,
        Self::LongBench,
        Self::SpeedBench,
        Self::Image,
        Self::Mmmu,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ShareGpt => "sharegpt",
            Self::Custom => "custom",
            Self::Random => "random",
            Self::RandomIds => "random-ids",
            Self::RandomWords => "random-words",
            Self::SharedPrefix => "generated-shared-prefix",
            Self::Mooncake => "mooncake",
            Self::OpenAi => "openai",
            Self::AgenticTrace => "agentic-trace",
            Self::LongBench => "longbench_v2",
            Self::SpeedBench => "speed-bench",
            Self::Image => "image",
            Self::Mmmu => "mmmu",
        }
    }

    /// The dataset of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dataset| dataset.name() == name)
    }

    /// True for the sets whose rows have a time of their own.
    pub const fn has_timestamps(self) -> bool {
        matches!(self, Self::Mooncake)
    }

    /// True for the sets whose rows have pictures.
    pub const fn has_pictures(self) -> bool {
        matches!(self, Self::Image | Self::Mmmu)
    }

    /// True for the sets whose lengths are drawn.
    pub const fn is_random(self) -> bool {
        matches!(self, Self::Random | Self::RandomIds | Self::RandomWords)
    }
}

impl From<DatasetName> for &'static str {
    fn from(name: DatasetName) -> Self {
        name.name()
    }
}

/// What to load and how to shape it. The defaults are the Python tool's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DatasetOptions {
    /// The dataset.
    pub name: DatasetName,
    /// Its file; for `longbench_v2` and `speed-bench` a folder as well. Without one, `sharegpt` and
    /// `random` use the ShareGPT corpus of the hub, and `longbench_v2` its dataset there.
    pub path: Option<PathBuf>,
    /// Samples wanted, at least 1.
    pub num_prompts: usize,
    /// Whether fewer usable rows than that are an error; else they are a warning.
    pub require_rows: bool,
    /// Longest text of `random`, `random-ids` and `image`, in tokens; 0 makes `image` pictures alone.
    pub random_input_len: u32,
    /// Longest output of `random`, `random-ids` and `image`, and output of every `mmmu` row, in tokens; 0
    /// where none is generated.
    pub random_output_len: u32,
    /// Shortest length as a share of the longest, 0 to 1; lengths are uniform between the two.
    pub random_range_ratio: f64,
    /// Output length of every `sharegpt` or `custom` row (at least 4), instead of its own, or of every
    /// `longbench_v2` row, instead of 10.
    pub sharegpt_output_len: Option<u32>,
    /// Longest `sharegpt`, `custom` or `longbench_v2` row, prompt and output together, in tokens; 0 is
    /// no limit.
    pub sharegpt_context_len: Option<u32>,
    /// Shortest `longbench_v2` prompt that is taken, in tokens; any where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shortest_prompt: Option<u32>,
    /// Text put after every `sharegpt` or `custom` prompt.
    pub prompt_suffix: String,
    /// Render `sharegpt` and `custom` prompts by the tokenizer's chat template.
    pub apply_chat_template: bool,
    /// Send token ids instead of text (`random`, `random-ids`, `generated-shared-prefix`).
    pub tokenize_prompt: bool,
    /// Make the lengths of `random` and `random-ids` prompts real ones, at the price of parity:
    /// the prompts then hold no special tokens and encode to the length drawn.
    pub exact_lengths: bool,
    /// The shape of `generated-shared-prefix`; the Python tool's where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_prefix: Option<SharedPrefixOptions>,
    /// How `mooncake` is replayed; as the Python tool does where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mooncake: Option<MooncakeOptions>,
    /// The part of `agentic-trace` that is taken; all of it where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agentic: Option<AgenticOptions>,
    /// The rows of `speed-bench` that are taken; all of them where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed_bench: Option<SpeedBenchOptions>,
    /// The pictures of `image`, and whom the prompts of `image` and `mmmu` are for; as the Python tool has
    /// it for its native backend where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<ImageOptions>,
}

impl Default for DatasetOptions {
    fn default() -> Self {
        Self {
            name: DatasetName::ShareGpt,
            path: None,
            num_prompts: 1000,
            require_rows: false,
            random_input_len: 1024,
            random_output_len: 1024,
            random_range_ratio: 0.0,
            sharegpt_output_len: None,
            sharegpt_context_len: None,
            shortest_prompt: None,
            prompt_suffix: String::new(),
            apply_chat_template: false,
            tokenize_prompt: false,
            exact_lengths: false,
            shared_prefix: None,
            mooncake: None,
            agentic: None,
            speed_bench: None,
            image: None,
        }
    }
}

impl DatasetOptions {
    /// True when samples are conversations of several turns.
    pub fn has_turns(&self) -> bool {
        let turns = self.shared_prefix.as_ref().map_or(1, |shape| shape.turns);
        self.name == DatasetName::AgenticTrace
            || (self.name == DatasetName::SharedPrefix && turns > 1)
    }

    /// Requests that a full set makes.
    pub fn requests(&self) -> usize {
        match &self.mooncake {
            Some(replay) => self.num_prompts.saturating_mul(replay.rounds as usize),
            None => self.num_prompts,
        }
    }

    /// Checks what can be checked without reading anything. [`load`](crate::load) does it too.
    pub fn check(&self) -> Result<(), DatasetError> {
        let wrong = |flag, problem: String| Err(DatasetError::Option { flag, problem });
        let random = self.name.is_random();
        let name = self.name.name();
        if let Some(replay) = &self.mooncake {
            replay.check()?;
        }
        if self.name == DatasetName::SharedPrefix {
            let shape = self.shared_prefix.clone().unwrap_or_default();
            shape.check(self.tokenize_prompt)?;
        }
        if self.num_prompts == 0 {
            return wrong("--num-prompts", "must be at least 1".to_owned());
        }
        if let Some(image) = &self.image {
            image.check()?;
        }
        let ratio_counts = random || self.name == DatasetName::Image;
        if ratio_counts && !(0.0..=1.0).contains(&self.random_range_ratio) {
            let ratio = self.random_range_ratio;
            return wrong("--random-range-ratio", format!("must be between 0 and 1, not {ratio}"));
        }
        if random && self.random_input_len == 0 {
            return wrong("--random-input-len", "must be at least 1".to_owned());
        }
        let conversations = matches!(self.name, DatasetName::ShareGpt | DatasetName::Custom);
        if let Some(len @ ..4) = self.sharegpt_output_len
            && conversations
        {
            return wrong("--sharegpt-output-len", format!("must be at least 4, not {len}"));
        }
        if self.name == DatasetName::LongBench && self.sharegpt_output_len == Some(0) {
            return wrong("--sharegpt-output-len", "must be at least 1".to_owned());
        }
        let asked = self.speed_bench.as_ref().map(|shape| shape.output_len);
        if self.name == DatasetName::SpeedBench && asked == Some(0) {
            return wrong("--speed-bench-output-len", "must be at least 1".to_owned());
        }
        if self.tokenize_prompt && !random && self.name != DatasetName::SharedPrefix {
            return wrong("--tokenize-prompt", format!("does not go with --dataset-name {name}"));
        }
        if self.exact_lengths && !random {
            return wrong("--exact-lengths", format!("does not go with --dataset-name {name}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for name in DatasetName::ALL {
            assert_eq!(DatasetName::from_name(name.name()), Some(name));
        }
        assert_eq!(DatasetName::from_name("sharegpt2"), None);
    }

    #[test]
    fn senseless_values_are_refused() {
        let random = || DatasetOptions { name: DatasetName::Random, ..DatasetOptions::default() };
        let flag = |options: DatasetOptions| match options.check() {
            Err(DatasetError::Option { flag, .. }) => flag,
            other => panic!("{other:?}"),
        };
        for ratio in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let options = DatasetOptions { random_range_ratio: ratio, ..random() };
            assert_eq!(flag(options), "--random-range-ratio");
        }
        let none = DatasetOptions { num_prompts: 0, ..DatasetOptions::default() };
        assert_eq!(flag(none), "--num-prompts");
        let short = DatasetOptions { sharegpt_output_len: Some(3), ..DatasetOptions::default() };
        assert_eq!(flag(short), "--sharegpt-output-len");
        let long = || DatasetOptions { name: DatasetName::LongBench, ..DatasetOptions::default() };
        let nothing = DatasetOptions { sharegpt_output_len: Some(0), ..long() };
        assert_eq!(flag(nothing), "--sharegpt-output-len");
        DatasetOptions { sharegpt_output_len: Some(1), ..long() }.check().unwrap();
        let nothing = Some(SpeedBenchOptions { category: None, output_len: 0 });
        let nothing =
            DatasetOptions { name: DatasetName::SpeedBench, speed_bench: nothing, ..long() };
        assert_eq!(flag(nothing), "--speed-bench-output-len");
        let ids = DatasetOptions { tokenize_prompt: true, ..DatasetOptions::default() };
        assert_eq!(flag(ids), "--tokenize-prompt");
        let exact = DatasetOptions { exact_lengths: true, ..DatasetOptions::default() };
        assert_eq!(flag(exact), "--exact-lengths");
        for ratio in [0.0, 0.5, 1.0] {
            DatasetOptions { random_range_ratio: ratio, ..random() }.check().unwrap();
        }
    }
}
