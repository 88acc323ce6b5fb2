//! `custom_image` and `custom_audio`: JSONL files of prompts with images or audio.

use super::custom::CustomOptions;
use super::media::{Recording, audio_of, image_at, message, read_image, wav};
use super::shared::{finish, need_path, shuffle};
use super::{VllmDatasetOptions, VllmLoaded};
use crate::lines::{bad_line, numbered};
use crate::{DatasetError, corpus};
use rayon::prelude::*;
use serde_json::{Value, json};
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Tokenizer, TokensError};

/// What a file's rows hold beside text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Images; `inside`: their files are read here and sent along.
    Image { inside: bool },
    /// Audio, whose files are always read here.
    Audio,
}

pub(super) fn load(
    kind: Kind,
    custom: &CustomOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    let name = if kind == Kind::Audio { "custom_audio" } else { "custom_image" };
    let path = need_path(options, name)?;
    let text = corpus::read(path)?;
    let mut lines: Vec<(usize, &str)> = numbered(&text).collect();
    shuffle(&mut lines, options, draws);
    lines.truncate(options.num_prompts.unwrap_or(usize::MAX));
    let sample = |(number, line): (usize, &str)| -> Result<Sample, DatasetError> {
        let row = Row::read(line, kind, custom).map_err(|why| bad_line(path, number, why))?;
        let (prompt_len, counted) = match tokenizer {
            Some(tokenizer) => {
                // The text of a recording that goes as a file is not sent, but counted as if it were.
                let templated = kind == Kind::Audio && !options.skip_chat_template;
                let text = if templated { rendered(row.text, tokenizer)? } else { row.text };
                (tokenizer.count(&text, true)?, Counted::Tokenizer)
            }
            None => (1, Counted::Nominal),
        };
        let (prompt, output_len) = (row.prompt, row.output_len);
        Ok(Sample { prompt, prompt_len, counted, output_len, ..Sample::default() })
    };
    let samples: Result<Vec<Sample>, DatasetError> = lines.into_par_iter().map(sample).collect();
    finish(samples?, options, draws, (path, "0 rows".to_owned()))
}

/// The text as a user's message, where the tokenizer has a chat template.
fn rendered(text: String, tokenizer: &Tokenizer) -> Result<String, TokensError> {
    match tokenizer.chat_template() {
        Err(TokensError::NoChatTemplate { .. }) => Ok(text),
        template => template?.render(&[json!({"role": "user", "content": text})], true),
    }
}

/// A row that can be sent.
#[derive(Debug)]
pub(super) struct Row {
    /// The messages.
    prompt: Prompt,
    /// Their text.
    text: String,
    output_len: u32,
}

impl Row {
    pub(super) fn read(line: &str, kind: Kind, custom: &CustomOptions) -> Result<Self, String> {
        let row: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if !row.is_object() {
            return Err("it is no object".to_owned());
        }
        let own = || {
            let tokens = row.get("output_tokens").and_then(Value::as_u64);
            tokens.and_then(|tokens| u32::try_from(tokens).ok()).ok_or_else(|| {
                "--custom-output-len -1 takes each row's `output_tokens`, and it has none"
                    .to_owned()
            })
        };
        let output_len = custom.output_len.map_or_else(own, Ok)?;
        let text = |field: &str| {
            let text = row.get(field).and_then(Value::as_str).map(str::to_owned);
            text.ok_or_else(|| format!("it has no text in `{field}`"))
        };
        let (text, prompt) = match (kind, row.get("content")) {
            (Kind::Audio, _) => {
                let text = text("prompt")?;
                let audio = row.get("audio").ok_or("it has no `audio`")?;
                let prompt = message(&text, vec![audio_part(audio)?]);
                (text, prompt)
            }
            (Kind::Image { inside }, Some(content)) => {
                let (text, parts) = interleaved(content, inside)?;
                (text, Prompt::Messages(vec![json!({"role": "user", "content": parts})]))
            }
            (Kind::Image { inside }, None) => {
                let text = text("prompt")?;
                let files = row.get("image_files").and_then(Value::as_array);
                let files = files.filter(|files| !files.is_empty());
                let files = files.ok_or("it has neither `content` nor a list of `image_files`")?;
                let images = files.iter().map(|image| image_part(image, inside));
                let prompt = message(&text, images.collect::<Result<_, _>>()?);
                (text, prompt)
            }
        };
        Ok(Self { prompt, text, output_len })
    }
}

fn image_part(image: &Value, inside: bool) -> Result<Value, String> {
    let address = image.as_str().ok_or_else(|| format!("{image} is no address of an image"))?;
    if inside && !address.starts_with("data:image/") {
        read_image(address)
    } else {
        Ok(image_at(address))
    }
}

/// The text and the parts of a list of texts and images.
fn interleaved(content: &Value, inside: bool) -> Result<(String, Vec<Value>), String> {
    let parts = content.as_array().filter(|parts| !parts.is_empty());
    let parts = parts.ok_or("its `content` is no list of parts")?;
    let (mut text, mut sent) = (String::new(), Vec::with_capacity(parts.len()));
    for part in parts {
        sent.push(match part.get("type").and_then(Value::as_str) {
            Some("text") => {
                let own = part.get("text").and_then(Value::as_str);
                let own = own.ok_or("a part of type text has no text in `text`")?;
                text.push_str(own);
                json!({"type": "text", "text": own})
            }
            Some("image") => {
                let image = part.get("image").ok_or("a part of type image has no `image`")?;
                image_part(image, inside)?
            }
            Some("image_url") => match part.get("image_url") {
                Some(Value::Object(fields)) => {
                    let url = fields.get("url").ok_or("an `image_url` has no `url`")?;
                    let mut made = image_part(url, inside)?;
                    for (key, value) in fields.iter().filter(|(key, _)| *key != "url") {
                        made["image_url"][key] = value.clone();
                    }
                    made
                }
                Some(url) => image_part(url, inside)?,
                None => return Err("a part of type image_url has no `image_url`".to_owned()),
            },
            _ => return Err(format!("{part} is no part of type text, image or image_url")),
        });
    }
    Ok((text, sent))
}

/// Audio by the path of its file, or as its samples with their rate.
fn audio_part(audio: &Value) -> Result<Value, String> {
    if let Some(path) = audio.as_str() {
        return Recording::read(path).map(|recording| recording.part);
    }
    let pair = match audio {
        Value::Array(pair) => pair.first().zip(pair.get(1)),
        other => other.get("array").zip(other.get("sampling_rate")),
    };
    let (samples, rate) = pair.ok_or(
        "its `audio` is neither a path, nor an object with `array` and `sampling_rate`, nor a pair \
         of those",
    )?;
    let rate = rate.as_u64().and_then(|rate| u32::try_from(rate).ok());
    let rate = rate.filter(|rate| *rate > 0).ok_or("its `audio` has no rate of samples")?;
    let frames = samples.as_array().ok_or("its `audio` has no list of samples")?;
    let channels = frames.first().and_then(Value::as_array).map_or(1, Vec::len);
    let channels = u16::try_from(channels).ok().filter(|channels| (1..=64).contains(channels));
    let channels = channels.ok_or("its `audio` has no usual number of channels")?;
    let mut values = Vec::with_capacity(frames.len() * usize::from(channels));
    for frame in frames {
        let before = values.len();
        match frame {
            Value::Array(frame) => values.extend(frame.iter().filter_map(Value::as_f64)),
            value => values.extend(value.as_f64()),
        }
        if values.len() - before != usize::from(channels) {
            return Err(format!("{frame} is no sample of {channels} channels"));
        }
    }
    audio_of(&wav(&values, channels, rate))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const IMAGE: Kind = Kind::Image { inside: false };

    fn content(line: &Value, kind: Kind) -> Result<(Value, String), String> {
        let row = Row::read(&line.to_string(), kind, &CustomOptions::default())?;
        let Prompt::Messages(messages) = row.prompt else { return Err("no messages".to_owned()) };
        Ok((messages[0]["content"].clone(), row.text))
    }

    #[test]
    fn images_go_after_the_text() {
        let line = json!({"prompt": "which", "image_files": ["/a.png", "http://x/b.jpg"]});
        let want = json!([{"type": "text", "text": "which"},
            {"type": "image_url", "image_url": {"url": "file:///a.png"}},
            {"type": "image_url", "image_url": {"url": "http://x/b.jpg"}}]);
        assert_eq!(content(&line, IMAGE), Ok((want, "which".to_owned())));
    }

    #[test]
    fn content_keeps_its_order_and_fields() {
        let line = json!({"prompt": "unused", "content": [
            {"type": "text", "text": "a"},
            {"type": "image_url", "image_url": {"url": "x.png", "detail": "low"}},
            {"type": "text", "text": "b"},
            {"type": "image", "image": "data:image/png;base64,AA"},
            {"type": "image_url", "image_url": "https://x/y"},
        ]});
        let (parts, text) = content(&line, IMAGE).unwrap();
        assert_eq!(text, "ab");
        assert_eq!(parts[1]["image_url"], json!({"url": "file://x.png", "detail": "low"}));
        assert_eq!(parts[3]["image_url"]["url"], "data:image/png;base64,AA");
        assert_eq!(parts[4]["image_url"]["url"], "https://x/y");
    }

    #[test]
    fn images_can_be_sent_along() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"\xff\xd8\xff").unwrap();
        let line = json!({"prompt": "p", "image_files": [file.path().to_str().unwrap()]});
        let (parts, _) = content(&line, Kind::Image { inside: true }).unwrap();
        assert_eq!(parts[1]["image_url"]["url"], "data:image/jpeg;base64,/9j/");
        let missing = json!({"prompt": "p", "image_files": ["/no/such/file"]});
        let error = content(&missing, Kind::Image { inside: true }).unwrap_err();
        assert!(error.starts_with("/no/such/file"), "{error}");
    }

    #[test]
    fn audio_is_a_file_or_samples() {
        let samples = json!({"array": [0.0, 0.5], "sampling_rate": 8000});
        let (parts, _) = content(&json!({"prompt": "p", "audio": samples}), Kind::Audio).unwrap();
        let pair = json!({"prompt": "p", "audio": [[[0.0], [0.5]], 8000]});
        assert_eq!(content(&pair, Kind::Audio).unwrap().0, parts);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), wav(&[0.0, 0.5], 1, 8000)).unwrap();
        let path = json!({"prompt": "p", "audio": file.path().to_str().unwrap()});
        assert_eq!(content(&path, Kind::Audio).unwrap().0, parts);
        assert_eq!(parts[1]["input_audio"]["format"], "wav");
    }

    #[test]
    fn a_row_says_what_is_wrong() {
        for (line, kind) in [
            (json!([]), IMAGE),
            (json!({"prompt": "p"}), IMAGE),
            (json!({"prompt": "p", "image_files": []}), IMAGE),
            (json!({"prompt": "p", "image_files": [7]}), IMAGE),
            (json!({"content": []}), IMAGE),
            (json!({"content": [{"type": "video"}]}), IMAGE),
            (json!({"audio": [[0.0], 8000]}), Kind::Audio),
            (json!({"prompt": "p"}), Kind::Audio),
            (json!({"prompt": "p", "audio": [[0.0], 0]}), Kind::Audio),
            (json!({"prompt": "p", "audio": [[[0.0, 0.0], [0.0]], 8000]}), Kind::Audio),
        ] {
            assert!(content(&line, kind).is_err(), "{line}");
        }
        let own = CustomOptions { output_len: None };
        let line = json!({"prompt": "p", "image_files": ["x"], "output_tokens": 7}).to_string();
        assert_eq!(Row::read(&line, IMAGE, &own).map(|row| row.output_len), Ok(7));
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "[\\[\\]{}\":,a-z0-9contentimage_filesaudio.-]{0,80}") {
            let own = CustomOptions { output_len: Some(1) };
            drop(Row::read(&line, IMAGE, &own));
            drop(Row::read(&line, Kind::Audio, &own));
        }

        #[test]
        fn no_samples_panic(values in prop::collection::vec(-1e300..1e300_f64, 0..9), rate: u32) {
            let line = json!({"prompt": "p", "audio": [values, rate]});
            prop_assert_eq!(content(&line, Kind::Audio).is_ok(), rate > 0);
        }
    }
}
