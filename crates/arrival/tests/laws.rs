//! Laws of every arrival process, and what a Poisson process must look like.

#![allow(clippy::unwrap_used, clippy::float_cmp, reason = "tests may fail, and mean exact values")]

use proptest::prelude::*;
use servebench_arrival::{
    Burst, Burstiness, Constant, Gamma, GammaGaps, Poisson, PoissonGaps, Rate, Timeline,
};
use servebench_core::Stamp;
use servebench_core::random::NumpyLegacy;
use std::panic::AssertUnwindSafe;

mod law;

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

#[test]
fn arrivals_have_the_rate_the_dispersion_and_the_gaps_of_their_process() {
    for (law, offsets) in law::samples(50.0, 20_000, 11) {
        law.check(&offsets);
    }
}

#[test]
fn a_sample_of_another_process_is_told_apart() {
    let samples = law::samples(50.0, 20_000, 11);
    for (law, _) in &samples {
        for (other, offsets) in samples.iter().filter(|(other, _)| other.name != law.name) {
            let checked = std::panic::catch_unwind(AssertUnwindSafe(|| law.check(offsets)));
            assert!(checked.is_err(), "{} passes for {}", other.name, law.name);
        }
    }
}

proptest! {
    #[test]
    fn offsets_never_decrease_and_start_at_zero(
        per_second in prop_oneof![1e-6..1e9_f64, Just(f64::INFINITY), Just(1e-300)],
        shape in prop_oneof![1e-3..1e3_f64, Just(f64::INFINITY), Just(1e-300)],
        seed: u32,
    ) {
        let burstiness = Burstiness::new(shape).unwrap();
        let mut draws = NumpyLegacy::new(seed);
        let schedules = [
            poisson(per_second, seed, 200),
            Gamma::new(rate(per_second), burstiness, &mut draws).take(200).collect(),
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
        let gamma = GammaGaps::new(rate(per_second), Burstiness::POISSON);
        let (mut draws, mut again) = (NumpyLegacy::new(seed), NumpyLegacy::new(seed));
        let mut timeline = Timeline::default();
        let by_hand: Vec<_> = (0..50)
            .map(|_| {
                let at = timeline.now();
                let gap = gaps.next_gap(&mut draws);
                assert_eq!(gap, gamma.next_gap(&mut again));
                timeline.advance(gap);
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
