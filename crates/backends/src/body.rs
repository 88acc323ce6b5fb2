//! Request bodies and the rules by which their fields are merged.

use bytes::Bytes;
use serde_json::{Map, Value, json};
use servebench_core::{Pictures, Prompt, Sample};

use crate::options::GenerateOptions;

/// A JSON object under construction. Keys keep the order in which they were first set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body(Map<String, Value>);

impl Body {
    /// Sets a field, in place if it is there.
    pub(crate) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    /// Sets all fields of `extra`, whole: objects are replaced, not merged.
    pub(crate) fn merge(&mut self, extra: &Map<String, Value>) {
        for (key, value) in extra {
            self.0.insert(key.clone(), value.clone());
        }
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }

    pub(crate) fn into_bytes(self) -> Bytes {
        // Copied, since a plan keeps its bodies, and a text that grew has up to as much room again.
        Bytes::copy_from_slice(self.into_value().to_string().as_bytes())
    }

    /// Asks for a usage chunk at the end, if the body asks for a stream and does not say otherwise.
    fn ask_for_usage(&mut self) {
        if self.0.get("stream") != Some(&Value::Bool(true)) {
            return;
        }
        let options = self.0.entry("stream_options").or_insert_with(|| json!({}));
        if let Value::Object(options) = options {
            options.entry("include_usage").or_insert(Value::Bool(true));
        }
    }
}

/// A prompt as JSON: a string, or a list of strings, ids or messages.
pub(crate) fn prompt_value(prompt: &Prompt) -> Value {
    match prompt {
        Prompt::Text(text) => json!(text),
        Prompt::Texts(texts) => json!(texts),
        Prompt::Ids(ids) => json!(ids),
        Prompt::Messages(messages) => json!(messages),
        _ => Value::Null,
    }
}

/// Pictures as a list of data URIs.
pub(crate) fn uris(pictures: &Pictures) -> Value {
    pictures.list.iter().map(|picture| Value::from(&*picture.uri)).collect()
}

/// Completes a body of an OpenAI route that holds model, prompt and length: sampling options, the extra
/// fields over them, the adapter over those.
pub(crate) fn complete_openai(
    mut body: Body,
    options: &GenerateOptions,
    sample: &Sample,
    adapter: Option<&str>,
) -> Bytes {
    body.set("stream", options.stream);
    body.set("temperature", options.temperature);
    if options.top_p < 1.0 {
        body.set("top_p", options.top_p);
    }
    body.set("ignore_eos", options.ignore_eos);
    body.merge(&options.extra_body);
    body.merge(&sample.extra_body);
    if let Some(adapter) = adapter {
        body.set("model", adapter);
        body.set("lora_path", adapter);
    }
    if options.include_usage {
        body.ask_for_usage();
    }
    body.into_bytes()
}
