//! NumPy's newer generator (`numpy.random.default_rng`): PCG64 behind a `SeedSequence`.

use std::num::Wrapping;
use std::ops::RangeInclusive;

/// The multiplier of the 128-bit congruential generator, from the PCG paper (O'Neill 2014).
const MULTIPLIER: Wrapping<u128> = Wrapping(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645);

/// NumPy's `default_rng(seed)`: PCG64 (XSL-RR 128/64).
#[derive(Clone, Debug, PartialEq)]
pub struct NumpyGenerator {
    state: Wrapping<u128>,
    increment: Wrapping<u128>,
    /// The high half of the last word of which 32 bits were asked for.
    half: Option<u32>,
}

impl NumpyGenerator {
    /// As `numpy.random.default_rng(seed)` makes it.
    pub fn new(seed: u32) -> Self {
        let words = seed_words(seed);
        let [state, stream] = [0, 4].map(|at| {
            let pair = |at: usize| u128::from(words[at]) | u128::from(words[at + 1]) << 32;
            Wrapping(pair(at) << 64 | pair(at + 2))
        });
        let increment = stream << 1 | Wrapping(1);
        let mut generator = Self { state: increment + state, increment, half: None };
        generator.step();
        generator
    }

    /// The next 64-bit word.
    pub fn next_u64(&mut self) -> u64 {
        self.step();
        let state = self.state.0;
        let folded = (state >> 64) as u64 ^ state as u64;
        folded.rotate_right((state >> 122) as u32)
    }

    /// The next 32-bit word: the low half of a 64-bit one, then its high half. Draws of 64 bits in
    /// between leave a kept half alone.
    pub fn next_u32(&mut self) -> u32 {
        if let Some(high) = self.half.take() {
            return high;
        }
        let word = self.next_u64();
        self.half = Some((word >> 32) as u32);
        word as u32
    }

    /// `n` integers uniform on `range`, both ends included (`integers(start, end + 1, size=n)`), by
    /// Lemire's multiplication.
    ///
    /// A range of one value draws nothing.
    ///
    /// # Panics
    ///
    /// When the range is empty.
    pub fn integers(&mut self, range: RangeInclusive<u32>, n: usize) -> Vec<u32> {
        assert!(!range.is_empty(), "no integer to draw from an empty range");
        let (low, span) = (*range.start(), range.end() - range.start());
        (0..n).map(|_| low + self.up_to(span)).collect()
    }

    /// A value in `0..=span`.
    fn up_to(&mut self, span: u32) -> u32 {
        if span == 0 {
            return 0;
        }
        let Some(width) = span.checked_add(1) else { return self.next_u32() };
        let mut product = u64::from(self.next_u32()) * u64::from(width);
        if (product as u32) < width {
            let threshold = (u32::MAX - span) % width;
            while (product as u32) < threshold {
                product = u64::from(self.next_u32()) * u64::from(width);
            }
        }
        (product >> 32) as u32
    }

    /// The integers below `n`, shuffled (`permutation(n)`), by words cut to the bits of each place.
    pub fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n).collect();
        for last in (1..n).rev() {
            let mask = u32::MAX.checked_shr(last.leading_zeros()).unwrap_or(0);
            let other = loop {
                let place = self.next_u32() & mask;
                if place <= last {
                    break place;
                }
            };
            order.swap(last as usize, other as usize);
        }
        order
    }

    /// A double in `[0, 1)` with 53 random bits (`random()`).
    pub fn random_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// `n` indices drawn with these probabilities (`choice(len, size=n, p=probabilities)`).
    ///
    /// # Panics
    ///
    /// When there is no probability.
    pub fn choices_weighted(&mut self, probabilities: &[f64], n: usize) -> Vec<usize> {
        assert!(!probabilities.is_empty(), "no index to draw from no probabilities");
        let mut cumulated: Vec<f64> = probabilities
            .iter()
            .scan(0.0, |total, share| {
                *total += share;
                Some(*total)
            })
            .collect();
        let last = cumulated[cumulated.len() - 1];
        for value in &mut cumulated {
            *value /= last;
        }
        let most = cumulated.len() - 1;
        let mut draw = |_| {
            let u = self.random_f64();
            cumulated.partition_point(|&value| value <= u).min(most)
        };
        (0..n).map(&mut draw).collect()
    }

    fn step(&mut self) {
        self.state = self.state * MULTIPLIER + self.increment;
    }
}

/// The eight words that NumPy's `SeedSequence(seed)` gives a PCG64: one word of entropy, mixed
/// into a pool of four by the hash of `randutils` (O'Neill 2015), whose constants these are.
fn seed_words(seed: u32) -> [u32; 8] {
    let mut hash = Hash { constant: Wrapping(0x43b0_d7e5), multiplier: Wrapping(0x931e_8875) };
    let mut pool = [seed, 0, 0, 0].map(|word| hash.mix_in(Wrapping(word)));
    for source in 0..pool.len() {
        for target in (0..pool.len()).filter(|&target| target != source) {
            let other = hash.mix_in(pool[source]);
            let mixed = pool[target] * Wrapping(0xca01_f9dd) - other * Wrapping(0x4973_f715);
            pool[target] = mixed ^ mixed >> 16;
        }
    }
    let mut hash = Hash { constant: Wrapping(0x8b51_f9dd), multiplier: Wrapping(0x58f3_8ded) };
    std::array::from_fn(|at| hash.mix_in(pool[at % pool.len()]).0)
}

struct Hash {
    constant: Wrapping<u32>,
    multiplier: Wrapping<u32>,
}

impl Hash {
    fn mix_in(&mut self, word: Wrapping<u32>) -> Wrapping<u32> {
        let word = word ^ self.constant;
        self.constant *= self.multiplier;
        let word = word * self.constant;
        word ^ word >> 16
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Expected values were drawn by NumPy itself.

    #[test]
    fn permutations_match_numpy() {
        // numpy.random.default_rng(42).permutation(8)
        assert_eq!(NumpyGenerator::new(42).permutation(8), [3, 4, 2, 7, 6, 1, 5, 0]);
        assert!(NumpyGenerator::new(42).permutation(0).is_empty());
    }

    #[test]
    fn doubles_match_numpy() {
        for (seed, want) in [
            (0, [0.636_961_687_321_454_3, 0.269_786_713_763_870_3, 0.040_973_523_936_194_69]),
            (42, [0.773_956_048_555_963_3, 0.438_878_439_752_052_3, 0.858_597_919_911_382_5]),
            (
                u32::MAX,
                [0.251_943_568_044_996_5, 0.219_065_796_286_856_63, 0.287_284_720_435_170_17],
            ),
        ] {
            let mut generator = NumpyGenerator::new(seed);
            for want in want {
                assert_eq!(generator.random_f64().to_bits(), f64::to_bits(want), "seed {seed}");
            }
        }
    }

    #[test]
    fn integers_match_numpy() {
        type Draws = ([u32; 6], [u32; 8], f64, [u32; 2], [u32; 4], [u32; 3]);
        let cases: [(u32, Draws); 2] = [
            (
                0,
                (
                    [3484, 2608, 2093, 1105, 1260, 167],
                    [10, 10, 10, 12, 11, 12, 11, 11],
                    0.729_496_560_983_998_4,
                    [2_715_582_399, 2_334_851_559],
                    [1_679_752_336, 2_805_217_270, 832_041_137, 2_012_629_631],
                    [0, 2, 6],
                ),
            ),
            (
                42,
                (
                    [365, 3170, 2681, 1797, 1773, 3516],
                    [10, 12, 10, 10, 11, 12, 12, 12],
                    0.786_064_305_276_953_8,
                    [2_204_291_347, 550_243_862],
                    [1_112_394_072, 547_648_909, 2_780_294_966, 1_931_595_359],
                    [2, 5, 3],
                ),
            ),
        ];
        for (seed, want) in cases {
            let mut numpy = NumpyGenerator::new(seed);
            assert_eq!(numpy.integers(0..=4095, 6), want.0);
            assert_eq!(numpy.integers(10..=12, 8), want.1);
            assert_eq!(numpy.random_f64().to_bits(), want.2.to_bits());
            assert_eq!(numpy.integers(0..=u32::MAX, 2), want.3);
            assert_eq!(numpy.integers(0..=2_999_999_999, 4), want.4);
            assert_eq!(numpy.integers(5..=5, 2), [5, 5], "which draws nothing");
            assert_eq!(numpy.integers(0..=6, 3), want.5);
        }
    }

    #[test]
    fn weighted_choices_match_numpy() {
        let weights = [1.0, 2.0, 3.0, 4.0].map(|rank: f64| rank.powf(-1.2));
        let sum: f64 = weights.iter().sum();
        let groups = NumpyGenerator::new(42).choices_weighted(&weights.map(|w| w / sum), 16);
        assert_eq!(groups, [2, 0, 2, 1, 0, 3, 2, 2, 0, 0, 0, 3, 1, 2, 0, 0]);
    }

    proptest! {
        #[test]
        fn integers_stay_in_their_range(seed: u32, a: u32, b: u32) {
            let (low, high) = (a.min(b), a.max(b));
            let values = NumpyGenerator::new(seed).integers(low..=high, 8);
            prop_assert!(values.iter().all(|v| (low..=high).contains(v)));
        }

        #[test]
        fn chosen_indices_exist(seed: u32, shares in prop::collection::vec(1e-6..1e6_f64, 1..9)) {
            let chosen = NumpyGenerator::new(seed).choices_weighted(&shares, 8);
            prop_assert!(chosen.iter().all(|&index| index < shares.len()));
        }
    }
}
