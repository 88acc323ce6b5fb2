//! What has come so far of each choice of a reply.

use crate::json::field::Finish;
use servebench_core::{Failure, FailureKind, Reply};
use std::hint::black_box;

/// Choices told apart; a server that sends more gets the last one for all further ones. Far above
/// any `n` that servers accept.
const CHOICES_LIMIT: usize = 256;

/// What a count in a frame says about the tokens of that frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rise {
    /// It brought this many tokens.
    Tokens(u32),
    /// It brought none.
    Nothing,
    /// There is no count, or it covers earlier frames that had none.
    Unknown,
}

/// One choice of a reply. `T` is what a protocol keeps of it beside.
#[derive(Debug, Default)]
pub(crate) struct Choice<T> {
    pub(crate) index: u32,
    /// Its cumulative count, as last seen.
    pub(crate) counted: u32,
    /// There were token-bearing frames since, without a count.
    uncounted: bool,
    finished: bool,
    pub(crate) state: T,
}

impl<T> Choice<T> {
    /// Takes the cumulative count of a frame.
    pub(crate) fn count(&mut self, total: Option<u32>) -> Rise {
        let Some(total) = total else { return Rise::Unknown };
        let tokens = total.saturating_sub(self.counted);
        self.counted = self.counted.max(total);
        match (std::mem::take(&mut self.uncounted), tokens) {
            (_, 0) => Rise::Nothing,
            (false, tokens) => Rise::Tokens(tokens),
            (true, _) => Rise::Unknown,
        }
    }

    /// Notes a token-bearing frame whose tokens are unknown.
    pub(crate) fn note_uncounted(&mut self) {
        self.uncounted = true;
    }

    /// Notes the finish reason of a frame, if it has one, here and in `reply`.
    pub(crate) fn finish(&mut self, finish: &Finish<'_>, reply: &mut Reply) {
        let reason = finish.reason();
        if reason.is_empty() {
            return;
        }
        self.finished = true;
        if reply.finish_reason.as_deref() != Some(reason) {
            reply.finish_reason = Some(reason.into());
        }
        let (kind, default) = match reason {
            "abort" => (FailureKind::Aborted, "the server aborted the request"),
            "error" => (FailureKind::Server, "the reply finished with an error"),
            _ => return,
        };
        let message = finish.message();
        reply.fail(Failure::new(kind, if message.is_empty() { default } else { message }));
    }
}

/// The choices of a reply, in the order in which they first came.
#[derive(Debug)]
pub(crate) struct Choices<T>(Vec<Choice<T>>);

impl<T> Default for Choices<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Default> Choices<T> {
    /// Looks at the memory that the next piece of text will need.
    pub(crate) fn near(&self) {
        black_box(self.0.first().map(|choice| choice.finished));
    }

    /// The choice with this index.
    pub(crate) fn at(&mut self, index: u32) -> &mut Choice<T> {
        let place = match self.0.iter().position(|choice| choice.index == index) {
            Some(place) => place,
            None if self.0.len() == CHOICES_LIMIT => CHOICES_LIMIT - 1,
            None => {
                self.0.push(Choice { index, ..Choice::default() });
                self.0.len() - 1
            }
        };
        &mut self.0[place]
    }

    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Choice<T>> {
        self.0.iter()
    }

    /// Takes a count that stands in a frame without choices, for the one choice there is.
    pub(crate) fn count_all(&mut self, total: u32) {
        if let [only] = &mut *self.0 {
            only.count(Some(total));
        }
    }

    /// Output tokens over all choices.
    pub(crate) fn counted(&self) -> u32 {
        self.0.iter().fold(0, |sum: u32, choice| sum.saturating_add(choice.counted))
    }

    /// How many choices have a finish reason; `None` when some choice that began has none.
    pub(crate) fn finished(&self) -> Option<usize> {
        self.0.iter().all(|choice| choice.finished).then_some(self.0.len())
    }
}
