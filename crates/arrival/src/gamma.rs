//! Arrivals that are burstier than a Poisson process, or less so.

use crate::{ArrivalError, Rate, Timeline};
use servebench_core::Stamp;
use servebench_core::random::NumpyLegacy;
use std::fmt;
use std::str::FromStr;

/// How bursty arrivals are, as the shape of a gamma distribution: 1 is a Poisson process, less is
/// burstier, more is steadier, and infinite is evenly spaced.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Burstiness(f64);

impl Burstiness {
    /// That of a Poisson process.
    pub const POISSON: Self = Self(1.0);
    /// Evenly spaced arrivals.
    pub const EVEN: Self = Self(f64::INFINITY);

    /// Checks a shape.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::NotBursty`] for zero, negative numbers, NaN, and shapes below about 10⁻³⁰⁸, whose
    /// inverse is not a finite number.
    pub fn new(shape: f64) -> Result<Self, ArrivalError> {
        if shape > 0.0 && shape.recip().is_finite() {
            Ok(Self(shape))
        } else {
            Err(ArrivalError::NotBursty(shape))
        }
    }

    /// The shape: 1 over the squared coefficient of variation of the gaps.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Default for Burstiness {
    fn default() -> Self {
        Self::POISSON
    }
}

impl FromStr for Burstiness {
    type Err = ArrivalError;

    /// Reads a decimal number, or `inf`, as Python's `float` does.
    fn from_str(text: &str) -> Result<Self, ArrivalError> {
        let shape = text.trim().parse().map_err(|_| ArrivalError::NotAShape(text.to_owned()))?;
        Self::new(shape)
    }
}

impl fmt::Display for Burstiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Gamma-distributed gaps, from NumPy's legacy generator, for callers that sum them up themselves.
#[derive(Clone, Copy, Debug)]
pub struct GammaGaps {
    rate: Rate,
    burstiness: Burstiness,
}

impl GammaGaps {
    /// Gaps with mean `1 / rate` and standard deviation `1 / (rate · √burstiness)`.
    pub const fn new(rate: Rate, burstiness: Burstiness) -> Self {
        Self { rate, burstiness }
    }

    /// The next gap in seconds. An infinite rate gives zero and an infinite burstiness the mean; both
    /// draw nothing.
    pub fn next_gap(self, draws: &mut NumpyLegacy) -> f64 {
        let shape = self.burstiness.get();
        if self.rate.is_infinite() {
            0.0
        } else if shape.is_infinite() {
            self.rate.mean_gap()
        } else {
            // In this order of operations, as the Python tool has it.
            draws.standard_gamma(shape) * (1.0 / (self.rate.get() * shape))
        }
    }
}

/// A renewal process with gamma-distributed gaps: the first request at the start of the run, then
/// gaps of mean `1 / rate`. Never ends.
///
/// ```
/// use servebench_arrival::{Burstiness, Gamma, Rate};
/// use servebench_core::random::NumpyLegacy;
///
/// let (rate, mut draws) = (Rate::per_second(10.0)?, NumpyLegacy::new(42));
/// let last = Gamma::new(rate, Burstiness::new(0.5)?, &mut draws).nth(100_000).unwrap();
/// assert!((last.as_secs_f64() / 10_000.0 - 1.0).abs() < 0.02);
/// # Ok::<(), servebench_arrival::ArrivalError>(())
/// ```
#[derive(Debug)]
pub struct Gamma<'a> {
    gaps: GammaGaps,
    draws: &'a mut NumpyLegacy,
    timeline: Timeline,
}

impl<'a> Gamma<'a> {
    /// Arrivals at `rate`, as bursty as asked for, with gaps from `draws`.
    pub fn new(rate: Rate, burstiness: Burstiness, draws: &'a mut NumpyLegacy) -> Self {
        Self { gaps: GammaGaps::new(rate, burstiness), draws, timeline: Timeline::default() }
    }
}

impl Iterator for Gamma<'_> {
    type Item = Stamp;

    fn next(&mut self) -> Option<Stamp> {
        let at = self.timeline.now();
        self.timeline.advance(self.gaps.next_gap(self.draws));
        Some(at)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "tests mean exact values")]
mod tests {
    use super::*;

    #[test]
    fn reads_what_python_reads_and_refuses_what_is_no_shape() {
        assert_eq!(" 0.5".parse::<Burstiness>().unwrap().get(), 0.5);
        assert_eq!("inf".parse(), Ok(Burstiness::EVEN));
        assert_eq!(Burstiness::default().to_string(), "1");
        for text in ["0", "-1", "nan", "1e-320"] {
            let error = text.parse::<Burstiness>().unwrap_err();
            assert!(matches!(error, ArrivalError::NotBursty(_)), "{text}: {error}");
        }
        let error = "very".parse::<Burstiness>().unwrap_err();
        assert_eq!(error.to_string(), "burstiness `very` is not a number");
    }

    #[test]
    fn gaps_are_those_of_the_python_tool() {
        // `numpy.random.seed(0)`, then `numpy.random.gamma(shape=b, scale=1 / (10 * b))`.
        for (shape, expected) in [
            (0.5, [0.060_800_377_952_140_88, 0.075_654_344_013_563_12, 0.035_896_677_800_577_52]),
            (1.0, [0.079_587_450_816_311_01, 0.125_593_076_296_583_78, 0.092_322_314_580_406_89]),
            (4.0, [0.204_701_034_786_831_63, 0.112_188_099_836_277_45, 0.213_283_626_423_851_12]),
        ] {
            let mut draws = NumpyLegacy::new(0);
            let gaps =
                GammaGaps::new(Rate::per_second(10.0).unwrap(), Burstiness::new(shape).unwrap());
            for want in expected {
                let got = gaps.next_gap(&mut draws);
                assert!((got - want).abs() < 1e-15, "{got} is not {want}");
            }
        }
    }

    #[test]
    fn what_has_no_spread_draws_nothing() {
        let (mut draws, ten) = (NumpyLegacy::new(1), Rate::per_second(10.0).unwrap());
        assert_eq!(GammaGaps::new(ten, Burstiness::EVEN).next_gap(&mut draws), 0.1);
        assert_eq!(GammaGaps::new(Rate::INFINITE, Burstiness::EVEN).next_gap(&mut draws), 0.0);
        assert_eq!(GammaGaps::new(Rate::INFINITE, Burstiness::POISSON).next_gap(&mut draws), 0.0);
        assert_eq!(draws, NumpyLegacy::new(1));
    }
}
