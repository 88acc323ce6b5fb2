//! Gaps between tokens, neighbours of one class joined.

use super::micros;

/// Neighbouring gaps of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// 0 below the first threshold, 1 below the second, 2 from there on.
    pub(super) class: u8,
    pub(super) gaps: u64,
    /// Microseconds.
    pub(super) length: u64,
}

/// The runs of these gaps (seconds). Their ends are rounded, not their lengths, so that errors do not
/// add up.
pub(super) fn runs(gaps_s: &[f64], thresholds_ms: [f64; 2]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut end_s, mut end) = (0.0, 0);
    for gap_s in gaps_s.iter().copied() {
        let gap_s = if gap_s.is_finite() { gap_s.max(0.0) } else { 0.0 };
        end_s += gap_s;
        let length = micros(end_s).saturating_sub(end);
        end += length;
        let class = thresholds_ms.iter().filter(|limit| gap_s * 1000.0 >= **limit).count() as u8;
        match runs.last_mut() {
            Some(last) if last.class == class => {
                last.gaps += 1;
                last.length += length;
            }
            _ => runs.push(Run { class, gaps: 1, length }),
        }
    }
    runs
}

/// Fewest runs to shorten to: one of each class.
pub(super) const FEWEST: usize = 3;

/// Shortens to no more than `most` runs (at least [`FEWEST`]); says whether that was needed.
///
/// Within stretches of equal time, gaps are sorted by class, in turns up and down, so that neighbours
/// join. Each class keeps its gaps and its time; only the order within a stretch is lost.
pub(super) fn shorten(runs: &mut Vec<Run>, most: usize) -> bool {
    let most = most.max(FEWEST);
    if runs.len() <= most {
        return false;
    }
    let total: u64 = runs.iter().map(|run| run.length).sum();
    // Each stretch may be of three runs, and the last one may be short.
    let stretches = (most / FEWEST).saturating_sub(1) as u64;
    let stretch = if stretches == 0 { u64::MAX } else { total.div_ceil(stretches) };
    let mut shorter = Vec::with_capacity(most);
    let mut open = Stretch::default();
    for run in runs.drain(..) {
        open.add(run);
        if open.length() >= stretch {
            open.close(&mut shorter);
        }
    }
    open.close(&mut shorter);
    *runs = shorter;
    true
}

/// What is sorted by class.
#[derive(Debug, Default)]
struct Stretch {
    gaps: [u64; 3],
    lengths: [u64; 3],
    /// From the worst class to the best.
    downwards: bool,
}

impl Stretch {
    fn add(&mut self, run: Run) {
        self.gaps[usize::from(run.class)] += run.gaps;
        self.lengths[usize::from(run.class)] += run.length;
    }

    fn length(&self) -> u64 {
        self.lengths.iter().sum()
    }

    fn close(&mut self, runs: &mut Vec<Run>) {
        for place in 0..3 {
            let class = if self.downwards { 2 - place } else { place };
            let (gaps, length) = (self.gaps[class], self.lengths[class]);
            let class = class as u8;
            match runs.last_mut() {
                _ if gaps == 0 => {}
                Some(last) if last.class == class => {
                    last.gaps += gaps;
                    last.length += length;
                }
                _ => runs.push(Run { class, gaps, length }),
            }
        }
        *self = Self { downwards: !self.downwards, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn thresholds_belong_to_the_class_above() {
        let found = runs(&[0.024, 0.01, 0.025, 0.05, 0.07], [25.0, 50.0]);
        let wanted = [(0, 2, 34_000), (1, 1, 25_000), (2, 2, 120_000)];
        assert_eq!(found, wanted.map(|(class, gaps, length)| Run { class, gaps, length }));
        assert_eq!(runs(&[], [25.0, 50.0]), []);
    }

    #[test]
    fn stretches_are_sorted_up_and_down() {
        let run = |class, length| Run { class, gaps: 1, length };
        // Three stretches, of 12 microseconds each.
        let mut long: Vec<Run> =
            [1, 0, 2, 0].repeat(9).into_iter().map(|class| run(class, 1)).collect();
        assert!(shorten(&mut long, 12));
        let shape: Vec<_> = long.iter().map(|run| (run.class, run.length)).collect();
        assert_eq!(shape, [(0, 6), (1, 3), (2, 6), (1, 3), (0, 12), (1, 3), (2, 3)]);
    }

    #[test]
    fn rounding_does_not_add_up() {
        let found = runs(&[0.000_000_4; 1000], [25.0, 50.0]);
        assert_eq!(found, [Run { class: 0, gaps: 1000, length: 400 }]);
    }

    proptest! {
        /// No class loses a gap or a microsecond.
        #[test]
        fn shortening_keeps_the_sums(
            gaps in proptest::collection::vec(prop_oneof![0.0..0.1f64, any::<f64>()], 0..300),
            most in 0usize..60,
        ) {
            let all = runs(&gaps, [25.0, 50.0]);
            let mut short = all.clone();
            prop_assert_eq!(shorten(&mut short, most), all.len() > most.max(FEWEST));
            prop_assert!(short.len() <= most.max(FEWEST), "{} runs", short.len());
            let sums = |runs: &[Run]| {
                let mut sums = [(0, 0); 3];
                for run in runs {
                    let sum = &mut sums[usize::from(run.class)];
                    *sum = (sum.0 + run.gaps, sum.1 + run.length);
                }
                sums
            };
            prop_assert_eq!(sums(&short), sums(&all));
            prop_assert_eq!(sums(&all).iter().map(|sum| sum.0).sum::<u64>(), gaps.len() as u64);
        }
    }
}
