//! `mooncake`: the requests of a trace, at the times of the trace.
//!
//! A row of a trace tells when a request came, how much output it had, and which blocks of prompt
//! it was made of, as numbers: rows that share leading numbers shared a prefix. The prompts are
//! the Python tool's, which stand for the blocks: each number, then `hi` over and over.

use crate::chat::ChatText;
use crate::lines::{bad_line, numbered};
use crate::{DatasetError, DatasetOptions, Loaded, corpus};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use servebench_core::{Counted, Prompt, Sample, Stamp};
use servebench_tokens::{Tokenizer, TokensError};
use std::path::Path;

/// Words that stand for the text of one block.
const BLOCK_WORDS: usize = 128;
/// What a row without an output length asks for, in tokens.
const OUTPUT_LEN: u32 = 256;
/// Most bytes of prompts: they are all made before the first is sent.
const MOST_BYTES: usize = 8 << 30;

/// The traces that Mooncake published.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
#[non_exhaustive]
pub enum Workload {
    /// The trace of the arXiv paper.
    Mooncake,
    /// Conversations.
    #[default]
    Conversation,
    /// A mixture of public data sets.
    Synthetic,
    /// Tools and agents.
    ToolAgent,
}

impl Workload {
    /// Every trace.
    pub const ALL: [Self; 4] =
        [Self::Mooncake, Self::Conversation, Self::Synthetic, Self::ToolAgent];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mooncake => "mooncake",
            Self::Conversation => "conversation",
            Self::Synthetic => "synthetic",
            Self::ToolAgent => "toolagent",
        }
    }

    /// Where the trace is published.
    pub const fn url(self) -> &'static str {
        match self {
            Self::Mooncake => {
                "https://raw.githubusercontent.com/kvcache-ai/Mooncake/main/FAST25-release/arxiv-trace/mooncake_trace.jsonl"
            }
            Self::Conversation => {
                "https://raw.githubusercontent.com/kvcache-ai/Mooncake/main/FAST25-release/traces/conversation_trace.jsonl"
            }
            Self::Synthetic => {
                "https://raw.githubusercontent.com/kvcache-ai/Mooncake/main/FAST25-release/traces/synthetic_trace.jsonl"
            }
            Self::ToolAgent => {
                "https://raw.githubusercontent.com/kvcache-ai/Mooncake/main/FAST25-release/traces/toolagent_trace.jsonl"
            }
        }
    }
}

impl From<Workload> for &'static str {
    fn from(workload: Workload) -> Self {
        workload.name()
    }
}

/// How a trace is replayed. The defaults are the Python tool's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MooncakeOptions {
    /// The published trace to fetch where no file is given.
    pub workload: Workload,
    /// Factor by which the gaps of the trace are stretched; 0 sends everything at once.
    pub slowdown: f64,
    /// Requests made of each row, each going on from the one before it.
    pub rounds: u32,
    /// Make messages, for chat endpoints, instead of the text that a chat template makes of them.
    pub messages: bool,
}

impl Default for MooncakeOptions {
    fn default() -> Self {
        Self { workload: Workload::default(), slowdown: 1.0, rounds: 1, messages: false }
    }
}

impl MooncakeOptions {
    pub(crate) fn check(&self) -> Result<(), DatasetError> {
        let wrong = |flag, problem: String| Err(DatasetError::Option { flag, problem });
        if !(self.slowdown.is_finite() && self.slowdown >= 0.0) {
            let problem = format!("must be finite and not negative, not {}", self.slowdown);
            return wrong("--mooncake-slowdown-factor", problem);
        }
        if self.rounds == 0 {
            return wrong("--mooncake-num-rounds", "must be at least 1".to_owned());
        }
        Ok(())
    }
}

/// Reads the first rows of the trace at `path` and makes their requests, in the order of time.
pub(crate) fn load(
    path: &Path,
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
) -> Result<Loaded, DatasetError> {
    let text = corpus::read(path)?;
    let replay = options.mooncake.clone().unwrap_or_default();
    let rows = rows(&text, path, options.num_prompts)?;
    let mut warnings = Vec::new();
    if rows.len() < options.num_prompts {
        let (found, asked) = (rows.len(), options.num_prompts);
        warnings.push(format!("only {found} of {asked} rows: {} has no more", path.display()));
    }
    check_size(&rows, &replay)?;
    let samples = samples(&rows, &replay, tokenizer)?;
    if samples.is_empty() {
        let (dataset, skipped) = (path.display().to_string(), "0 rows".to_owned());
        return Err(DatasetError::NoUsableRows { dataset, skipped });
    }
    warnings.extend(doubled_bos(&samples, tokenizer));
    Ok(Loaded { samples, warnings })
}

/// The first `wanted` rows of the trace, in the order of time.
pub(crate) fn rows(text: &str, path: &Path, wanted: usize) -> Result<Vec<Row>, DatasetError> {
    let read = |(number, line)| Row::read(line).map_err(|problem| bad_line(path, number, problem));
    let mut rows = numbered(text).take(wanted).map(read).collect::<Result<Vec<Row>, _>>()?;
    rows.sort_by(|a, b| a.timestamp.total_cmp(&b.timestamp));
    Ok(rows)
}

/// The requests of rows in the order of time, on all cores.
pub(crate) fn samples(
    rows: &[Row],
    replay: &MooncakeOptions,
    tokenizer: &Tokenizer,
) -> Result<Vec<Sample>, TokensError> {
    let chat = ChatText::new(tokenizer)?;
    let Some(first) = rows.first().map(|row| row.timestamp) else { return Ok(Vec::new()) };
    let made = rows.par_iter().map(|row| row.requests(first, replay, &chat, tokenizer));
    let made: Vec<Vec<Sample>> = made.collect::<Result<_, _>>()?;
    Ok(made.into_iter().flatten().collect())
}

/// One request of the trace.
#[derive(Debug)]
pub(crate) struct Row {
    /// Milliseconds.
    timestamp: f64,
    /// The numbers of its blocks, as text.
    blocks: Vec<String>,
    output_len: u32,
}

#[derive(Deserialize)]
struct RawRow {
    timestamp: f64,
    hash_ids: Vec<Value>,
    output_length: Option<u32>,
}

impl Row {
    fn read(line: &str) -> Result<Self, String> {
        let raw: RawRow = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let block = |id: Value| match id {
            Value::Number(number) => Ok(number.to_string()),
            Value::String(text) => Ok(text),
            other => Err(format!("{other} in hash_ids is no number")),
        };
        let blocks = raw.hash_ids.into_iter().map(block).collect::<Result<_, _>>()?;
        let output_len = raw.output_length.unwrap_or(OUTPUT_LEN);
        Ok(Self { timestamp: raw.timestamp, blocks, output_len })
    }

    fn question(&self) -> String {
        let filler = ["hi"; BLOCK_WORDS].join(" ");
        let blocks = self.blocks.iter().flat_map(|id| [id.as_str(), &filler]);
        blocks.chain(["Tell me a story based on this context."]).collect()
    }

    /// Bytes of the texts that [`requests`](Self::requests) makes, templates aside.
    fn bytes(&self, rounds: u32) -> usize {
        let filler = BLOCK_WORDS * "hi ".len();
        let question: usize = self.blocks.iter().map(|id| id.len() + filler).sum();
        let reply = self.output_len as usize * "story ".len();
        let rounds = rounds as usize;
        let questions = rounds * (rounds + 1) / 2;
        question.saturating_mul(questions).saturating_add(reply.saturating_mul(questions - rounds))
    }

    /// The row's rounds, each with all before it and a stand-in for their replies.
    fn requests(
        &self,
        first: f64,
        replay: &MooncakeOptions,
        chat: &ChatText<'_>,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<Sample>, TokensError> {
        let question = self.question();
        let seconds = (self.timestamp - first) / 1000.0 * replay.slowdown;
        let mut history: Vec<Value> = Vec::new();
        let round = |round| {
            let content = format!("Round {round}: {question}");
            history.push(json!({"role": "user", "content": content}));
            let text = chat.render(&history).text;
            let prompt_len = tokenizer.count(&text, true)?;
            let prompt = if replay.messages {
                Prompt::Messages(history.clone())
            } else {
                Prompt::Text(text)
            };
            if round < replay.rounds {
                let reply = vec!["story"; self.output_len as usize].join(" ");
                history.push(json!({"role": "assistant", "content": reply}));
            }
            Ok(Sample {
                prompt,
                prompt_len,
                counted: Counted::Tokenizer,
                output_len: self.output_len,
                timestamp: Some(Stamp::from_secs_f64(seconds)),
                ..Sample::default()
            })
        };
        (1..=replay.rounds).map(round).collect()
    }
}

/// Bytes of the texts of all requests, templates aside.
pub(crate) fn bytes(rows: &[Row], replay: &MooncakeOptions) -> usize {
    rows.iter().map(|row| row.bytes(replay.rounds)).fold(0, usize::saturating_add)
}

fn check_size(rows: &[Row], replay: &MooncakeOptions) -> Result<(), DatasetError> {
    let bytes = bytes(rows, replay);
    if bytes <= MOST_BYTES {
        return Ok(());
    }
    let problem = format!(
        "{} makes {:.0} GB of prompts of these {} rows, more than is kept in memory; lower it or \
         --num-prompts",
        replay.rounds,
        bytes as f64 / 1e9,
        rows.len()
    );
    Err(DatasetError::Option { flag: "--mooncake-num-rounds", problem })
}

/// The template's begin-of-sequence token is part of the text, and a server adds its own.
pub(crate) fn doubled_bos(samples: &[Sample], tokenizer: &Tokenizer) -> Option<String> {
    let bos = tokenizer.bos_token().filter(|bos| !bos.is_empty())?;
    let begins =
        |sample: &Sample| matches!(&sample.prompt, Prompt::Text(text) if text.starts_with(bos));
    (tokenizer.num_special_tokens_to_add() > 0 && samples.iter().any(begins)).then(|| {
        format!(
            "the chat template puts {bos} before every prompt, as in the Python tool, and a server \
             will put another before it; a chat backend sends messages instead"
        )
    })
}
