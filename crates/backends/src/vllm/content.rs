//! Texts and media of a prompt, and the messages that are made of them.

use super::VllmBackend;
use super::recording::recording;
use crate::body::prompt_value;
use serde_json::{Value, json};
use servebench_core::{Picture, Prompt, Sample};

/// Where media stand in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    BeforeText,
    AfterText,
}

/// Messages as they are; anything else as one user message of a text and what goes with it.
pub(super) fn messages(sample: &Sample, place: Media) -> Value {
    if let Prompt::Messages(messages) = &sample.prompt {
        return json!(messages);
    }
    message(&prompt_value(&sample.prompt), pictures(sample), place)
}

/// A prompt for endpoints that know no messages: of a text with media, the text.
pub(super) fn text(prompt: &Prompt) -> Value {
    split(prompt).map_or_else(|| prompt_value(prompt), |(text, _)| Value::from(text))
}

/// All media of a sample, as parts of a message.
pub(super) fn media(sample: &Sample) -> Vec<Value> {
    split(&sample.prompt).map_or_else(|| pictures(sample), |(_, media)| media.to_vec())
}

fn pictures(sample: &Sample) -> Vec<Value> {
    let part =
        |picture: &Picture| json!({"type": "image_url", "image_url": {"url": &*picture.uri}});
    sample.pictures.iter().flat_map(|pictures| &pictures.list).map(part).collect()
}

fn message(text: &Value, mut media: Vec<Value>, place: Media) -> Value {
    let text = json!({"type": "text", "text": text});
    match place {
        Media::BeforeText => media.push(text),
        Media::AfterText => media.insert(0, text),
    }
    json!([{"role": "user", "content": media}])
}

/// Text and media of a prompt that is one user message of a text followed by media.
fn split(prompt: &Prompt) -> Option<(&str, &[Value])> {
    let Prompt::Messages(messages) = prompt else { return None };
    let [message] = messages.as_slice() else { return None };
    let [first, media @ ..] = message.get("content")?.as_array()?.as_slice() else { return None };
    let kind = |part: &Value| part.get("type").and_then(Value::as_str).map(str::to_owned);
    let is_media = |part: &Value| kind(part).is_some_and(|kind| kind != "text");
    let fits = !media.is_empty() && media.iter().all(is_media);
    let is_user = message.get("role").is_some_and(|role| role == "user");
    (fits && is_user && kind(first)? == "text").then_some((first.get("text")?.as_str()?, media))
}

/// Puts a sample with media into the form that the backend wants: a recording is a file for transcriptions;
/// CLIP and VLM2Vec models want words of their own. `number` is the one at the end of the request's id;
/// without it VLM2Vec is asked about the image alone.
pub(super) fn adapt(backend: VllmBackend, sample: &mut Sample, number: Option<u64>) {
    let media = media(sample);
    if media.is_empty() {
        return;
    }
    let (words, place) = match backend {
        VllmBackend::OpenaiAudio => {
            sample.audio = media.iter().find_map(recording).map(Box::new);
            sample.prompt = Prompt::Text(String::new());
            return;
        }
        VllmBackend::OpenaiEmbeddingsClip | VllmBackend::InfinityEmbeddingsClip => {
            (String::new(), Media::AfterText)
        }
        VllmBackend::OpenaiEmbeddingsVlm2Vec if number.is_some_and(|number| number % 2 == 1) => {
            let asked = match text(&sample.prompt) {
                Value::String(text) => text,
                other => other.to_string(),
            };
            let words = format!("Represent the given image with the following question: {asked}");
            (words, Media::BeforeText)
        }
        VllmBackend::OpenaiEmbeddingsVlm2Vec => {
            ("Represent the given image.".to_owned(), Media::BeforeText)
        }
        _ => return,
    };
    sample.prompt = if split(&sample.prompt).is_none() {
        Prompt::Text(words)
    } else {
        match message(&Value::from(words), media, place) {
            Value::Array(messages) => Prompt::Messages(messages),
            _ => return,
        }
    };
}
