//! `custom`: a JSONL file of prompts.

use super::shared::{finish, need_path, shuffle};
use super::{VllmDatasetOptions, VllmLoaded};
use crate::lines::{bad_line, numbered};
use crate::{DatasetError, corpus};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Value, json};
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::Tokenizer;
use std::path::Path;

/// How a file of prompts is used.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CustomOptions {
    /// Output length of every request; `None`: the row's own, in `output_tokens`.
    pub output_len: Option<u32>,
}

impl Default for CustomOptions {
    fn default() -> Self {
        Self { output_len: Some(256) }
    }
}

pub(super) fn load(
    custom: &CustomOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    let path = need_path(options, "custom")?;
    if path.extension().is_none_or(|extension| extension != "jsonl") {
        return Err(DatasetError::Option {
            flag: "--dataset-path",
            problem: format!("{} does not end in .jsonl", path.display()),
        });
    }
    let text = corpus::read(path)?;
    let mut rows = Vec::new();
    for (number, line) in numbered(&text) {
        rows.push(
            row(line, custom, tokenizer.is_none()).map_err(|why| bad_line(path, number, why))?,
        );
    }
    sampled(rows, (path, "0 rows".to_owned()), options, tokenizer, draws)
}

/// Rows of prompts as requests: shuffled, as many as asked for, through the chat template.
pub(super) fn sampled(
    mut rows: Vec<Row>,
    (path, skipped): (&Path, String),
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    shuffle(&mut rows, options, draws);
    rows.truncate(options.num_prompts.unwrap_or(usize::MAX));
    let samples: Result<Vec<Sample>, DatasetError> =
        rows.into_par_iter().map(|row| sample(row, options, tokenizer)).collect();
    finish(samples?, options, draws, (path, skipped))
}

pub(super) struct Row {
    pub(super) prompt: String,
    pub(super) output_len: u32,
}

/// Reads a line; without a tokenizer every output length is 1, as in the Python tool.
pub(super) fn row(line: &str, custom: &CustomOptions, untokenized: bool) -> Result<Row, String> {
    let row: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let Some(prompt) = row.get("prompt") else { return Err("it has no `prompt`".to_owned()) };
    let Some(prompt) = prompt.as_str() else { return Err("its `prompt` is no text".to_owned()) };
    let own = || {
        let tokens = row.get("output_tokens").and_then(Value::as_u64);
        tokens.and_then(|tokens| u32::try_from(tokens).ok()).ok_or_else(|| {
            "--custom-output-len -1 takes each row's `output_tokens`, and it has none".to_owned()
        })
    };
    let output_len = match custom.output_len {
        _ if untokenized => 1,
        Some(len) => len,
        None => own()?,
    };
    Ok(Row { prompt: prompt.to_owned(), output_len })
}

fn sample(
    row: Row,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
) -> Result<Sample, DatasetError> {
    let Row { prompt, output_len } = row;
    let Some(tokenizer) = tokenizer else {
        return Ok(Sample {
            prompt: Prompt::Text(prompt),
            prompt_len: 1,
            output_len,
            ..Sample::default()
        });
    };
    let text = if options.skip_chat_template {
        prompt
    } else {
        let messages = [json!({"role": "user", "content": prompt})];
        tokenizer.chat_template()?.render_with(&messages, true, &options.chat_template_kwargs)?
    };
    let prompt_len = tokenizer.count(&text, true)?;
    let (prompt, counted) = (Prompt::Text(text), Counted::Tokenizer);
    Ok(Sample { prompt, prompt_len, counted, output_len, ..Sample::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_row_says_its_output_length_when_asked() {
        let own = CustomOptions { output_len: None };
        let read = |line: &str, options: &CustomOptions| row(line, options, false);
        let line = r#"{"prompt": "hi", "output_tokens": 7}"#;
        assert_eq!(read(line, &own).map(|row| row.output_len), Ok(7));
        assert_eq!(read(line, &CustomOptions::default()).map(|row| row.output_len), Ok(256));
        assert_eq!(row(r#"{"prompt": "hi"}"#, &own, true).map(|row| row.output_len), Ok(1));
        for line in [r#"{"prompt": "hi"}"#, r#"{"prompt": 7}"#, "{}", "[]", "nonsense"] {
            assert!(read(line, &own).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "\\PC{0,40}", own: bool) {
            let options = CustomOptions { output_len: own.then_some(1) };
            drop(row(&line, &options, false));
        }
    }
}
