//! The busiest moments of a run.

use servebench_core::Stamp;
use std::collections::BTreeMap;

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
pub fn peak_overlap(intervals: &[(Stamp, Stamp)]) -> Option<u64> {
    let mut starts: Vec<Stamp> = intervals.iter().map(|&(start, _)| start).collect();
    let mut ends: Vec<Stamp> = intervals.iter().map(|&(_, end)| end).collect();
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
mod tests {
    use super::*;

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
        assert_eq!(peak_overlap(&[]), None);
        assert_eq!(peak_overlap(&[ms(0, 10), ms(10, 20), ms(20, 30)]), Some(1));
        assert_eq!(peak_overlap(&[ms(0, 11), ms(10, 20), ms(5, 30)]), Some(3));
        assert_eq!(peak_overlap(&[ms(5, 5)]), Some(1));
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
