//! Many samples in little memory: equal ones are counted, not kept.

use crate::stats::Ascending;
use servebench_core::Chunks;
use std::collections::HashMap;

/// Samples of a family whose members are times between stamps, in seconds.
///
/// Stamps have a resolution, so that the gaps of a run are few different numbers, however many
/// there are: the memory goes with the former. Counts add up, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counted {
    /// Counts by the bits of the sample.
    few: HashMap<u64, u64>,
    /// Where samples are many: counts of gaps of one token, by their number of stamp units.
    pages: Vec<Option<Box<Page>>>,
}

/// From so many different samples on, pages pay.
const FEW: usize = 1 << 12;

const PAGE: usize = 64;
type Page = [u32; PAGE];

/// Gaps of up to about a second have pages; there is no end to longer ones.
const PAGES: usize = 1 << 18;

impl Counted {
    /// Counts `nanos / tokens` in, `tokens` times.
    pub(crate) fn add(&mut self, nanos: u64, tokens: u32) {
        let count =
            if tokens == 1 && self.few.len() >= FEW { self.page_count(nanos) } else { None };
        if let Some(count) = count {
            *count += 1;
        } else {
            let sample = seconds(nanos) / f64::from(tokens);
            *self.few.entry(sample.to_bits()).or_default() += u64::from(tokens);
        }
    }

    /// The count of a gap of one token, if it has a place and is not full.
    fn page_count(&mut self, nanos: u64) -> Option<&mut u32> {
        let (ticks, rest) = (nanos / Chunks::RESOLUTION, nanos % Chunks::RESOLUTION);
        let page = ticks as usize / PAGE;
        if rest > 0 || page >= PAGES {
            return None;
        }
        if page >= self.pages.len() {
            self.pages.resize(page + 1, None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([0; PAGE]));
        Some(&mut page[ticks as usize % PAGE]).filter(|count| **count < u32::MAX)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.few.is_empty()
    }

    /// These samples in order, without those of `less` and with those of `more`.
    pub(crate) fn changed(&self, less: &Self, more: &Self) -> Runs {
        let signed = |counted: &Self, sign: i64| {
            counted
                .entries()
                .map(move |(value, count)| (value, sign * count.cast_signed()))
                .collect()
        };
        let mut all: Vec<(f64, i64)> = signed(self, 1);
        let changes: [Vec<_>; 2] = [signed(less, -1), signed(more, 1)];
        all.extend(changes.iter().flatten());
        // Mostly in order already, which a stable sort makes use of.
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut runs = Runs::default();
        for equal in all.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
            let count: i64 = equal.iter().map(|(_, count)| count).sum();
            runs.push(equal[0].0, u64::try_from(count).unwrap_or(0));
        }
        runs
    }

    /// Each sample there is, and how often.
    fn entries(&self) -> impl Iterator<Item = (f64, u64)> {
        let pages = (0..).step_by(PAGE).zip(&self.pages);
        let counts = pages.flat_map(|(first, page)| {
            let counts = page.iter().flat_map(|page| page.iter().copied());
            (first..).zip(counts).filter(|(_, count)| *count > 0)
        });
        counts
            .map(|(ticks, count)| (seconds(ticks * Chunks::RESOLUTION), u64::from(count)))
            .chain(self.few.iter().map(|(&bits, &count)| (f64::from_bits(bits), count)))
    }
}

/// As [`Stamp::secs_since`](servebench_core::Stamp::secs_since) has it.
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

/// Samples in ascending order, equal ones kept once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// Each value, and how many samples there are up to and with it.
    runs: Vec<(f64, u64)>,
}

impl Runs {
    fn push(&mut self, value: f64, count: u64) {
        if count > 0 {
            self.runs.push((value, self.end() + count));
        }
    }

    fn end(&self) -> u64 {
        self.runs.last().map_or(0, |(_, end)| *end)
    }
}

impl Ascending for Runs {
    fn count(&self) -> usize {
        self.end() as usize
    }

    fn at(&self, index: usize) -> Option<f64> {
        let run = self.runs.partition_point(|(_, end)| *end <= index as u64);
        self.runs.get(run).map(|(value, _)| *value)
    }

    fn samples(&self) -> impl Iterator<Item = f64> {
        let mut before = 0;
        self.runs.iter().flat_map(move |&(value, end)| {
            let count = end - before;
            before = end;
            std::iter::repeat_n(value, count as usize)
        })
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "tests mean exact values")]
mod tests {
    use super::*;
    use crate::Distribution;

    const MS: u64 = 1_000_000;

    #[test]
    fn counted_samples_have_the_numbers_of_kept_ones() {
        let (mut counted, mut kept) = (Counted::default(), Vec::new());
        let gaps = [(10 * MS, 1), (7 * MS, 3), (0, 1), (3_000 * MS, 1), (12_345, 1), (64, 2)];
        for (i, &(nanos, tokens)) in gaps.iter().cycle().take(60_000).enumerate() {
            let nanos = nanos + i as u64 % 1_801 * 64;
            counted.add(nanos, tokens);
            let sample = nanos as f64 / 1e9 / f64::from(tokens);
            kept.extend(std::iter::repeat_n(sample, tokens as usize));
        }
        assert!(counted.pages.iter().flatten().count() > 2, "the test is about both ways");
        let none = Counted::default();
        let runs = counted.changed(&none, &none);
        assert_eq!(Distribution::of_ascending(&runs), Distribution::of(&mut kept));
        assert_eq!(runs.at(kept.len()), None);
        assert_eq!(runs.samples().collect::<Vec<_>>(), kept);
    }

    #[test]
    fn samples_are_taken_out_and_put_in() {
        let counted = |gaps: &[u64]| {
            let mut counted = Counted::default();
            for &ms in gaps {
                counted.add(ms * MS, 1);
            }
            counted
        };
        let all = counted(&[10, 20, 20, 2_000]);
        let runs = all.changed(&counted(&[20, 2_000]), &counted(&[5]));
        assert_eq!(runs.samples().collect::<Vec<_>>(), [0.005, 0.01, 0.02]);
        assert_eq!(all.changed(&all, &counted(&[])).count(), 0);
    }
}
