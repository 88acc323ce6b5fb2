//! `openai`: whole chat requests, as an OpenAI server gets them.

use crate::chat::ChatText;
use crate::lines::numbered;
use crate::python_json;
use crate::skips::{At, Skip, Skips};
use crate::{DatasetError, DatasetOptions, Loaded, corpus};
use rayon::prelude::*;
use serde_json::{Map, Value};
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::Tokenizer;
use std::path::Path;

/// What a row without a limit asks for, in tokens.
const OUTPUT_LEN: u32 = 256;

/// Reads rows in their order until there are as many as wanted.
pub(crate) fn load(
    path: &Path,
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
) -> Result<Loaded, DatasetError> {
    let text = corpus::read(path)?;
    let mut skips = Skips::default();
    let rows = rows(&text, options.num_prompts, &mut skips);
    if rows.is_empty() {
        let (dataset, skipped) = (path.display().to_string(), skips.to_string());
        return Err(DatasetError::NoUsableRows { dataset, skipped });
    }
    let unlimited = rows.iter().filter(|row| row.other_limit).count();
    let fixed = options.sharegpt_output_len.filter(|&len| len > 0);
    let chat = ChatText::new(tokenizer)?;
    let sample = |row: Row| {
        let mut prompt_len = chat.count(&row.messages)?;
        if let Some(tools) = row.extra_body.get("tools") {
            prompt_len += tokenizer.count(&python_json::write(tools), true)?;
        }
        Ok(Sample {
            prompt: Prompt::Messages(row.messages),
            prompt_len,
            counted: Counted::Tokenizer,
            output_len: fixed.or(row.max_tokens).unwrap_or(OUTPUT_LEN),
            extra_body: row.extra_body,
            ..Sample::default()
        })
    };
    let samples = rows.into_par_iter().map(sample).collect::<Result<Vec<_>, DatasetError>>()?;
    let mut warnings = Vec::new();
    if samples.len() < options.num_prompts {
        let (found, asked, name) = (samples.len(), options.num_prompts, path.display());
        warnings.push(format!(
            "only {found} of {asked} prompts: no more usable rows in {name}, {skips}"
        ));
    } else if skips.total() > 0 {
        warnings.push(format!("{}: {skips}", path.display()));
    }
    if unlimited > 0 && fixed.is_none() {
        warnings.push(format!(
            "{unlimited} rows limit their output by max_completion_tokens alone: as in the Python \
             tool {OUTPUT_LEN} tokens are asked for; --sharegpt-output-len sets another number"
        ));
    }
    Ok(Loaded { samples, warnings })
}

/// A row that can be sent.
#[derive(Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) messages: Vec<Value>,
    pub(crate) max_tokens: Option<u32>,
    /// Only `max_completion_tokens` limits the output.
    pub(crate) other_limit: bool,
    /// All fields that are sent as they are.
    pub(crate) extra_body: Map<String, Value>,
}

/// The first `wanted` rows of the text that can be used.
pub(crate) fn rows(text: &str, wanted: usize, skips: &mut Skips) -> Vec<Row> {
    let read = |(number, line): (usize, &str)| match read_row(line) {
        Ok(row) => Some(row),
        Err(skip) => {
            skips.note(skip, At::Line(number));
            None
        }
    };
    numbered(text).filter_map(read).take(wanted).collect()
}

fn read_row(line: &str) -> Result<Row, Skip> {
    let mut fields: Map<String, Value> = serde_json::from_str(line).map_err(|_| Skip::NoJson)?;
    let messages = match fields.shift_remove("messages") {
        Some(Value::Array(messages)) if messages.iter().all(Value::is_object) => messages,
        _ => return Err(Skip::NoMessages),
    };
    if messages.is_empty() {
        return Err(Skip::NoMessages);
    }
    let max_tokens = match fields.shift_remove("max_tokens") {
        None | Some(Value::Null) => None,
        Some(limit) => Some(whole(&limit).ok_or(Skip::BadLimit)?),
    };
    let other = fields.shift_remove("max_completion_tokens").is_some_and(|limit| !limit.is_null());
    fields.shift_remove("model");
    Ok(Row { messages, max_tokens, other_limit: other && max_tokens.is_none(), extra_body: fields })
}

/// A positive whole number, written as one or as a fraction without a rest.
fn whole(value: &Value) -> Option<u32> {
    let number = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 1.0)?;
    (number <= f64::from(u32::MAX)).then_some(number as u32)
}
