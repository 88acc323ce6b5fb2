//! The time between tokens.

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
    fn of(self, index: usize, chunk: Chunk) -> u32 {
        let tokens = match self {
            Self::One => 1,
            Self::Counted => chunk.tokens.unwrap_or(1),
            Self::Pieces(pieces) => pieces.get(index).copied().unwrap_or(1),
        };
        tokens.min(MAX_CHUNK_TOKENS)
    }
}

/// Where one choice's tokens stand.
#[derive(Clone, Copy)]
struct Lane {
    /// The chunk from which the next gap counts.
    since: Stamp,
    /// The newest chunk; later than `since` while its gap is still carried.
    newest: Stamp,
}

/// The lanes of a reply: nearly always one.
enum Lanes {
    One(Option<Lane>),
    PerChoice(BTreeMap<u32, Lane>),
}

impl Lanes {
    /// One lane per choice, but a single lane when every index occurs exactly once: then the index
    /// counts chunks (a known mock server does that), not choices.
    fn of(chunks: &Chunks) -> Self {
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
    fn lane(&mut self, chunk: Chunk) -> (&mut Lane, bool) {
        let fresh = Lane { since: chunk.at, newest: chunk.at };
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
    fn pop_carried(&mut self) -> Option<Lane> {
        loop {
            let lane = match self {
                Self::One(lane) => lane.take()?,
                Self::PerChoice(lanes) => lanes.pop_first()?.1,
            };
            if lane.newest > lane.since {
                return Some(lane);
            }
        }
    }
}

/// The gaps between successive chunks of the same choice, each divided by the chunk's tokens.
///
/// The first chunk of a choice has no gap before it. A chunk that counts for no token hands its
/// time on to the next one; what is left at the end of the reply is one gap, so that the gaps of a
/// choice always sum to the time from its first chunk to its last.
pub(crate) fn gaps<'a>(chunks: &'a Chunks, weights: Weights<'a>) -> impl Iterator<Item = Gap> + 'a {
    let mut lanes = Lanes::of(chunks);
    let mut rest = chunks.iter().enumerate();
    std::iter::from_fn(move || {
        for (index, chunk) in rest.by_ref() {
            let tokens = weights.of(index, chunk);
            let (lane, first) = lanes.lane(chunk);
            lane.newest = chunk.at;
            if first || tokens == 0 {
                continue;
            }
            let seconds = chunk.at.secs_since(lane.since) / f64::from(tokens);
            lane.since = chunk.at;
            return Some(Gap { seconds, tokens });
        }
        let lane = lanes.pop_carried()?;
        Some(Gap { seconds: lane.newest.secs_since(lane.since), tokens: 1 })
    })
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "tests mean exact values")]
mod tests {
    use super::*;

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
}
