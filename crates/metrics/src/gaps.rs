//! The time between tokens.

use crate::reception::is_exact;
use servebench_core::{Chunk, Chunks, Stamp};
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};

/// How the gap before a chunk becomes inter-token samples, as the Python tool does it per route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ItlRule {
    /// One sample per chunk, however many tokens it carries (OpenAI routes).
    #[default]
    PerChunk,
    /// The gap divided by the chunk's tokens, once for each of them (native routes).
    SpreadOverTokens,
}

impl ItlRule {
    pub(crate) const fn weights(self) -> Weights<'static> {
        match self {
            Self::PerChunk => Weights::One,
            Self::SpreadOverTokens => Weights::Counted,
        }
    }
}

/// The same time between two tokens, `tokens` times in a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gap {
    /// Seconds from one token to the next.
    pub seconds: f64,
    /// How many samples this stands for, at least one.
    pub tokens: u32,
}

impl Gap {
    /// The samples one by one.
    pub fn samples(self) -> impl Iterator<Item = f64> {
        std::iter::repeat_n(self.seconds, self.tokens as usize)
    }
}

/// How many tokens each chunk counts for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Weights<'a> {
    /// One each.
    One,
    /// What the server's counts say, one where they say nothing.
    Counted,
    /// What the tokenizer makes of each chunk's text.
    Pieces(&'a [u32]),
}

/// No honest chunk carries more: a nonsense count must not become gigabytes of samples.
pub(crate) const MAX_CHUNK_TOKENS: u32 = 1 << 20;

impl Weights<'_> {
    /// Whether both make the same of each chunk.
    pub(crate) fn agree(self, other: Self, chunks: &[Chunk]) -> bool {
        let mut chunks = chunks.iter().enumerate();
        chunks.all(|(index, chunk)| self.of(index, chunk) == other.of(index, chunk))
    }

    fn of(self, index: usize, chunk: &Chunk) -> u32 {
        let tokens = match self {
            Self::One => 1,
            Self::Counted => chunk.tokens.unwrap_or(1),
            Self::Pieces(pieces) => pieces.get(index).copied().unwrap_or(1),
        };
        tokens.min(MAX_CHUNK_TOKENS)
    }
}

/// From one token to the next of the same choice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step<'a> {
    /// The chunk from which the gap counts.
    since: &'a Chunk,
    /// The chunk that ends it.
    newest: &'a Chunk,
    /// Tokens that share the gap, at least one.
    pub(crate) tokens: u32,
}

impl Step<'_> {
    /// The gap between the stamps, in nanoseconds.
    pub(crate) fn nanos(self) -> u64 {
        self.newest.at.0.saturating_sub(self.since.at.0)
    }

    /// The least and the most that the true gap may be, in nanoseconds.
    pub(crate) fn bounds(self) -> (u64, u64) {
        let low = self.newest.after.0.saturating_sub(self.since.at.0);
        (low, self.newest.at.0.saturating_sub(self.since.after.0))
    }

    /// Whether the samples are known to within [`EXACT_WITHIN`](crate::EXACT_WITHIN).
    pub(crate) fn is_exact(self) -> bool {
        if self.is_between_exact() {
            return true;
        }
        let (low, high) = self.bounds();
        is_exact((high - low) as f64 / 1e9 / f64::from(self.tokens))
    }

    /// Whether both stamps are the times themselves.
    pub(crate) fn is_between_exact(self) -> bool {
        self.since.is_exact() && self.newest.is_exact()
    }

    /// When each of its tokens came, if they share the gap evenly; the last one with the newest chunk.
    pub(crate) fn arrivals(self) -> impl Iterator<Item = Stamp> {
        let (since, gap) = (self.since.at.0, u128::from(self.nanos()));
        let tokens = u128::from(self.tokens);
        (1..=tokens).map(move |token| Stamp(since + (gap * token / tokens) as u64))
    }

    pub(crate) fn gap(self) -> Gap {
        let seconds = self.newest.at.secs_since(self.since.at) / f64::from(self.tokens);
        Gap { seconds, tokens: self.tokens }
    }
}

/// Where one choice's tokens stand.
#[derive(Clone, Copy)]
struct Lane<'a> {
    /// The chunk from which the next gap counts.
    since: &'a Chunk,
    /// The newest chunk; later than `since` while its gap is still carried.
    newest: &'a Chunk,
}

/// The lanes of a reply: nearly always one.
enum Lanes<'a> {
    One(Option<Lane<'a>>),
    PerChoice(BTreeMap<u32, Lane<'a>>),
}

impl<'a> Lanes<'a> {
    /// One lane per choice, but a single lane when every index occurs exactly once: then the index
    /// counts chunks (a known mock server does that), not choices.
    fn of(chunks: &[Chunk]) -> Self {
        if chunks.iter().all(|chunk| chunk.choice == 0) {
            return Self::One(None);
        }
        let mut seen = BTreeSet::new();
        if chunks.iter().all(|chunk| seen.insert(chunk.choice)) {
            return Self::One(None);
        }
        Self::PerChoice(BTreeMap::new())
    }

    /// The chunk's lane, and whether the chunk is the first in it.
    fn lane(&mut self, chunk: &'a Chunk) -> (&mut Lane<'a>, bool) {
        let fresh = Lane { since: chunk, newest: chunk };
        match self {
            Self::One(lane) => {
                let first = lane.is_none();
                (lane.get_or_insert(fresh), first)
            }
            Self::PerChoice(lanes) => match lanes.entry(chunk.choice) {
                Entry::Vacant(entry) => (entry.insert(fresh), true),
                Entry::Occupied(entry) => (entry.into_mut(), false),
            },
        }
    }

    /// Takes out a lane whose last chunks carried no token.
    fn pop_carried(&mut self) -> Option<Lane<'a>> {
        loop {
            let lane = match self {
                Self::One(lane) => lane.take()?,
                Self::PerChoice(lanes) => lanes.pop_first()?.1,
            };
            if lane.newest.at > lane.since.at {
                return Some(lane);
            }
        }
    }
}

/// The steps between successive chunks of the same choice.
///
/// The first chunk of a choice has no gap before it. A chunk that counts for no token hands its
/// time on to the next one; what is left at the end of the reply is one gap, so that the gaps of a
/// choice always sum to the time from its first chunk to its last.
pub(crate) fn steps<'a>(
    chunks: &'a [Chunk],
    weights: Weights<'a>,
) -> impl Iterator<Item = Step<'a>> {
    let mut lanes = Lanes::of(chunks);
    let mut rest = chunks.iter().enumerate();
    std::iter::from_fn(move || {
        for (index, newest) in rest.by_ref() {
            let tokens = weights.of(index, newest);
            let (lane, first) = lanes.lane(newest);
            lane.newest = newest;
            if first || tokens == 0 {
                continue;
            }
            let since = std::mem::replace(&mut lane.since, newest);
            return Some(Step { since, newest, tokens });
        }
        let Lane { since, newest } = lanes.pop_carried()?;
        Some(Step { since, newest, tokens: 1 })
    })
}

/// The gaps of all chunks, for whoever has them encoded.
pub(crate) fn gaps(chunks: &Chunks, weights: Weights<'_>) -> impl Iterator<Item = Gap> + use<> {
    let chunks: Vec<Chunk> = chunks.iter().collect();
    steps(&chunks, weights).map(Step::gap).collect::<Vec<Gap>>().into_iter()
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "tests mean exact values")]
mod tests {
    use super::*;
    use servebench_core::Stamp;

    fn chunks(list: &[(u64, Option<u32>, u32)]) -> Chunks {
        let mut chunks = Chunks::default();
        for &(ms, tokens, choice) in list {
            chunks.push(Stamp::from_millis(ms), tokens, choice);
        }
        chunks
    }

    fn samples_ms(chunks: &Chunks, weights: Weights<'_>) -> Vec<f64> {
        gaps(chunks, weights).flat_map(Gap::samples).map(|s| (s * 1e9).round() / 1e6).collect()
    }

    #[test]
    fn gaps_are_taken_per_choice() {
        let two = chunks(&[(10, None, 0), (11, None, 1), (20, None, 0), (31, None, 1)]);
        assert_eq!(samples_ms(&two, Weights::One), [10.0, 20.0]);
    }

    #[test]
    fn an_index_that_counts_up_is_no_choice() {
        let counted = chunks(&[(10, None, 0), (20, None, 1), (50, None, 2)]);
        assert_eq!(samples_ms(&counted, Weights::One), [10.0, 30.0]);
        // One index twice: choices after all.
        let choices = chunks(&[(10, None, 0), (20, None, 1), (50, None, 1)]);
        assert_eq!(samples_ms(&choices, Weights::One), [30.0]);
    }

    #[test]
    fn a_chunk_without_tokens_hands_its_time_on() {
        let list = chunks(&[(100, Some(1), 0), (160, Some(0), 0), (220, Some(2), 0)]);
        assert_eq!(samples_ms(&list, Weights::Counted), [60.0, 60.0]);
        let pieces = chunks(&[(100, None, 0), (160, None, 0), (220, None, 0)]);
        assert_eq!(samples_ms(&pieces, Weights::Pieces(&[1, 0, 2])), [60.0, 60.0]);
        let trailing = chunks(&[(100, Some(1), 0), (160, Some(2), 0), (220, Some(0), 0)]);
        assert_eq!(samples_ms(&trailing, Weights::Counted), [30.0, 30.0, 60.0]);
    }

    #[test]
    fn a_nonsense_count_stays_small() {
        let list = chunks(&[(0, Some(1), 0), (10, Some(u32::MAX), 0)]);
        let total: u64 = gaps(&list, Weights::Counted).map(|gap| u64::from(gap.tokens)).sum();
        assert_eq!(total, u64::from(MAX_CHUNK_TOKENS));
    }

    #[test]
    fn a_step_between_bounds_has_bounds() {
        let mut list = Chunks::default();
        let ms = Stamp::from_millis;
        for (after, at, tokens) in [(0, 10, 1), (10, 20, 1), (20, 50, 2), (50, 60, 1)] {
            list.read_after(ms(after));
            list.push(ms(at), Some(tokens), 0);
            if at == 20 || at == 50 {
                list.followed(ms(at));
            }
        }
        let list: Vec<Chunk> = list.iter().collect();
        let steps: Vec<Step<'_>> = steps(&list, Weights::Counted).collect();
        let ms = |nanos: u64| nanos / 1_000_000;
        let bounds = steps.iter().map(|step| step.bounds()).map(|(low, high)| (ms(low), ms(high)));
        assert_eq!(bounds.collect::<Vec<_>>(), [(0, 10), (0, 40), (10, 40)]);
        assert!(steps.iter().all(|step| !step.is_between_exact()));
        assert_eq!(steps.iter().map(|step| ms(step.nanos())).collect::<Vec<_>>(), [10, 30, 10]);
    }
}
