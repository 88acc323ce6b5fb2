//! `sharegpt`: the first turns of conversations in a ShareGPT file.

use super::media::{image_at, message, video_at};
use super::shared::{finish, is_usual, need, need_path, shuffle};
use super::{VllmDatasetOptions, VllmLoaded};
use crate::{DatasetError, corpus};
use rayon::prelude::*;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Tokenizer, TokensError};
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// Rows that are read at a time.
const BATCH: usize = 1024;

/// Which conversations of a ShareGPT file are used, and how.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShareGptOptions {
    /// Output length of every request, in place of the reply's.
    pub output_len: Option<u32>,
    /// Lengths of the prompts that are used, in tokens; `None`: those usual for such data, as the replies'
    /// have to be then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_lens: Option<RangeInclusive<u32>>,
}

impl ShareGptOptions {
    fn uses(&self, prompt_len: u32, output_len: u32) -> bool {
        match &self.prompt_lens {
            Some(lens) => lens.contains(&prompt_len),
            None => is_usual(prompt_len, output_len, self.output_len.is_some()),
        }
    }
}

/// A row as far as its use is decided by.
#[derive(Deserialize)]
struct Shape {
    #[serde(default)]
    conversations: Vec<IgnoredAny>,
}

/// A row that is used.
#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    conversations: Vec<Turn<'a>>,
    #[serde(default)]
    image: Option<Value>,
    #[serde(default)]
    video: Option<Value>,
}

#[derive(Deserialize)]
struct Turn<'a> {
    #[serde(borrow)]
    value: Cow<'a, str>,
}

pub(super) fn load(
    own: &ShareGptOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    let tokenizer = need(tokenizer, "sharegpt")?;
    let path = need_path(options, "sharegpt")?;
    let text = corpus::read(path)?;
    let rows: Vec<&RawValue> = serde_json::from_str(&text)
        .map_err(|source| DatasetError::Json { path: path.to_owned(), rows: 0, source })?;
    let total = rows.len();
    let mut rows: Vec<&RawValue> = rows
        .into_iter()
        .filter(|row| {
            serde_json::from_str(row.get()).is_ok_and(|row: Shape| row.conversations.len() >= 2)
        })
        .collect();
    shuffle(&mut rows, options, draws);
    let wanted = options.num_prompts.unwrap_or(usize::MAX);
    let mut samples: Vec<Sample> = Vec::new();
    let mut rest = rows.as_slice();
    while samples.len() < wanted && !rest.is_empty() {
        let (batch, later) = rest.split_at(rest.len().min(BATCH));
        rest = later;
        let read: Vec<_> = batch.par_iter().map(|row| sample(row.get(), own, tokenizer)).collect();
        for sample in read {
            samples.extend(sample?);
        }
    }
    samples.truncate(wanted);
    let skipped = format!("{total} rows, of which none has two turns of such lengths");
    finish(samples, options, draws, (path, skipped))
}

/// The sample of a row; `None` for one without text, or of unusual length.
pub(super) fn sample(
    row: &str,
    own: &ShareGptOptions,
    tokenizer: &Tokenizer,
) -> Result<Option<Sample>, TokensError> {
    let Ok(row) = serde_json::from_str::<Row<'_>>(row) else { return Ok(None) };
    let [prompt, reply, ..] = row.conversations.as_slice() else { return Ok(None) };
    let prompt_len = tokenizer.count(&prompt.value, true)?;
    let output_len = match own.output_len {
        Some(len) => len,
        None => tokenizer.count(&reply.value, true)?,
    };
    if !own.uses(prompt_len, output_len) {
        return Ok(None);
    }
    Ok(Some(Sample {
        prompt: with_media(&prompt.value, row.image.as_ref(), row.video.as_ref()),
        prompt_len,
        counted: Counted::Tokenizer,
        output_len,
        ..Sample::default()
    }))
}

/// The prompt with the image or video that its row names: as the parts of one user message.
fn with_media(text: &str, image: Option<&Value>, video: Option<&Value>) -> Prompt {
    let media = match (image.and_then(address), video.and_then(address)) {
        (Some(address), _) => image_at(address),
        (None, Some(address)) => video_at(address),
        (None, None) => return Prompt::Text(text.to_owned()),
    };
    message(text, vec![media])
}

/// Where a file is; an address of nothing names none.
fn address(value: &Value) -> Option<&str> {
    value.as_str().filter(|address| !address.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn an_image_goes_after_the_text() {
        let row = json!({"conversations": [{"value": "what is it"}, {"value": "a cat"}],
            "image": "coco/1.jpg"});
        let tokenizer = Tokenizer::byte_level();
        let own = ShareGptOptions { output_len: Some(5), ..ShareGptOptions::default() };
        let sample = sample(&row.to_string(), &own, &tokenizer).unwrap().unwrap();
        let want = json!({"role": "user", "content": [{"type": "text", "text": "what is it"},
            {"type": "image_url", "image_url": {"url": "file://coco/1.jpg"}}]});
        assert_eq!(sample.prompt, Prompt::Messages(vec![want]));
        assert_eq!((sample.prompt_len, sample.output_len), (10, 5));
    }

    #[test]
    fn prompts_may_be_chosen_by_their_lengths_alone() {
        let row = json!({"conversations": [{"value": "abc"}, {"value": ""}]}).to_string();
        let used = |prompt_lens| {
            let own = ShareGptOptions { prompt_lens, ..ShareGptOptions::default() };
            sample(&row, &own, &Tokenizer::byte_level()).unwrap().is_some()
        };
        assert!(used(Some(3..=3)) && !used(Some(4..=9)) && !used(None));
    }

    proptest! {
        #[test]
        fn no_row_panics(row in "[\\[\\]{}\":,a-z0-9conversationsvalue]{0,80}") {
            let own = ShareGptOptions::default();
            prop_assert!(sample(&row, &own, &Tokenizer::byte_level()).is_ok());
        }
    }
}
