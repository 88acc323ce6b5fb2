//! The busiest moments of a run.

use crate::Measured;
use servebench_core::{Chunk, Stamp};
use std::collections::BTreeMap;
use std::ops::Range;

const SECOND_NS: u64 = 1_000_000_000;

/// Most stamps in any window of one second, exactly; leaves `stamps` sorted. `None` without any.
///
/// The window is half-open: of two stamps exactly one second apart it holds one.
pub fn peak_per_second(stamps: &mut [Stamp]) -> Option<u64> {
    stamps.sort_unstable();
    let mut oldest = 0;
    let mut peak = None;
    for (newest, &at) in stamps.iter().enumerate() {
        while stamps.get(oldest).is_some_and(|old| at.0 - old.0 >= SECOND_NS) {
            oldest += 1;
        }
        peak = peak.max(Some((newest - oldest + 1) as u64));
    }
    peak
}

/// Most intervals that are open at the same time, exactly. `None` without any.
///
/// An interval that ends when another starts does not overlap it. One that takes no time is one.
pub fn peak_overlap(intervals: impl IntoIterator<Item = (Stamp, Stamp)>) -> Option<u64> {
    let (mut starts, mut ends): (Vec<Stamp>, Vec<Stamp>) = intervals.into_iter().unzip();
    starts.sort_unstable();
    ends.sort_unstable();
    let mut ended = 0;
    let mut peak = None;
    for (started, &start) in starts.iter().enumerate() {
        while ends.get(ended).is_some_and(|&end| end <= start) {
            ended += 1;
        }
        peak = peak.max(Some((started + 1).saturating_sub(ended).max(1) as u64));
    }
    peak
}

/// The second with the most tokens, found exactly and without keeping a stamp for each token.
///
/// Tokens are counted in buckets first. Only where the fullest second may begin by these counts are
/// the streams read once more, as many seconds at a time as the budget allows.
#[derive(Debug)]
pub(crate) struct FullestSecond {
    start: Stamp,
    /// Width of a bucket, in nanoseconds.
    width: u64,
    buckets: Vec<u64>,
    /// Most tokens that are held at once, unless one second has more.
    budget: u64,
}

impl FullestSecond {
    const MOST_BUCKETS: u64 = 1 << 20;
    const BUDGET: u64 = 1 << 19;

    /// For tokens received from `first` to `last`.
    pub(crate) fn new(first: Stamp, last: Stamp) -> Self {
        let span = last.0.saturating_sub(first.0);
        let mut width = SECOND_NS / 1000;
        while span / width >= Self::MOST_BUCKETS {
            width *= 10;
        }
        let buckets = vec![0; (span / width) as usize + 1];
        Self { start: first, width, buckets, budget: Self::BUDGET }
    }

    /// Counts `tokens` received at `at`.
    pub(crate) fn count(&mut self, at: Stamp, tokens: u32) {
        let bucket = self.bucket(at);
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += u64::from(tokens);
        }
    }

    fn bucket(&self, at: Stamp) -> usize {
        (at.0.saturating_sub(self.start.0) / self.width) as usize
    }

    /// Buckets that a second is long, at least one.
    fn second(&self) -> usize {
        (SECOND_NS / self.width).max(1) as usize
    }

    /// For each bucket the tokens in the second that begins with it.
    fn windows(&self) -> impl Iterator<Item = (usize, u64)> {
        let second = self.second();
        let mut window = self.buckets.iter().take(second).sum::<u64>();
        self.buckets.iter().enumerate().map(move |(from, tokens)| {
            let this = window;
            window += self.buckets.get(from + second).copied().unwrap_or(0);
            window -= tokens;
            (from, this)
        })
    }

    /// The most tokens in any window of one second, half-open; `None` without tokens. `requests` are
    /// those whose tokens were counted.
    pub(crate) fn find(&self, requests: &[Measured<'_>]) -> Option<u64> {
        let second = self.second();
        let within =
            |from: usize, buckets: usize| self.buckets.iter().skip(from).take(buckets).sum::<u64>();
        let mut best = 0;
        if self.width <= SECOND_NS {
            // What begins at a bucket's own beginning is a window.
            best = self.windows().map(|(_, window)| window).max().unwrap_or(0);
        }
        let mut batch = Batch::default();
        for (from, window) in self.windows() {
            // A window that begins inside of the bucket may reach into one more.
            let most = window + self.buckets.get(from + second).copied().unwrap_or(0);
            if most <= best || self.buckets[from] == 0 {
                continue;
            }
            let needed = from..(from + second + 1).min(self.buckets.len());
            let fresh = needed.start.max(batch.end())..needed.end;
            let tokens = within(fresh.start, fresh.len());
            if batch.tokens + tokens > self.budget && batch.tokens > 0 {
                best = best.max(self.look(&batch, requests));
                batch = Batch { tokens: within(needed.start, needed.len()), spans: vec![needed] };
            } else {
                batch.tokens += tokens;
                batch.push(fresh);
            }
        }
        best = best.max(self.look(&batch, requests));
        (best > 0).then_some(best)
    }

    /// The most tokens in a second, of those in the batch's buckets.
    fn look(&self, batch: &Batch, requests: &[Measured<'_>]) -> u64 {
        let Some(first) = batch.spans.first() else { return 0 };
        let mut needed = vec![false; batch.end() - first.start];
        for span in &batch.spans {
            needed[span.start - first.start..span.end - first.start].fill(true);
        }
        let is_needed = |at: Stamp| {
            let place = self.bucket(at).checked_sub(first.start);
            place.and_then(|place| needed.get(place)).is_some_and(|needed| *needed)
        };
        let mut tokens: Vec<(Stamp, u32)> = Vec::with_capacity(batch.tokens as usize);
        let mut chunks: Vec<Chunk> = Vec::new();
        for request in requests {
            let reply = &request.record.reply;
            let ends = reply.first_token().zip(reply.last_token());
            let touches =
                |(from, to)| self.bucket(from) < batch.end() && first.start <= self.bucket(to);
            if ends.is_some_and(touches) {
                chunks.clear();
                chunks.extend(reply.chunks.iter());
                let stamps = request.token_stamps(&chunks);
                tokens.extend(stamps.filter(|&(at, tokens)| tokens > 0 && is_needed(at)));
            }
        }
        tokens.sort_unstable_by_key(|(at, _)| *at);
        let (mut held, mut best) = (0, 0);
        let mut oldest = tokens.iter();
        for &(newest, more) in &tokens {
            held += u64::from(more);
            while let Some(&(at, fewer)) = oldest.as_slice().first()
                && newest.0 - at.0 >= SECOND_NS
            {
                held -= u64::from(fewer);
                oldest.next();
            }
            best = best.max(held);
        }
        best
    }
}

/// Buckets whose tokens are looked at together.
#[derive(Debug, Default)]
struct Batch {
    tokens: u64,
    /// In order, not overlapping.
    spans: Vec<Range<usize>>,
}

impl Batch {
    fn end(&self) -> usize {
        self.spans.last().map_or(0, |span| span.end)
    }

    fn push(&mut self, span: Range<usize>) {
        match self.spans.last_mut() {
            Some(last) if last.end == span.start => last.end = span.end,
            _ => self.spans.push(span),
        }
    }
}

/// The Python tool's peaks: counts in whole seconds since the first send.
#[derive(Debug, Default)]
pub(crate) struct Buckets {
    tokens: BTreeMap<u64, u64>,
    /// Change of the number of requests that touch a bucket, from one bucket to the next.
    steps: BTreeMap<u64, i64>,
}

impl Buckets {
    /// Counts tokens at `times` (seconds since the first send, mostly ascending).
    pub(crate) fn add_tokens(&mut self, times: impl Iterator<Item = f64>) {
        // Neighbours mostly share a bucket: one look-up per run of equals, not per token.
        let (mut bucket, mut run) = (0, 0);
        for time in times {
            if time as u64 != bucket {
                self.count_tokens(bucket, run);
                (bucket, run) = (time as u64, 0);
            }
            run += 1;
        }
        self.count_tokens(bucket, run);
    }

    fn count_tokens(&mut self, bucket: u64, tokens: u64) {
        if tokens > 0 {
            *self.tokens.entry(bucket).or_default() += tokens;
        }
    }

    /// Counts a request in every bucket it touches, both ends included.
    pub(crate) fn add_request(&mut self, start: f64, end: f64) {
        *self.steps.entry(start as u64).or_default() += 1;
        *self.steps.entry((end as u64).saturating_add(1)).or_default() -= 1;
    }

    /// Most tokens in one bucket.
    pub(crate) fn peak_tokens(&self) -> Option<u64> {
        self.tokens.values().copied().max()
    }

    /// Most requests that touch one bucket.
    pub(crate) fn peak_requests(&self) -> Option<u64> {
        let mut running = 0;
        let touched = self.steps.values().map(|step| {
            running += step;
            running
        });
        touched.max().and_then(|peak| u64::try_from(peak).ok())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use servebench_core::Record;

    proptest! {
        /// Whatever the buckets are and however few tokens are held at once.
        #[test]
        fn the_fullest_second_is_that_of_all_stamps(
            streams in proptest::collection::vec(
                (0..3_000_000_000_u64, proptest::collection::vec((0..400_000_000_u64, 0..4_u32), 0..20)),
                1..12,
            ),
            scale in prop_oneof![Just(1), Just(7), Just(900)],
            budget in prop_oneof![Just(1), Just(20), Just(FullestSecond::BUDGET)],
        ) {
            let mut records = Vec::new();
            let mut stamps = Vec::new();
            for (start, gaps) in streams {
                let mut record = Record::default();
                let mut at = start;
                for (gap, tokens) in gaps {
                    at += gap * scale;
                    record.reply.push_chunk(Stamp(at), Some(tokens), 0, "t");
                    let at = record.reply.last_token().unwrap();
                    stamps.extend(std::iter::repeat_n(at, tokens as usize));
                }
                records.push(record);
            }
            let requests: Vec<Measured<'_>> = records.iter().map(Measured::from).collect();
            let ends = |record: &Record| record.reply.first_token().zip(record.reply.last_token());
            let ends: Vec<_> = records.iter().filter_map(ends).collect();
            let first = ends.iter().map(|ends| ends.0).min().unwrap_or_default();
            let last = ends.iter().map(|ends| ends.1).max().unwrap_or_default();
            let mut fullest = FullestSecond { budget, ..FullestSecond::new(first, last) };
            for &at in &stamps {
                fullest.count(at, 1);
            }
            prop_assert_eq!(fullest.find(&requests), peak_per_second(&mut stamps));
        }
    }

    #[test]
    fn buckets_of_a_long_run_are_few_and_wide() {
        let day = 86_400 * SECOND_NS;
        assert_eq!(FullestSecond::new(Stamp(0), Stamp(day)).width, SECOND_NS / 10);
        assert_eq!(FullestSecond::new(Stamp(0), Stamp(u64::MAX)).second(), 1);
        let mut record = Record::default();
        for at in [0, 900 * day, 900 * day + 999_999_936, 900 * day + SECOND_NS] {
            record.reply.push_chunk(Stamp(at), Some(3), 0, "t");
        }
        let mut fullest = FullestSecond::new(Stamp(0), Stamp(901 * day));
        assert!(fullest.width > SECOND_NS);
        for chunk in record.reply.chunks.iter() {
            fullest.count(chunk.at, 3);
        }
        assert_eq!(fullest.find(&[Measured::from(&record)]), Some(6));
    }

    fn stamps(ms: &[u64]) -> Vec<Stamp> {
        ms.iter().map(|&ms| Stamp::from_millis(ms)).collect()
    }

    #[test]
    fn the_window_slides_and_is_half_open() {
        assert_eq!(peak_per_second(&mut []), None);
        // Two whole-second buckets would see two and two.
        assert_eq!(peak_per_second(&mut stamps(&[800, 900, 1000, 1100])), Some(4));
        assert_eq!(peak_per_second(&mut stamps(&[1000, 0])), Some(1));
        assert_eq!(peak_per_second(&mut stamps(&[999, 0])), Some(2));
        let even: Vec<u64> = (0..100).map(|i| i * 100).collect();
        assert_eq!(peak_per_second(&mut stamps(&even)), Some(10));
    }

    #[test]
    fn back_to_back_requests_do_not_overlap() {
        let ms = |start, end| (Stamp::from_millis(start), Stamp::from_millis(end));
        assert_eq!(peak_overlap([]), None);
        assert_eq!(peak_overlap([ms(0, 10), ms(10, 20), ms(20, 30)]), Some(1));
        assert_eq!(peak_overlap([ms(0, 11), ms(10, 20), ms(5, 30)]), Some(3));
        assert_eq!(peak_overlap([ms(5, 5)]), Some(1));
    }

    #[test]
    fn the_python_tools_buckets_touch_more_than_overlaps() {
        let mut buckets = Buckets::default();
        for (start, end) in [(0.0, 0.1), (0.2, 0.3), (0.9, 1.1)] {
            buckets.add_request(start, end);
            buckets.add_tokens([start, end].into_iter());
        }
        assert_eq!(buckets.peak_requests(), Some(3));
        assert_eq!(buckets.peak_tokens(), Some(5));
        assert_eq!(
            (Buckets::default().peak_requests(), Buckets::default().peak_tokens()),
            (None, None)
        );
    }
}
