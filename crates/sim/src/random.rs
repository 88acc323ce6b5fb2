//! A small stateless generator: the same place gives the same draw, whatever came before.

/// Mixes three numbers into one that looks random (the finalizer of SplitMix64, chained).
pub(crate) fn mix(seed: u64, stream: u64, place: u64) -> u64 {
    finalize(finalize(finalize(seed) ^ stream) ^ place)
}

/// A draw in `[0, 1)` with 53 random bits.
pub(crate) fn unit(seed: u64, stream: u64, place: u64) -> f64 {
    (mix(seed, stream, place) >> 11) as f64 / (1u64 << 53) as f64
}

fn finalize(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_spread_evenly_and_depend_on_every_argument() {
        let mean = (0..10_000).map(|place| unit(1, 2, place)).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.01, "mean {mean}");
        assert_ne!(mix(1, 2, 3), mix(2, 2, 3));
        assert_ne!(mix(1, 2, 3), mix(1, 3, 3));
        assert_ne!(mix(1, 2, 3), mix(1, 2, 4));
        // First output of SplitMix64 seeded with 0, as published.
        assert_eq!(finalize(0), 0xe220_a839_7b1d_cdaf);
    }
}
