//! The generator behind `random-words`: SplitMix64, one stream for each row.

/// The step of the counter: 2⁶⁴ over the golden ratio, made odd.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64 (Steele, Lea and Flood 2014): a counter behind a mixing function.
///
/// Row `r` of a key starts where the key's own stream has its output `r`, so that any thread can
/// make any row. Two rows of some thousand words overlap with a probability below 10⁻⁹.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    counter: u64,
}

impl Stream {
    /// The stream of one row.
    pub(super) fn of_row(key: u64, row: u64) -> Self {
        Self { counter: mix(key.wrapping_add(STEP.wrapping_mul(row.wrapping_add(1)))) }
    }

    fn next_u64(&mut self) -> u64 {
        self.counter = self.counter.wrapping_add(STEP);
        mix(self.counter)
    }

    /// A number below `n`, 0 if there is none. Its bias is `n` in 2⁶⁴.
    pub(super) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next_u64()) * n as u128) >> 64) as usize
    }
}

fn mix(counter: u64) -> u64 {
    let mixed = (counter ^ counter >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_splitmix64() {
        // The first outputs of the reference implementation for the seed 1234567.
        let want = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
        ];
        let mut stream = Stream { counter: 1_234_567 };
        assert_eq!([(); 4].map(|()| stream.next_u64()), want);
        for (row, want) in want.into_iter().enumerate() {
            assert_eq!(Stream::of_row(1_234_567, row as u64).counter, want);
        }
    }

    #[test]
    fn every_number_below_comes_about_as_often() {
        let mut counts = [0_u32; 7];
        let mut stream = Stream::of_row(42, 0);
        for _ in 0..70_000 {
            counts[stream.below(7)] += 1;
        }
        // Five standard deviations of a binomial count, 92.6 each.
        assert!(counts.iter().all(|&n| n.abs_diff(10_000) < 463), "{counts:?}");
    }
}
