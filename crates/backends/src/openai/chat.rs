//! `/v1/chat/completions`.

use super::OpenAiReading;
use crate::body::{Body, complete_openai, prompt_value};
use crate::decoder::Decoder;
use crate::options::GenerateOptions;
use bytes::Bytes;
use memchr::memmem;
use serde_json::{Value, json};
use servebench_core::{Conversation, Decode, Picture, Prompt, Protocol, Request, Sample};
use std::sync::Arc;

/// The chat protocol: messages in; reasoning, content and tool calls out.
#[derive(Debug)]
struct Chat {
    path: &'static str,
    options: GenerateOptions,
}

/// The protocol at `path` with these options.
pub(crate) fn protocol(path: &'static str, options: GenerateOptions) -> Arc<dyn Protocol> {
    Arc::new(Chat { path, options })
}

/// Where the messages go in a body that has none.
const NO_MESSAGES: &[u8] = br#""messages":[]"#;

impl Chat {
    fn body(&self, messages: Value, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let mut body = Body::default();
        body.set("model", self.options.model.as_str());
        body.set("messages", messages);
        body.set("max_completion_tokens", sample.output_len);
        complete_openai(body, &self.options, sample, adapter)
    }
}

/// A text, after the pictures that go with it.
fn content(text: &str, sample: &Sample) -> Value {
    let Some(pictures) = &sample.pictures else { return text.into() };
    let picture =
        |picture: &Picture| json!({"type": "image_url", "image_url": {"url": &*picture.uri}});
    let text = json!({"type": "text", "text": text});
    pictures.list.iter().map(picture).chain([text]).collect()
}

impl Protocol for Chat {
    fn path(&self) -> &str {
        self.path
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let messages = match &sample.prompt {
            Prompt::Text(text) => json!([{"role": "user", "content": content(text, sample)}]),
            Prompt::Turns(turns) => json!(turns.first()),
            list => prompt_value(list),
        };
        self.body(messages, sample, adapter)
    }

    fn conversation(&self, sample: &Sample, adapter: Option<&str>) -> Option<Conversation> {
        let Prompt::Turns(turns) = &sample.prompt else { return None };
        if [&self.options.extra_body, &sample.extra_body]
            .iter()
            .any(|body| body.contains_key("messages"))
        {
            return None; // They take the place of the conversation's.
        }
        let body = self.body(json!([]), sample, adapter);
        // Quotes within a string are escaped, so this is a key, and only the model comes before it.
        let bracket = memmem::find(&body, NO_MESSAGES)? + NO_MESSAGES.len() - 1;
        let messages = |turn: &Vec<Value>| {
            turn.iter().map(Value::to_string).collect::<Vec<_>>().join(",").into()
        };
        Some(Conversation {
            head: body.slice(..bracket),
            turns: turns.iter().map(messages).collect(),
            tail: body.slice(bracket..),
            ..Conversation::default()
        })
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(Decoder::<OpenAiReading>::new(request))
    }
}
