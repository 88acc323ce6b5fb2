//! NumPy's legacy generator (`numpy.random.seed`, `numpy.random.randint`, …).

use super::random_f64;
use rand_mt::Mt;
use std::ops::RangeInclusive;

/// NumPy's legacy global generator: MT19937, seeded with one 32-bit word by Knuth's recurrence.
#[derive(Clone, Debug, PartialEq)]
pub struct NumpyLegacy {
    words: Mt,
    /// The second value of the last pair of normal ones.
    pub(super) normal: Option<f64>,
}

impl NumpyLegacy {
    /// As `numpy.random.seed(seed)` leaves it.
    pub fn new(seed: u32) -> Self {
        Self { words: Mt::new(seed), normal: None }
    }

    /// The next 32-bit word.
    pub fn next_u32(&mut self) -> u32 {
        self.words.next_u32()
    }

    /// A double in `[0, 1)` (`random_sample`).
    pub fn random_f64(&mut self) -> f64 {
        random_f64(&mut self.words)
    }

    /// `n` integers uniform on `range`, both ends included (`randint(start, end + 1, n)`).
    ///
    /// A range of one value draws nothing.
    ///
    /// # Panics
    ///
    /// When the range is empty.
    pub fn randint(&mut self, range: RangeInclusive<u32>, n: usize) -> Vec<u32> {
        assert!(!range.is_empty(), "no integer to draw from an empty range");
        let (low, span) = (*range.start(), range.end() - range.start());
        let mask = u32::MAX.checked_shr(span.leading_zeros()).unwrap_or(0);
        (0..n).map(|_| low + self.masked(span, mask)).collect()
    }

    /// The integers below `n`, shuffled (`permutation(n)`).
    pub fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n).collect();
        for last in (1..n).rev() {
            let mask = u32::MAX.checked_shr(last.leading_zeros()).unwrap_or(0);
            let other = self.masked(last, mask);
            order.swap(last as usize, other as usize);
        }
        order
    }

    /// One exponentially distributed value with mean `scale`: `−ln(1 − u) · scale`.
    pub fn exponential(&mut self, scale: f64) -> f64 {
        -(1.0 - self.random_f64()).ln() * scale
    }

    /// An index drawn with probability proportional to its weight
    /// (`choice(len, p=weights / weights.sum())`).
    ///
    /// # Panics
    ///
    /// When there is no weight.
    pub fn choice_weighted(&mut self, weights: &[f64]) -> usize {
        assert!(!weights.is_empty(), "no index to draw from no weights");
        // Two divisions, as in Python: the caller's by the sum, then NumPy's by the last
        // cumulated value. Rounding decides which index a borderline draw falls on.
        let sum: f64 = weights.iter().sum();
        let mut cumulated: Vec<f64> = weights
            .iter()
            .scan(0.0, |total, weight| {
                *total += weight / sum;
                Some(*total)
            })
            .collect();
        let last = cumulated[cumulated.len() - 1];
        for value in &mut cumulated {
            *value /= last;
        }
        let u = self.random_f64();
        cumulated.partition_point(|&value| value <= u).min(cumulated.len() - 1)
    }

    /// A value in `0..=span`: words cut to the span's bits, until one fits.
    fn masked(&mut self, span: u32, mask: u32) -> u32 {
        if span == 0 {
            return 0;
        }
        loop {
            let value = self.words.next_u32() & mask;
            if value <= span {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Expected values were drawn by NumPy itself, seed 42.

    #[test]
    fn lengths_match_numpy() {
        let mut numpy = NumpyLegacy::new(42);
        assert_eq!(numpy.randint(1..=1024, 8), [103, 436, 861, 271, 107, 72, 701, 21]);
        assert_eq!(numpy.randint(1..=1024, 8), [615, 122, 467, 215, 331, 459, 88, 373]);
        assert_eq!(numpy.randint(0..=4095, 4), [3171, 2919, 3735, 130]);
        let mut numpy = NumpyLegacy::new(42);
        assert_eq!(numpy.randint(512..=1024, 8), [614, 947, 782, 618, 583, 532, 633, 978]);
    }

    #[test]
    fn a_fixed_length_draws_nothing() {
        let mut numpy = NumpyLegacy::new(42);
        assert_eq!(numpy.randint(1024..=1024, 3), [1024; 3]);
        assert_eq!(numpy.randint(1..=1024, 3), [103, 436, 861]);
    }

    #[test]
    fn permutations_match_numpy() {
        assert_eq!(NumpyLegacy::new(42).permutation(10), [8, 1, 5, 0, 7, 2, 9, 4, 3, 6]);
        assert!(NumpyLegacy::new(42).permutation(0).is_empty());
    }

    #[test]
    fn intervals_match_numpy() {
        let mut numpy = NumpyLegacy::new(42);
        let got: Vec<String> =
            (0..5).map(|_| format!("{:.10}", numpy.exponential(1.0 / 10.0))).collect();
        let want = ["0.0469268090", "0.3010121431", "0.1316745694", "0.0912942554", "0.0169624870"];
        assert_eq!(got, want);
    }

    #[test]
    fn weighted_choice_matches_numpy() {
        let mut numpy = NumpyLegacy::new(42);
        let weights: Vec<f64> = (0..3).map(|i| 1.5_f64.powi(-i)).collect();
        let got: Vec<usize> = (0..8).map(|_| numpy.choice_weighted(&weights)).collect();
        assert_eq!(got, [0, 2, 1, 1, 0, 0, 0, 2]);
    }

    proptest! {
        #[test]
        fn integers_stay_in_their_range(seed: u32, a: u32, b: u32) {
            let (low, high) = (a.min(b), a.max(b));
            let values = NumpyLegacy::new(seed).randint(low..=high, 8);
            prop_assert!(values.iter().all(|v| (low..=high).contains(v)));
        }

        #[test]
        fn chosen_indices_exist(seed: u32, weights in prop::collection::vec(1e-6..1e6_f64, 1..9)) {
            prop_assert!(NumpyLegacy::new(seed).choice_weighted(&weights) < weights.len());
        }
    }
}
