//! Laws of every arrival process, and what a Poisson process must look like.

#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests may fail, and mean exact values")]

use proptest::prelude::*;
use servebench_arrival::{Burst, Constant, Poisson, PoissonGaps, Rate, Timeline};
use servebench_core::Stamp;
use servebench_core::random::NumpyLegacy;
use statrs::distribution::{ContinuousCDF, Exp};

fn rate(value: f64) -> Rate {
    Rate::per_second(value).unwrap()
}

fn poisson(per_second: f64, seed: u32, n: usize) -> Vec<Stamp> {
    Poisson::new(rate(per_second), &mut NumpyLegacy::new(seed)).take(n).collect()
}

#[test]
fn gaps_are_those_of_the_python_tool() {
    // `numpy.random.seed(42)`, then five times `numpy.random.exponential(1 / 10)`.
    let expected =
        [0.046_926_809_0, 0.301_012_143_1, 0.131_674_569_4, 0.091_294_255_4, 0.016_962_487_0];
    let mut draws = NumpyLegacy::new(42);
    let gaps = PoissonGaps::new(rate(10.0));
    for want in expected {
        let got = gaps.next_gap(&mut draws);
        assert!((got - want).abs() < 5e-11, "{got} is not {want}");
    }
}

#[test]
fn the_first_request_leaves_at_once_and_n_requests_take_n_draws() {
    let mut draws = NumpyLegacy::new(42);
    let offsets: Vec<_> = Poisson::new(rate(10.0), &mut draws).take(3).collect();
    assert_eq!(offsets, [Stamp(0), Stamp(46_926_809), Stamp(347_938_952)]);

    let mut reference = NumpyLegacy::new(42);
    for _ in 0..3 {
        reference.exponential(0.1);
    }
    assert_eq!(draws, reference);
}

#[test]
fn an_infinite_rate_is_a_burst_and_draws_nothing() {
    let mut draws = NumpyLegacy::new(1);
    let offsets: Vec<_> = Poisson::new(Rate::INFINITE, &mut draws).take(5).collect();
    assert_eq!(offsets, vec![Stamp(0); 5]);
    assert_eq!(draws, NumpyLegacy::new(1));
    assert!(Constant::new(Rate::INFINITE).take(5).eq(Burst.take(5)));
}

#[test]
fn constant_arrivals_are_exact_however_long_the_run() {
    let offsets: Vec<_> = Constant::new(rate(8.0)).take(4).collect();
    assert_eq!(offsets, [0, 125, 250, 375].map(Stamp::from_millis));
    // Three per second has no exact gap; the millionth arrival is still where it belongs.
    let last = Constant::new(rate(3.0)).nth(3_000_000).unwrap();
    assert_eq!(last, Stamp::from_millis(1_000_000_000));
}

#[test]
fn the_asked_rate_is_reached() {
    let n = 20_000;
    for (per_second, seed) in [(0.5, 1), (200.0, 2), (1e4, 3)] {
        let last = *poisson(per_second, seed, n).last().unwrap();
        let reached = (n - 1) as f64 / last.as_secs_f64();
        // The standard error is one part in √n = 141; four of them.
        assert!((reached / per_second - 1.0).abs() < 4.0 / 141.0, "{reached} for {per_second}");
    }
}

/// Variance over mean of the counts per interval: one for a Poisson process, zero for a constant one.
fn index_of_dispersion(offsets: &[Stamp], interval: Stamp) -> f64 {
    let bin = |at: &Stamp| (at.0 / interval.0) as usize;
    let bins = offsets.last().map_or(0, bin);
    let mut counts = vec![0_f64; bins];
    for at in offsets {
        if let Some(count) = counts.get_mut(bin(at)) {
            *count += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / bins as f64;
    counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (bins - 1) as f64 / mean
}

#[test]
fn counts_disperse_as_those_of_a_poisson_process() {
    // About 2 000 intervals with 10 arrivals each: the standard error is √(2/2000) = 0.032.
    let index = index_of_dispersion(&poisson(100.0, 7, 20_000), Stamp::from_millis(100));
    assert!((index - 1.0).abs() < 0.13, "index of dispersion {index}");
    let even: Vec<_> = Constant::new(rate(100.0)).take(20_000).collect();
    assert!(index_of_dispersion(&even, Stamp::from_millis(100)) < 0.01);
}

#[test]
fn gaps_pass_a_kolmogorov_smirnov_test() {
    let n = 10_000;
    let offsets = poisson(50.0, 11, n + 1);
    let mut gaps: Vec<f64> = offsets.windows(2).map(|pair| pair[1].secs_since(pair[0])).collect();
    gaps.sort_by(f64::total_cmp);
    let law = Exp::new(50.0).unwrap();
    let distance = gaps.iter().enumerate().fold(0.0_f64, |worst, (rank, &gap)| {
        let cdf = law.cdf(gap);
        let (below, above) = (rank as f64 / n as f64, (rank + 1) as f64 / n as f64);
        worst.max(cdf - below).max(above - cdf)
    });
    // Critical value at the level of one in a thousand: 1.95 / √n.
    assert!(distance < 1.95 / (n as f64).sqrt(), "distance {distance}");
}

proptest! {
    #[test]
    fn offsets_never_decrease_and_start_at_zero(
        per_second in prop_oneof![1e-6..1e9_f64, Just(f64::INFINITY), Just(1e-300)],
        seed: u32,
    ) {
        let schedules = [
            poisson(per_second, seed, 200),
            Constant::new(rate(per_second)).take(200).collect(),
        ];
        for offsets in schedules {
            prop_assert_eq!(offsets[0], Stamp(0));
            prop_assert!(offsets.is_sorted());
            prop_assert_eq!(offsets.len(), 200);
        }
    }

    #[test]
    fn a_caller_that_interleaves_nothing_gets_the_iterators_schedule(
        per_second in 0.1..1e4_f64,
        seed: u32,
    ) {
        let gaps = PoissonGaps::new(rate(per_second));
        let mut draws = NumpyLegacy::new(seed);
        let mut timeline = Timeline::default();
        let by_hand: Vec<_> = (0..50)
            .map(|_| {
                let at = timeline.now();
                timeline.advance(gaps.next_gap(&mut draws));
                at
            })
            .collect();
        prop_assert_eq!(by_hand, poisson(per_second, seed, 50));
    }

    #[test]
    fn a_timeline_never_goes_back(gaps in proptest::collection::vec(any::<f64>(), 0..20)) {
        let mut timeline = Timeline::default();
        for gap in gaps {
            let before = timeline.now();
            timeline.advance(gap);
            prop_assert!(timeline.now() >= before);
        }
    }
}
