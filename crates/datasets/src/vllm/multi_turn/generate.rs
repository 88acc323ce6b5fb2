//! Makes conversations out of a text.
//!
//! What the script writes around the text is put in our words; with the same draws the turns have the
//! same lengths.

use super::{GeneratorConfig, MultiTurnConversation, wrong};
use crate::{DatasetError, corpus};
use servebench_core::random::NumpyLegacy;
use servebench_tokens::Tokenizer;
use std::path::{Path, PathBuf};

/// What every message of the user asks for, before the text that it is about.
const TASK: &str = "Put this text into other words, and go on with it: ";
/// Most messages of one conversation.
const MOST_TURNS: u32 = 1_000_000;
/// Most messages in all.
const MOST_MESSAGES: u64 = 20_000_000;

/// How a message begins: with the number, so that no two conversations begin alike.
fn opening(number: usize) -> String {
    format!("{number} is the number of this one. ")
}

/// The text, as tokens.
pub(super) struct Source<'a> {
    tokenizer: &'a Tokenizer,
    tokens: Vec<u32>,
    /// Whose field `text_files` is to blame when there is not enough of it.
    path: PathBuf,
}

impl<'a> Source<'a> {
    pub(super) fn new(
        text: &str,
        path: &Path,
        tokenizer: &'a Tokenizer,
    ) -> Result<Self, DatasetError> {
        Ok(Self { tokenizer, tokens: tokenizer.encode(text, false)?, path: path.to_owned() })
    }

    /// Reads the text files: as they are named, else beside the configuration.
    pub(super) fn read(
        config: &GeneratorConfig,
        path: &Path,
        tokenizer: &'a Tokenizer,
    ) -> Result<Self, DatasetError> {
        let mut source = Self::new("", path, tokenizer)?;
        for file in &config.text_files {
            let beside = path.parent().map(|folder| folder.join(file));
            let found = beside.filter(|beside| !file.exists() && beside.exists());
            // Line ends as Python reads them.
            let text = corpus::read(&found.unwrap_or_else(|| file.clone()))?;
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            source.tokens.extend(tokenizer.encode(&text, false)?);
        }
        Ok(source)
    }

    /// `count` tokens from `start` on, as text.
    fn cut(&self, start: usize, count: usize, what: &str) -> Result<String, DatasetError> {
        let end = start.saturating_add(count);
        let Some(tokens) = self.tokens.get(start..end) else {
            let held = self.tokens.len();
            let problem = format!("have {held} tokens, and {what} needs those up to {end}");
            return Err(wrong(&self.path, "text_files", problem));
        };
        Ok(self.tokenizer.decode(tokens, false)?)
    }

    fn count(&self, text: &str) -> Result<usize, DatasetError> {
        Ok(self.tokenizer.count(text, false)? as usize)
    }
}

/// Makes the conversations, with the draws in the script's order.
pub(super) fn generate(
    config: &GeneratorConfig,
    source: &Source<'_>,
    seed: u32,
) -> Result<Vec<MultiTurnConversation>, DatasetError> {
    let mut numpy = NumpyLegacy::new(seed);
    let count = config.num_conversations;
    let turns = turns(config, source, &mut numpy)?;
    let prefixes = config.prefix_num_tokens.sample(&mut numpy, count);
    let task = source.count(TASK)?;
    let common = config.common_prefix_num_tokens.sample(&mut numpy, 1);
    let common = common.first().copied().unwrap_or(0) as usize;
    let mut maker = Maker { source, common: String::new(), task, offset: common };
    if common > 0 {
        maker.common = source.cut(0, common.saturating_sub(2), "the common prefix")? + ".";
    }
    let mut conversations = Vec::with_capacity(count);
    for (number, (turns, prefix)) in turns.into_iter().zip(prefixes).enumerate() {
        let inputs = config.num_tokens.sample(&mut numpy, turns as usize);
        let outputs = config.output_num_tokens.sample(&mut numpy, turns as usize);
        let messages = maker.messages(number, prefix as usize, &inputs, &outputs)?;
        maker.offset += turns as usize;
        conversations.push(MultiTurnConversation { id: format!("CONV_ID_{number}"), messages });
    }
    Ok(conversations)
}

/// How many messages each conversation has: every message of the user has its answer.
fn turns(
    config: &GeneratorConfig,
    source: &Source<'_>,
    numpy: &mut NumpyLegacy,
) -> Result<Vec<u32>, DatasetError> {
    let field = "prompt_input.num_turns";
    let too_many = |problem: String| wrong(&source.path, field, problem);
    let mut turns = config.num_turns.sample(numpy, config.num_conversations);
    for turns in &mut turns {
        if *turns > MOST_TURNS {
            let problem = format!("{turns} turns were drawn, and {MOST_TURNS} are the most");
            return Err(too_many(problem));
        }
        *turns = (*turns).max(2).next_multiple_of(2);
    }
    let all: u64 = turns.iter().copied().map(u64::from).sum();
    if all > MOST_MESSAGES {
        return Err(too_many(format!("{all} messages in all, and {MOST_MESSAGES} are the most")));
    }
    Ok(turns)
}

struct Maker<'a> {
    source: &'a Source<'a>,
    /// What all conversations begin with.
    common: String,
    /// Tokens of the task.
    task: usize,
    /// Where in the text the current conversation begins.
    offset: usize,
}

impl Maker<'_> {
    fn messages(
        &mut self,
        number: usize,
        prefix: usize,
        inputs: &[u32],
        outputs: &[u32],
    ) -> Result<Vec<String>, DatasetError> {
        let lengths: Vec<usize> =
            inputs.iter().map(|length| (*length as usize).max(self.task)).collect();
        let longest = lengths.iter().copied().max().unwrap_or(0);
        let mut messages = Vec::with_capacity(lengths.len());
        for (turn, (length, output)) in lengths.into_iter().zip(outputs).enumerate() {
            messages.push(if turn.is_multiple_of(2) {
                let prefix = if turn == 0 { prefix } else { 0 };
                self.question(number, turn, prefix, length, longest)?
            } else {
                // Only its length counts.
                self.source.cut(0, (*output as usize).max(1), "an answer")?
            });
        }
        Ok(messages)
    }

    /// A message of the user. Its `prefix` is on top of its `length`, what all share is not.
    fn question(
        &mut self,
        number: usize,
        turn: usize,
        prefix: usize,
        length: usize,
        longest: usize,
    ) -> Result<String, DatasetError> {
        let mut content = opening(number);
        if turn == 0 {
            content.insert_str(0, &self.common);
        }
        let left = length.saturating_sub(self.source.count(&content)? + self.task);
        if prefix > 0 {
            content.extend([&number.to_string(), ", "]);
            content += &self.source.cut(self.offset, prefix, "a prefix")?;
            self.offset += prefix;
        }
        content += TASK;
        if left > 0 {
            let start = self.offset.saturating_add(turn.saturating_mul(longest));
            content += &self.source.cut(start, left, "a message")?;
        }
        Ok(content)
    }
}
