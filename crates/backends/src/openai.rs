//! Replies of the OpenAI routes. Completions and chat differ in the shape of their pieces only, so one
//! decoder reads both.

pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod frame;
mod pattern;

use crate::choices::{Choices, Rise};
use crate::decoder::{Problem, Reading};
use crate::json::field::{self, Field};
use crate::server_error;
use frame::{Choice, Frame, Usage};
use pattern::Pattern;
use servebench_core::{Reply, Stamp};

/// Reads the frames of one reply.
#[derive(Debug, Default)]
pub(crate) struct OpenAiReading {
    choices: Choices<()>,
    pattern: Pattern,
}

impl Reading for OpenAiReading {
    fn near(&self) {
        self.choices.near();
        self.pattern.near();
    }

    fn frame(&mut self, at: Stamp, data: &[u8], reply: &mut Reply) -> Result<(), Problem> {
        if let Some((index, text)) = self.pattern.recognise(data) {
            self.choices.at(index).note_uncounted();
            reply.push_chunk(at, None, index, text);
            return Ok(());
        }
        if let Some(frame) = strict(data) {
            self.take(at, &frame, reply);
            self.pattern.learn(data, &frame);
            return Ok(());
        }
        let value = crate::json::value(data).map_err(Problem::Unreadable)?;
        if let Some(failure) = server_error::in_frame(&value) {
            return Err(Problem::Failed(failure));
        }
        self.take(at, &Frame::loose(&value), reply);
        Ok(())
    }

    fn finished(&self) -> Option<usize> {
        self.choices.finished()
    }
}

/// Reads a frame strictly. `None` for what needs a second look: errors, and frames without anything to
/// measure, which may be errors.
fn strict(data: &[u8]) -> Option<Frame<'_>> {
    let frame: Frame<'_> = field::strict(data)?;
    let ordinary = !frame.choices.is_empty() || frame.usage.completion.0.is_some();
    (ordinary && !frame.error.0).then_some(frame)
}

impl OpenAiReading {
    fn take(&mut self, at: Stamp, frame: &Frame<'_>, reply: &mut Reply) {
        let total = frame.usage.completion.0;
        // With several choices in one frame, the count is the sum over them.
        let own = total.filter(|_| frame.choices.len() == 1);
        for choice in frame.choices.iter() {
            self.take_choice(at, choice, own, reply);
        }
        if let (Some(total), true) = (total, frame.choices.is_empty()) {
            self.choices.count_all(total);
        }
        note_usage(&frame.usage, reply);
        if own.is_some() && self.choices.iter().len() > 1 {
            reply.completion_tokens = Some(self.choices.counted());
        }
        if let Some(cached) = frame.extension.cached.note(reply) {
            reply.cached_tokens = Some(cached);
        }
    }

    fn take_choice(
        &mut self,
        at: Stamp,
        choice: &Choice<'_>,
        total: Option<u32>,
        reply: &mut Reply,
    ) {
        let index = choice.index.0.unwrap_or(0);
        let state = self.choices.at(index);
        let message = if choice.delta.is_empty() { &choice.message } else { &choice.delta };
        let (thinking, content) = (message.thinking(), &*message.content.0);
        let has_text = !(thinking.is_empty() && content.is_empty() && choice.text.is_empty());
        let rise = state.count(total);
        if has_text || message.has_other_output() || matches!(rise, Rise::Tokens(_)) {
            let tokens = match rise {
                Rise::Tokens(tokens) => Some(tokens),
                Rise::Nothing => None,
                Rise::Unknown => {
                    // A count covers what came up to its frame, this one included.
                    if total.is_none() {
                        state.note_uncounted();
                    }
                    None
                }
            };
            reply.text.push_str(thinking);
            reply.text.push_str(content);
            reply.push_chunk(at, tokens, index, &choice.text.0);
        }
        state.finish(&choice.finish, reply);
        if let Some(length) = choice.meta.accept_length.0 {
            reply.rare_mut().accept_length = Some(length);
        }
    }
}

/// Notes what a usage block says; what it leaves out stays as it was.
fn note_usage(usage: &Usage, reply: &mut Reply) {
    if let Some(prompt) = usage.prompt.0.filter(|&n| n > 0) {
        reply.prompt_tokens = Some(prompt);
    }
    if let Some(completion) = usage.completion.0 {
        reply.completion_tokens = Some(completion);
    }
    if let Some(cached) = usage.details.cached.0 {
        reply.cached_tokens = Some(cached.into());
    }
}
