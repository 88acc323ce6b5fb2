//! Python's `random` module.

use super::random_f64;
use rand_mt::Mt;
use std::collections::HashSet;

/// Python's global generator: MT19937, seeded with a one-word key.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonRandom {
    words: Mt,
}

impl PythonRandom {
    /// As `random.seed(seed)` leaves it.
    pub fn new(seed: u32) -> Self {
        Self { words: Mt::new_with_key([seed]) }
    }

    /// A double in `[0, 1)` (`random.random()`).
    pub fn random(&mut self) -> f64 {
        random_f64(&mut self.words)
    }

    /// An integer uniform on `0..n`: the top bits of a word, until one fits (`randrange(n)`).
    ///
    /// # Panics
    ///
    /// When `n` is 0.
    pub fn below(&mut self, n: u32) -> u32 {
        assert!(n > 0, "no integer is below zero");
        let unused = n.leading_zeros();
        loop {
            let value = self.words.next_u32() >> unused;
            if value < n {
                return value;
            }
        }
    }

    /// `count` bytes (`random.randbytes(count)`).
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            let left = (count - bytes.len()).min(4);
            // Of the last word the top bits are taken.
            let word = self.words.next_u32() >> (32 - 8 * left);
            bytes.extend(word.to_le_bytes().into_iter().take(left));
        }
        bytes
    }

    /// `k` independent indices below `n` (`choices(range(n), k=k)`): `⌊u·n⌋`.
    pub fn choices_index(&mut self, n: u32, k: usize) -> Vec<u32> {
        (0..k).map(|_| (self.random() * f64::from(n)).floor() as u32).collect()
    }

    /// One index below `n` (`choice(range(n))`).
    ///
    /// # Panics
    ///
    /// When `n` is 0.
    pub fn choice_index(&mut self, n: u32) -> u32 {
        self.below(n)
    }

    /// Shuffles in place (`shuffle`).
    ///
    /// # Panics
    ///
    /// When there are more than 2³² items: Python would draw longer words then.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        assert!(u32::try_from(items.len()).is_ok(), "more items than one word can number");
        for last in (1..items.len()).rev() {
            let other = self.below(last as u32 + 1);
            items.swap(last, other as usize);
        }
    }

    /// `k` different indices below `n` in the order drawn (`sample(range(n), k)`).
    ///
    /// # Panics
    ///
    /// When `k` is greater than `n`.
    pub fn sample_indices(&mut self, n: u32, k: u32) -> Vec<u32> {
        assert!(k <= n, "cannot draw {k} different indices below {n}");
        if u64::from(n) <= pool_threshold(k) {
            let mut pool: Vec<u32> = (0..n).collect();
            return (0..k)
                .map(|drawn| {
                    let live = n - drawn;
                    let at = self.below(live) as usize;
                    // The last live item fills the hole, so that the live ones stay in front.
                    let index = pool[at];
                    pool[at] = pool[live as usize - 1];
                    index
                })
                .collect();
        }
        let mut seen = HashSet::with_capacity(k as usize);
        (0..k)
            .map(|_| {
                loop {
                    let index = self.below(n);
                    if seen.insert(index) {
                        return index;
                    }
                }
            })
            .collect()
    }
}

/// The population size up to which Python copies the population rather than keep a set of what
/// was drawn: 21, and for more than five draws also 4 to the power of ⌈log₄ 3k⌉.
fn pool_threshold(k: u32) -> u64 {
    if k <= 5 {
        return 21;
    }
    let wanted = 3 * u64::from(k);
    let mut power = 1_u64;
    while power < wanted {
        power *= 4;
    }
    21 + power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Expected values were drawn by Python itself, seed 42.

    #[test]
    fn shuffle_matches_python() {
        let mut items: Vec<u32> = (0..10).collect();
        PythonRandom::new(42).shuffle(&mut items);
        assert_eq!(items, [7, 3, 2, 8, 5, 6, 9, 4, 0, 1]);
    }

    #[test]
    fn bytes_match_python() {
        // random.seed(7); random.randbytes(5), random.randbytes(1), random.getrandbits(32)
        let mut python = PythonRandom::new(7);
        assert_eq!(python.bytes(5), [0x38, 0xb4, 0xe6, 0x52, 0xf2]);
        assert_eq!((python.bytes(1), python.words.next_u32()), (vec![0x26], 1_695_753_998));
    }

    #[test]
    fn choices_match_python() {
        assert_eq!(PythonRandom::new(42).choices_index(100, 8), [63, 2, 27, 22, 73, 67, 89, 8]);
    }

    #[test]
    fn sample_matches_python() {
        assert_eq!(PythonRandom::new(42).sample_indices(1000, 5), [654, 114, 25, 759, 281]);
    }

    #[test]
    fn sample_of_a_pool_or_a_set_matches_python() {
        let sample = |n, k| {
            let mut python = PythonRandom::new(42);
            (python.sample_indices(n, k), python.random().to_string())
        };
        assert_eq!(sample(10, 4), (vec![1, 0, 4, 9], "0.22321073814882275".to_owned()));
        assert_eq!(sample(21, 5), (vec![20, 3, 0, 8, 7], "0.22321073814882275".to_owned()));
        assert_eq!(
            sample(85, 8),
            (vec![81, 14, 3, 35, 31, 28, 17, 13], "0.6766994874229113".to_owned())
        );
        let all = vec![1, 0, 4, 9, 6, 5, 8, 2, 3, 7];
        assert_eq!(sample(10, 10), (all, "0.03178267948178359".to_owned()));
    }

    #[test]
    fn choice_and_extreme_seeds_match_python() {
        let mut python = PythonRandom::new(42);
        let choices: Vec<u32> = (0..10).map(|_| python.choice_index(7)).collect();
        assert_eq!(choices, [5, 0, 0, 5, 2, 1, 1, 1, 5, 0]);
        assert_eq!(
            [0; 3].map(|_| python.below(u32::MAX)),
            [2_906_402_157, 3_181_143_731, 3_831_882_064]
        );
        assert_eq!(python.random().to_string(), "0.5453665337483498");
        assert_eq!(PythonRandom::new(u32::MAX).random().to_string(), "0.6353574441341173");
        assert_eq!(PythonRandom::new(0).random().to_string(), "0.8444218515250481");
    }

    #[test]
    fn nothing_is_drawn_for_nothing() {
        let mut python = PythonRandom::new(7);
        python.shuffle(&mut [1]);
        python.shuffle::<u32>(&mut []);
        assert!(python.sample_indices(0, 0).is_empty());
        assert_eq!(python, PythonRandom::new(7));
    }

    proptest! {
        #[test]
        fn shuffle_keeps_every_item(seed: u32, len in 0..200_usize) {
            let mut items: Vec<usize> = (0..len).collect();
            PythonRandom::new(seed).shuffle(&mut items);
            items.sort_unstable();
            prop_assert!(items.into_iter().eq(0..len));
        }

        #[test]
        fn sampled_indices_are_different(seed: u32, n in 0..300_u32, part in 0.0..=1.0_f64) {
            let k = (f64::from(n) * part) as u32;
            let mut got = PythonRandom::new(seed).sample_indices(n, k);
            prop_assert_eq!(got.len(), k as usize);
            got.sort_unstable();
            got.dedup();
            prop_assert_eq!(got.len(), k as usize);
            prop_assert!(got.iter().all(|&index| index < n));
        }
    }
}
