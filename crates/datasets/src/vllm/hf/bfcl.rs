//! The Berkeley function-calling leaderboard: questions with the functions that may be called.

use super::HfOptions;
use crate::lines::{bad_line, numbered};
use crate::vllm::shared::finish;
use crate::vllm::{VllmDatasetOptions, VllmLoaded};
use crate::{DatasetError, corpus};
use serde_json::{Map, Value, json};
use servebench_core::random::{Draws, PythonRandom};
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Hub, RepoKind, Tokenizer, TokensError};
use std::path::{Path, PathBuf};

/// The categories that are taken where none is named.
const CATEGORIES: [&str; 3] = ["simple", "live_simple", "multiple"];
/// Output length.
const OUTPUT_LEN: u32 = 512;

pub(super) fn load(
    own: &HfOptions,
    path: &Path,
    options: &VllmDatasetOptions,
    tokenizer: &Tokenizer,
    hub: Option<&Hub>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    let named: Vec<&str> = own.categories.iter().map(String::as_str).collect();
    let categories = if named.is_empty() { &CATEGORIES[..] } else { &named };
    let mut files = Vec::new();
    for category in categories {
        let file = file(path, &format!("BFCL_v3_{category}.json"), hub)?;
        let text = corpus::read(&file)?;
        let read = |(number, line)| Call::read(line).map_err(|why| bad_line(&file, number, why));
        files.push(numbered(&text).map(read).collect::<Result<Vec<_>, _>>()?);
    }
    // In turn from each category, so that a few rows are of all of them.
    let longest = files.iter().map(Vec::len).max().unwrap_or(0);
    let mut calls: Vec<&Option<Call>> =
        (0..longest).flat_map(|at| files.iter().filter_map(move |rows| rows.get(at))).collect();
    if !options.disable_shuffle {
        PythonRandom::new(options.seed).shuffle(&mut calls);
    }
    let wanted = options.num_prompts.unwrap_or(usize::MAX);
    let calls = calls.into_iter().flatten().take(wanted);
    let output_len = own.output_len.unwrap_or(OUTPUT_LEN);
    let samples = calls.map(|call| call.sample(output_len, tokenizer)).collect::<Result<_, _>>()?;
    finish(samples, options, draws, (path, "no row with a question and functions".to_owned()))
}

/// A file of a copy, else of the hub.
fn file(path: &Path, name: &str, hub: Option<&Hub>) -> Result<PathBuf, DatasetError> {
    let repo = path.to_str().filter(|repo| !path.exists() && Hub::is_repo_id(repo));
    let (Some(hub), Some(repo)) = (hub, repo) else { return Ok(path.join(name)) };
    hub.fetch(RepoKind::Dataset, repo, name).map_err(|source| match source {
        TokensError::Missing { .. } => DatasetError::Option {
            flag: "--bfcl-categories",
            problem: format!("names a category that {repo} lacks: there is no {name}"),
        },
        source => DatasetError::Hub { dataset: repo.to_owned(), source },
    })
}

/// A question and what may be called.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::vllm) struct Call {
    messages: Vec<Value>,
    tools: Vec<Value>,
}

impl Call {
    /// Reads a line; `None` for a row without a question or without functions.
    pub(in crate::vllm) fn read(line: &str) -> Result<Option<Self>, String> {
        let row: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let messages = row.pointer("/question/0").and_then(Value::as_array);
        let messages = messages.filter(|messages| !messages.is_empty());
        let functions = match row.get("function") {
            Some(Value::Array(functions)) => functions.clone(),
            Some(function @ Value::Object(fields)) if !fields.is_empty() => vec![function.clone()],
            _ => Vec::new(),
        };
        Ok(messages.filter(|_| !functions.is_empty()).map(|messages| Self {
            messages: messages.clone(),
            tools: functions
                .into_iter()
                .map(|function| json!({"type": "function", "function": as_schema(function)}))
                .collect(),
        }))
    }

    fn sample(&self, output_len: u32, tokenizer: &Tokenizer) -> Result<Sample, DatasetError> {
        let tools = json!(self.tools);
        let variables = Map::from_iter([("tools".to_owned(), tools.clone())]);
        // A template that knows no tools, or fails, still leaves the text to be counted.
        let rendered = tokenizer
            .chat_template()
            .and_then(|template| template.render_with(&self.messages, true, &variables));
        let text = rendered.unwrap_or_else(|_| {
            let texts = self.messages.iter().filter_map(|message| message["content"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        });
        let extra_body = Map::from_iter([
            ("tools".to_owned(), tools),
            ("tool_choice".to_owned(), json!("auto")),
        ]);
        Ok(Sample {
            prompt: Prompt::Messages(self.messages.clone()),
            prompt_len: tokenizer.count(&text, true)?,
            counted: Counted::Tokenizer,
            output_len,
            extra_body,
            ..Sample::default()
        })
    }
}

/// A schema with the names of types that JSON Schema has.
fn as_schema(schema: Value) -> Value {
    match schema {
        Value::Array(items) => items.into_iter().map(as_schema).collect(),
        Value::Object(fields) => {
            let mut fields: Map<String, Value> =
                fields.into_iter().map(|(key, value)| (key, as_schema(value))).collect();
            if let Some(Value::String(name)) = fields.get_mut("type") {
                let usual = match name.as_str() {
                    "dict" => "object",
                    "float" => "number",
                    "tuple" => "array",
                    "any" => "string",
                    other => other,
                };
                *name = usual.to_owned();
            }
            Value::Object(fields)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vllm::VllmDataset;
    use proptest::prelude::*;

    fn line(question: &str) -> String {
        let function = json!({"name": "area", "parameters": {"type": "dict", "properties": {
            "sides": {"type": "tuple", "items": {"type": "float"}}, "type": {"type": "any"}}}});
        json!({"question": [[{"role": "user", "content": question}]], "function": function})
            .to_string()
    }

    #[test]
    fn types_get_their_usual_names() {
        let call = Call::read(&line("how large")).unwrap().unwrap();
        let properties = &call.tools[0]["function"]["parameters"]["properties"];
        assert_eq!(call.tools[0]["function"]["parameters"]["type"], "object");
        assert_eq!(properties["sides"], json!({"type": "array", "items": {"type": "number"}}));
        assert_eq!(properties["type"], json!({"type": "string"}));
        for line in ["{}", r#"{"question": [[]], "function": {"a": 1}}"#, "[]"] {
            assert_eq!(Call::read(line), Ok(None), "{line}");
        }
    }

    #[test]
    fn categories_come_in_turn() {
        let folder = tempfile::tempdir().unwrap();
        for (category, rows) in [("a", vec!["a1", "a2"]), ("b", vec!["b1"])] {
            let text: Vec<String> = rows.into_iter().map(line).collect();
            let file = folder.path().join(format!("BFCL_v3_{category}.json"));
            std::fs::write(file, text.join("\n")).unwrap();
        }
        let own = HfOptions {
            categories: vec!["a".to_owned(), "b".to_owned()],
            ..crate::vllm::hf::tests::options("unused")
        };
        let options = VllmDatasetOptions {
            num_prompts: Some(3),
            disable_shuffle: true,
            ..VllmDatasetOptions::new(VllmDataset::Hf(own.clone()))
        };
        let tokenizer = Tokenizer::byte_level();
        let mut draws = Draws::new(0);
        let loaded = load(&own, folder.path(), &options, &tokenizer, None, &mut draws).unwrap();
        let content = |sample: &Sample| match &sample.prompt {
            Prompt::Messages(messages) => messages[0]["content"].as_str().map(str::to_owned),
            _ => None,
        };
        let asked: Vec<String> = loaded.samples.iter().filter_map(content).collect();
        assert_eq!(asked, ["a1", "b1", "a2"]);
        assert_eq!(loaded.samples[0].extra_body["tool_choice"], "auto");
        assert_eq!(loaded.samples[0].output_len, 512);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "[\\[\\]{}\":,a-z0-9questionfunctiontype]{0,60}") {
            drop(Call::read(&line));
        }
    }
}
