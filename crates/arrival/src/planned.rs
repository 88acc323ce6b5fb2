//! Whole schedules of a known number of requests, as `vllm bench serve` makes them.

use crate::{ArrivalError, Burstiness, GammaGaps, Rate, Timeline};
use servebench_core::Stamp;
use servebench_core::random::NumpyLegacy;

/// Offsets of `count` requests with gamma-distributed gaps of mean `1 / rate`, stretched so that the last
/// is due at exactly `count / rate`. An infinite rate makes all due at once.
///
/// The first request waits for a gap, too.
pub fn stretched(
    count: usize,
    rate: Rate,
    burstiness: Burstiness,
    draws: &mut NumpyLegacy,
) -> Vec<Stamp> {
    let gaps = GammaGaps::new(rate, burstiness);
    let mut offsets = Vec::with_capacity(count);
    let mut sum = 0.0;
    for _ in 0..count {
        sum += gaps.next_gap(draws);
        offsets.push(sum);
    }
    // In this order of operations, as the Python tool has it.
    let factor = if sum == 0.0 { 1.0 } else { count as f64 / rate.get() / sum };
    offsets.into_iter().map(|offset| Stamp::from_secs_f64(offset * factor)).collect()
}

/// How a rate rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RampShape {
    /// By the same amount with each request.
    Linear,
    /// By the same factor with each request; from 0, as `(1 + end)^progress − 1`.
    Exponential,
}

/// A rate that rises from request to request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    shape: RampShape,
    start: f64,
    end: f64,
}

impl Ramp {
    /// A rise from `start` requests per second, which may be 0, to `end`.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::NotPositive`] with the bound that is negative or not finite, or with an end of 0;
    /// [`ArrivalError::Falling`] when the end is below the start.
    pub fn new(shape: RampShape, start: f64, end: f64) -> Result<Self, ArrivalError> {
        if !(start.is_finite() && start >= 0.0) {
            return Err(ArrivalError::NotPositive(start));
        }
        // Rates below this would have gaps longer than any run.
        if !(end.is_finite() && end > 1e-9) {
            return Err(ArrivalError::NotPositive(end));
        }
        if end < start {
            return Err(ArrivalError::Falling { start, end });
        }
        Ok(Self { shape, start, end })
    }

    /// The rate at the start.
    pub const fn start(&self) -> f64 {
        self.start
    }

    /// The rate at request `index` of `count`.
    ///
    /// Where that is 0, which would never end, it is the rate half a request later.
    pub fn rate_at(&self, index: usize, count: usize) -> Rate {
        let last = count.saturating_sub(1).max(1) as f64;
        let at = |place: f64| {
            let progress = place / last;
            match self.shape {
                RampShape::Linear => self.start + (self.end - self.start) * progress,
                RampShape::Exponential if self.start == 0.0 => {
                    (1.0 + self.end).powf(progress) - 1.0
                }
                RampShape::Exponential => self.start * (self.end / self.start).powf(progress),
            }
        };
        let exact = Rate::per_second(at(index as f64));
        exact.or_else(|_| Rate::per_second(at(0.5))).unwrap_or(Rate::INFINITE)
    }

    /// Offsets of `count` requests, each after a gamma-distributed gap of its own rate. They are not
    /// stretched.
    pub fn schedule(
        &self,
        count: usize,
        burstiness: Burstiness,
        draws: &mut NumpyLegacy,
    ) -> Vec<Stamp> {
        let mut timeline = Timeline::default();
        let mut next = |index| {
            let gaps = GammaGaps::new(self.rate_at(index, count), burstiness);
            timeline.advance(gaps.next_gap(draws));
            timeline.now()
        };
        (0..count).map(&mut next).collect()
    }

    /// The whole numbers of requests per second that the rate reaches after the start, each with the
    /// first request of that rate.
    pub fn steps(&self, count: usize) -> Vec<(u64, usize)> {
        let mut reached = self.start as u64;
        let mut steps = Vec::new();
        for index in 0..count {
            let now = self.rate_at(index, count).get() as u64;
            steps.extend((reached + 1..=now).map(|rate| (rate, index)));
            reached = reached.max(now);
        }
        steps
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "tests mean exact values")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rate(value: f64) -> Rate {
        Rate::per_second(value).unwrap()
    }

    #[test]
    fn the_last_request_is_due_when_the_rate_says() {
        for shape in [0.3, 1.0, 2.5, f64::INFINITY] {
            let burstiness = Burstiness::new(shape).unwrap();
            let offsets = stretched(20, rate(10.0), burstiness, &mut NumpyLegacy::new(0));
            assert_eq!(offsets.last(), Some(&Stamp::from_millis(2000)), "{shape}");
        }
        let even = stretched(3, rate(10.0), Burstiness::EVEN, &mut NumpyLegacy::new(0));
        assert_eq!(even, [100, 200, 300].map(Stamp::from_millis));
        let once = stretched(3, Rate::INFINITE, Burstiness::POISSON, &mut NumpyLegacy::new(0));
        assert_eq!(once, [Stamp(0); 3]);
        assert!(stretched(0, rate(1.0), Burstiness::POISSON, &mut NumpyLegacy::new(0)).is_empty());
    }

    #[test]
    fn a_ramp_passes_through_its_rates() {
        let rates = |ramp: Ramp| [0, 2, 4].map(|i| (ramp.rate_at(i, 5).get() * 1e6).round() / 1e6);
        let linear = Ramp::new(RampShape::Linear, 1.0, 9.0).unwrap();
        assert_eq!(rates(linear), [1.0, 5.0, 9.0]);
        let exponential = Ramp::new(RampShape::Exponential, 1.0, 9.0).unwrap();
        assert_eq!(rates(exponential), [1.0, 3.0, 9.0]);
        let from_zero = Ramp::new(RampShape::Linear, 0.0, 8.0).unwrap();
        assert_eq!(rates(from_zero), [1.0, 4.0, 8.0]);
        let from_zero = Ramp::new(RampShape::Exponential, 0.0, 8.0).unwrap();
        assert_eq!(rates(from_zero), [0.316_074, 2.0, 8.0]);
        let one = Ramp::new(RampShape::Linear, 0.0, 8.0).unwrap();
        assert!(one.rate_at(0, 1).get() > 0.0);
    }

    #[test]
    fn whole_rates_are_noted_once() {
        let ramp = Ramp::new(RampShape::Linear, 1.0, 4.0).unwrap();
        assert_eq!(ramp.steps(4), [(2, 1), (3, 2), (4, 3)]);
        let steep = Ramp::new(RampShape::Linear, 1.0, 4.0).unwrap();
        assert_eq!(steep.steps(2), [(2, 1), (3, 1), (4, 1)]);
        assert!(Ramp::new(RampShape::Linear, 2.0, 2.5).unwrap().steps(9).is_empty());
    }

    #[test]
    fn what_is_no_ramp_is_refused() {
        for (start, end) in [(-1.0, 2.0), (f64::NAN, 2.0), (0.0, 0.0), (1.0, f64::INFINITY)] {
            let error = Ramp::new(RampShape::Linear, start, end).unwrap_err();
            assert!(matches!(error, ArrivalError::NotPositive(_)), "{start} {end}: {error}");
        }
        let error = Ramp::new(RampShape::Linear, 3.0, 2.0).unwrap_err();
        assert_eq!(error.to_string(), "a ramp from 3 to 2 requests per second falls");
    }

    proptest! {
        #[test]
        fn offsets_never_decrease(seed: u32, count in 0..50_usize, start in 0.0..20.0_f64, rise in 1.0..20.0_f64, bursty in 0.1..5.0_f64) {
            let burstiness = Burstiness::new(bursty).unwrap();
            for shape in [RampShape::Linear, RampShape::Exponential] {
                let ramp = Ramp::new(shape, start, start + rise).unwrap();
                let offsets = ramp.schedule(count, burstiness, &mut NumpyLegacy::new(seed));
                prop_assert_eq!(offsets.len(), count);
                prop_assert!(offsets.is_sorted());
            }
            let offsets = stretched(count, rate(rise), burstiness, &mut NumpyLegacy::new(seed));
            prop_assert!(offsets.is_sorted());
        }
    }
}
