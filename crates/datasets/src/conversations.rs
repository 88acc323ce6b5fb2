//! `sharegpt` and `custom`: the first two turns of conversations, shuffled and filtered.

use crate::corpus::{Conversation, TextKey};
use crate::skips::{Skip, Skips};
use crate::{DatasetError, DatasetOptions};
use rayon::prelude::*;
use serde_json::json;
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{ChatTemplate, Tokenizer, without_leading};

/// The turn that a suffix is put before.
const ASSISTANT: &str = "Assistant:";

/// Rows tokenized ahead on all cores, so that a filter that drops much does not make it serial.
const MIN_BATCH: usize = 64;

/// Takes conversations in shuffled order until there are as many samples as wanted.
pub(crate) fn sample(
    mut conversations: Vec<Conversation<'_>>,
    key: TextKey,
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    draws: &mut Draws,
    skips: &mut Skips,
) -> Result<Vec<Sample>, DatasetError> {
    let template = options.apply_chat_template.then(|| tokenizer.chat_template()).transpose()?;
    let maker = Maker { key, options, tokenizer, template };
    draws.python.shuffle(&mut conversations);
    let mut samples = Vec::with_capacity(options.num_prompts.min(conversations.len()));
    let mut rest = conversations.as_slice();
    while samples.len() < options.num_prompts && !rest.is_empty() {
        let wanted = (options.num_prompts - samples.len()).max(MIN_BATCH);
        let (batch, later) = rest.split_at(wanted.min(rest.len()));
        rest = later;
        let made: Vec<_> = batch.par_iter().map(|conversation| maker.make(conversation)).collect();
        for (outcome, conversation) in made.into_iter().zip(batch) {
            if samples.len() == options.num_prompts {
                break; // Rows past the last one wanted were never looked at, errors included.
            }
            match outcome? {
                Ok(sample) => samples.push(sample),
                Err(skip) => skips.note(skip, conversation.at),
            }
        }
    }
    Ok(samples)
}

struct Maker<'a> {
    key: TextKey,
    options: &'a DatasetOptions,
    tokenizer: &'a Tokenizer,
    template: Option<&'a ChatTemplate>,
}

impl Maker<'_> {
    fn make(&self, conversation: &Conversation<'_>) -> Result<Result<Sample, Skip>, DatasetError> {
        let texts = (conversation.text(0, self.key), conversation.text(1, self.key));
        let (Some(prompt), Some(completion)) = texts else { return Ok(Err(Skip::NoText)) };
        let prompt = self.shape(prompt)?;
        let prompt_len = self.tokenizer.count(&prompt, true)?;
        let output_len = match self.options.sharegpt_output_len {
            Some(len) => len,
            None => self.tokenizer.count(&completion, true)?,
        };
        if prompt_len < 2 || output_len < 2 {
            return Ok(Err(Skip::TooShort));
        }
        let limit = self.options.sharegpt_context_len.filter(|&limit| limit > 0);
        if limit.is_some_and(|limit| prompt_len.saturating_add(output_len) > limit) {
            return Ok(Err(Skip::TooLong));
        }
        let (prompt, counted) = (Prompt::Text(prompt), Counted::Tokenizer);
        Ok(Ok(Sample { prompt, prompt_len, counted, output_len, ..Sample::default() }))
    }

    /// The prompt with suffix and template, as far as they are asked for.
    fn shape(&self, prompt: String) -> Result<String, DatasetError> {
        let suffix = &self.options.prompt_suffix;
        let prompt = if suffix.is_empty() {
            prompt
        } else {
            let kept = prompt.strip_suffix(ASSISTANT).unwrap_or(&prompt);
            format!("{kept}{suffix}{ASSISTANT}")
        };
        let Some(template) = self.template else { return Ok(prompt) };
        let rendered = template.render(&[json!({"role": "user", "content": prompt})], true)?;
        Ok(without_leading(&rendered, self.tokenizer.bos_token()).to_owned())
    }
}
