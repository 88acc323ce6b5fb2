//! Bodies of the fuzz targets: any bytes in, no panic, and what comes out keeps the promises.

use crate::corpus::{TextKey, json_lines, share_gpt};
use crate::skips::Skips;
use crate::{
    AgenticOptions, DatasetName, DatasetOptions, MooncakeOptions, agentic, conversations, mooncake,
    openai, python_json, random,
};
use servebench_core::random::Draws;
use servebench_core::{Prompt, Stamp};
use servebench_tokens::Tokenizer;
use std::path::Path;

/// Bytes as a ShareGPT file, through `sharegpt` and `random`.
pub fn share_gpt_json(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let tokenizer = Tokenizer::byte_level();
    let mut skips = Skips::default();
    let Ok(found) = share_gpt(text, &mut skips) else { return };
    sample(found.clone(), TextKey::Value, &tokenizer);
    let options = DatasetOptions {
        name: DatasetName::Random,
        num_prompts: 4,
        random_input_len: 9,
        ..DatasetOptions::default()
    };
    let mut draws = Draws::new(1);
    let lengths = random::Lengths::draw(&options, &tokenizer, &mut draws.numpy);
    let made = random::from_corpus(found, &lengths, &options, &tokenizer, &mut draws, &mut skips);
    let samples = made.unwrap_or_default();
    assert!(samples.iter().all(|sample| (1..=9).contains(&sample.prompt_len)), "a wrong length");
}

/// Bytes as a custom JSONL file.
pub fn custom_json_lines(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let found = json_lines(text, &mut Skips::default());
    sample(found, TextKey::ContentOrValue, &Tokenizer::byte_level());
}

/// Bytes as a Mooncake trace.
pub fn mooncake_json_lines(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(rows) = mooncake::rows(text, Path::new("trace"), 8) else { return };
    let replay = MooncakeOptions { rounds: 2, ..MooncakeOptions::default() };
    if mooncake::bytes(&rows, &replay) > 1 << 20 {
        return; // Refused above a limit that is only higher.
    }
    let made = mooncake::samples(&rows, &replay, &Tokenizer::byte_level()).unwrap_or_default();
    assert_eq!(made.len(), 2 * rows.len(), "a request is missing");
    assert!(made.is_sorted_by_key(|sample| sample.timestamp), "out of order");
    assert!(made.first().is_none_or(|first| first.timestamp == Some(Stamp(0))), "late");
}

/// Bytes as a JSONL file of OpenAI requests.
pub fn openai_json_lines(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut skips = Skips::default();
    let rows = openai::rows(text, 5, &mut skips);
    assert!(rows.len() <= 5, "more rows than wanted");
    for row in rows {
        assert!(!row.messages.is_empty(), "nothing to send");
        assert!(row.max_tokens != Some(0), "nothing to wait for");
        for field in ["messages", "model", "max_tokens", "max_completion_tokens"] {
            assert!(!row.extra_body.contains_key(field), "{field} is sent twice");
        }
        let written = python_json::write(&row.extra_body.into());
        assert!(written.is_ascii(), "not as Python writes it");
    }
}

/// Bytes as a trace of agents.
pub fn agentic_json(bytes: &[u8]) {
    let Ok(trace) = serde_json::from_slice(bytes) else { return };
    let options = DatasetOptions { num_prompts: 4, ..DatasetOptions::default() };
    let cut = AgenticOptions { offset: -5, max_turns: 2 };
    let (samples, _) = agentic::samples(trace, &options, &cut);
    assert!(samples.len() <= 4, "more conversations than wanted");
    for sample in samples {
        let Prompt::Turns(turns) = sample.prompt else { panic!("no turns") };
        assert!((1..=2).contains(&turns.len()), "{} turns", turns.len());
        assert!(turns.iter().all(|turn| !turn.is_empty()), "an empty turn");
    }
}

/// Bytes as a picture, and as the JSON of one.
#[cfg(feature = "images")]
pub fn picture(bytes: &[u8]) {
    crate::mmmu::fuzzed(bytes);
}

fn sample(found: Vec<crate::corpus::Conversation<'_>>, key: TextKey, tokenizer: &Tokenizer) {
    let options = DatasetOptions { num_prompts: 3, ..DatasetOptions::default() };
    let (mut draws, mut skips) = (Draws::new(1), Skips::default());
    let rows = found.len();
    let made = conversations::sample(found, key, &options, tokenizer, &mut draws, &mut skips);
    let samples = made.unwrap_or_default();
    assert!(samples.len() <= rows.min(3), "more samples than rows");
    assert!(samples.iter().all(|s| s.prompt_len >= 2 && s.output_len >= 2), "a short sample");
}

/// Bytes as rows of the files that `vllm bench` samples.
pub fn vllm_rows(bytes: &[u8]) {
    crate::vllm::fuzzed(bytes);
}

/// Bytes as a file of conversations of several turns, and as a configuration that makes them.
pub fn multi_turn_json(bytes: &[u8]) {
    crate::vllm::fuzzed_multi_turn(bytes);
}
