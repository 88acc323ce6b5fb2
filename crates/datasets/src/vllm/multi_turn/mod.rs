//! Conversations of several turns: a file of them, or a configuration from which they are made.
//!
//! The two inputs of vLLM's `benchmark_serving_multi_turn.py`. What the assistant says in them is only
//! asked for: a run sends the answers of its server in its place.

mod config;
mod convert;
mod distribution;
mod file;
mod generate;
#[cfg(test)]
mod tests;

pub use config::GeneratorConfig;
pub use convert::{ShareGptConversion, ShareGptConverted, convert_share_gpt};
pub use distribution::LengthDistribution;

use crate::{DatasetError, corpus};
use servebench_tokens::Tokenizer;
use std::path::Path;

/// One conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiTurnConversation {
    /// Its name, which no other one has.
    pub id: String,
    /// What is said: by the user at even places, by the assistant at odd ones. Never empty.
    pub messages: Vec<String>,
}

/// What was read or made.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiTurnInput {
    /// The conversations, at least one.
    pub conversations: Vec<MultiTurnConversation>,
    /// What they were made from, unless they were read.
    pub generator: Option<GeneratorConfig>,
}

/// Reads the file at `path`: a list of conversations, or an object from which they are made, with the draws
/// of NumPy's generator of this seed.
///
/// # Errors
///
/// A file that cannot be read, is not what it should be (with the name of the field), or asks for more
/// text than its text files have.
pub fn load_multi_turn(
    path: &Path,
    tokenizer: &Tokenizer,
    seed: u32,
) -> Result<MultiTurnInput, DatasetError> {
    let text = corpus::read(path)?;
    if text.trim_start().starts_with('[') {
        let conversations = file::read(&text, path)?;
        return Ok(MultiTurnInput { conversations, generator: None });
    }
    let config = GeneratorConfig::read(&text, path)?;
    let source = generate::Source::read(&config, path, tokenizer)?;
    let conversations = generate::generate(&config, &source, seed)?;
    Ok(MultiTurnInput { conversations, generator: Some(config) })
}

/// Makes conversations from a text instead of files.
///
/// # Errors
///
/// More text asked for than there is.
pub fn generate_multi_turn(
    config: &GeneratorConfig,
    text: &str,
    tokenizer: &Tokenizer,
    seed: u32,
) -> Result<Vec<MultiTurnConversation>, DatasetError> {
    let source = generate::Source::new(text, Path::new("the built-in text"), tokenizer)?;
    generate::generate(config, &source, seed)
}

/// What is wrong with a field of a file.
fn wrong(path: &Path, field: impl Into<String>, problem: impl Into<String>) -> DatasetError {
    DatasetError::Field { path: path.to_owned(), field: field.into(), problem: problem.into() }
}

/// The body of a fuzz target: bytes as a file of conversations, and as a configuration.
pub(crate) fn fuzzed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let path = Path::new("input.json");
    if let Ok(conversations) = file::read(text, path) {
        assert!(!conversations.is_empty(), "no conversations");
        assert!(conversations.iter().all(|it| !it.messages.is_empty()), "nothing is said");
    }
    let options = ShareGptConversion { max_items: Some(1), ..ShareGptConversion::default() };
    if let Ok(converted) = convert::convert(text, path, &options) {
        assert!(converted.kept.iter().all(|it| it.messages.iter().all(|said| said.is_ascii())));
        assert!(converted.chosen.is_none_or(|chosen| chosen.len() == 1), "not the one asked for");
    }
    let Ok(mut config) = GeneratorConfig::read(text, path) else { return };
    config.num_conversations = config.num_conversations.min(3);
    if !config.is_small() {
        return;
    }
    let words = "all work and no play ".repeat(100);
    let made = generate_multi_turn(&config, &words, &Tokenizer::byte_level(), 1);
    for conversation in made.unwrap_or_default() {
        let turns = conversation.messages.len();
        assert!(turns >= 2 && turns.is_multiple_of(2), "{turns} messages");
    }
}
