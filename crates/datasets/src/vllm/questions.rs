//! `spec_bench` and `speed_bench`: questions by category, for speculative decoding.

use super::custom::{Row, sampled};
use super::shared::{need, need_path};
use super::{VllmDatasetOptions, VllmLoaded};
use crate::lines::{bad_line, numbered};
use crate::{DatasetError, corpus};
use serde::Serialize;
use serde_json::Value;
use servebench_core::random::Draws;
use servebench_tokens::Tokenizer;
use std::collections::BTreeSet;
use std::path::Path;

/// Which questions are taken, and how long the replies are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuestionOptions {
    /// The only category; `None`: all.
    pub category: Option<String>,
    /// Output length of every request.
    pub output_len: u32,
}

/// The files of SPEED-Bench.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
#[non_exhaustive]
pub enum SpeedBenchSubset {
    /// Questions of many kinds.
    #[default]
    Qualitative,
    /// Prompts of 1k tokens.
    Throughput1k,
    /// Prompts of 2k tokens.
    Throughput2k,
    /// Prompts of 8k tokens.
    Throughput8k,
    /// Prompts of 16k tokens.
    Throughput16k,
    /// Prompts of 32k tokens.
    Throughput32k,
}

impl SpeedBenchSubset {
    /// Every subset.
    pub const ALL: [Self; 6] = [
        Self::Qualitative,
        Self::Throughput1k,
        Self::Throughput2k,
        Self::Throughput8k,
        Self::Throughput16k,
        Self::Throughput32k,
    ];

    /// The name on the command line and of the file, less `.jsonl`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Qualitative => "qualitative",
            Self::Throughput1k => "throughput_1k",
            Self::Throughput2k => "throughput_2k",
            Self::Throughput8k => "throughput_8k",
            Self::Throughput16k => "throughput_16k",
            Self::Throughput32k => "throughput_32k",
        }
    }

    /// The subset of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subset| subset.name() == name)
    }
}

impl From<SpeedBenchSubset> for &'static str {
    fn from(subset: SpeedBenchSubset) -> Self {
        subset.name()
    }
}

/// Where a row's question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The first text of `turns`.
    Turns,
    /// The content of the first of `messages`.
    Messages,
}

pub(super) fn load_spec_bench(
    own: &QuestionOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    let tokenizer = need(tokenizer, "spec_bench")?;
    let path = need_path(options, "spec_bench")?;
    load(path, Place::Turns, own, options, tokenizer, draws)
}

pub(super) fn load_speed_bench(
    subset: SpeedBenchSubset,
    own: &QuestionOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    let tokenizer = need(tokenizer, "speed_bench")?;
    let folder = need_path(options, "speed_bench")?;
    if !folder.is_dir() {
        return Err(DatasetError::Option {
            flag: "--dataset-path",
            problem: format!(
                "{} is no folder: give the one that holds {}.jsonl",
                folder.display(),
                subset.name()
            ),
        });
    }
    let path = folder.join(format!("{}.jsonl", subset.name()));
    load(&path, Place::Messages, own, options, tokenizer, draws)
}

fn load(
    path: &Path,
    place: Place,
    own: &QuestionOptions,
    options: &VllmDatasetOptions,
    tokenizer: &Tokenizer,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    let text = corpus::read(path)?;
    let mut categories = BTreeSet::new();
    let mut rows = Vec::new();
    for (number, line) in numbered(&text) {
        let question = question(line, place, own.category.is_some());
        let Question { prompt, category } = question.map_err(|why| bad_line(path, number, why))?;
        if own.category.is_none() || own.category == category {
            rows.push(Row { prompt, output_len: own.output_len });
        } else {
            categories.extend(category);
        }
    }
    let skipped = match &own.category {
        Some(category) if !categories.is_empty() => {
            let known: Vec<String> = categories.into_iter().collect();
            format!("no category `{category}`, only {},", known.join(", "))
        }
        _ => "0 rows".to_owned(),
    };
    sampled(rows, (path, skipped), options, Some(tokenizer), draws)
}

/// What a row asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Question {
    prompt: String,
    category: Option<String>,
}

/// Reads a line. `sorted`: every row must have a category.
pub(super) fn question(line: &str, place: Place, sorted: bool) -> Result<Question, String> {
    let row: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let (pointer, what) = match place {
        Place::Turns => ("/turns/0", "a text as first of its `turns`"),
        Place::Messages => ("/messages/0/content", "a text in the first of its `messages`"),
    };
    let prompt = row.pointer(pointer).and_then(Value::as_str);
    let prompt = prompt.ok_or_else(|| format!("it has not {what}"))?.to_owned();
    let category = row.get("category").and_then(Value::as_str).map(str::to_owned);
    if sorted && category.is_none() {
        return Err("it has no `category`".to_owned());
    }
    Ok(Question { prompt, category })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn questions_stand_in_turns_or_messages() {
        let turns = r#"{"category": "qa", "turns": ["one", "two"]}"#;
        let want = Question { prompt: "one".to_owned(), category: Some("qa".to_owned()) };
        assert_eq!(question(turns, Place::Turns, true), Ok(want));
        let messages = r#"{"messages": [{"role": "user", "content": "hi"}]}"#;
        assert_eq!(question(messages, Place::Messages, false).unwrap().prompt, "hi");
        for (line, place, sorted) in [
            (messages, Place::Messages, true),
            (messages, Place::Turns, false),
            (turns, Place::Messages, false),
            (r#"{"turns": []}"#, Place::Turns, false),
            (r#"{"turns": [7]}"#, Place::Turns, false),
            ("nonsense", Place::Turns, false),
        ] {
            assert!(question(line, place, sorted).is_err(), "{line}");
        }
    }

    #[test]
    fn subsets_go_by_name() {
        for subset in SpeedBenchSubset::ALL {
            assert_eq!(SpeedBenchSubset::from_name(subset.name()), Some(subset));
        }
        assert_eq!(SpeedBenchSubset::from_name("throughput"), None);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "[\\[\\]{}\":,a-z0-9turnsmessagescontent]{0,60}", sorted: bool) {
            drop(question(&line, Place::Turns, sorted));
            drop(question(&line, Place::Messages, sorted));
        }
    }
}
