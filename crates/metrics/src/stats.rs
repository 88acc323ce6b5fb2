//! Mean, deviation and percentiles as NumPy defines them.

use serde::{Deserialize, Serialize};

/// What is said about one family of samples, in the samples' own unit.
///
/// A function of the samples alone, not of their order: however a run was split over workers, the
/// numbers are the same to the last bit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of samples, at least one.
    pub count: u64,
    /// Sum over count.
    pub mean: f64,
    /// The middle sample, or the mean of the two middle ones; also the 50th percentile.
    pub median: f64,
    /// Standard deviation of the population: `√(Σ (x − mean)² / count)`. Zero for one sample.
    pub std: f64,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
}

impl Distribution {
    /// Describes `samples`, and leaves them sorted. `None` when there are none.
    pub fn of(samples: &mut [f64]) -> Option<Self> {
        samples.sort_unstable_by(f64::total_cmp);
        Self::of_ascending(&*samples)
    }

    /// Describes samples that are in order already.
    pub(crate) fn of_ascending(samples: &(impl Ascending + ?Sized)) -> Option<Self> {
        let n = samples.count();
        let last = n.checked_sub(1)?;
        let (min, max) = (samples.at(0)?, samples.at(last)?);
        let mean = sum(samples, &|x| x) / n as f64;
        let variance = sum(samples, &|x| (x - mean) * (x - mean)) / n as f64;
        let at = |q| interpolate(samples, q).unwrap_or(max);
        Some(Self {
            count: n as u64,
            mean,
            median: f64::midpoint(samples.at(last / 2)?, samples.at(n / 2)?),
            std: variance.sqrt(),
            min,
            max,
            p90: at(90.0),
            p95: at(95.0),
            p99: at(99.0),
            p99_9: at(99.9),
        })
    }

    /// The same distribution in a unit `factor` times smaller, as from seconds to milliseconds.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            count: self.count,
            mean: self.mean * factor,
            median: self.median * factor,
            std: self.std * factor,
            min: self.min * factor,
            max: self.max * factor,
            p90: self.p90 * factor,
            p95: self.p95 * factor,
            p99: self.p99 * factor,
            p99_9: self.p99_9 * factor,
        }
    }
}

/// Samples in ascending order, however they are kept.
pub(crate) trait Ascending {
    /// Number of samples.
    fn count(&self) -> usize;

    /// The sample at `index`, counted from 0.
    fn at(&self, index: usize) -> Option<f64>;

    /// All samples, in order.
    fn samples(&self) -> impl Iterator<Item = f64>;
}

impl Ascending for [f64] {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, index: usize) -> Option<f64> {
        self.get(index).copied()
    }

    fn samples(&self) -> impl Iterator<Item = f64> {
        self.iter().copied()
    }
}

/// The `q`-th percentile of ascending samples, by linear interpolation.
///
/// `rank = (n − 1) · q / 100`; between the samples `a` and `b` around it, at the fraction `t`, the
/// value is `a + (b − a) · t`, or `b − (b − a) · (1 − t)` from `t = ½` on: NumPy's two forms, so
/// that rounding agrees too and the result never leaves `[a, b]`.
///
/// `None` without samples, and for a `q` outside `0..=100`.
pub fn percentile(sorted: &[f64], q: f64) -> Option<f64> {
    interpolate(sorted, q)
}

fn interpolate(samples: &(impl Ascending + ?Sized), q: f64) -> Option<f64> {
    if !(0.0..=100.0).contains(&q) {
        return None;
    }
    let rank = samples.count().checked_sub(1)? as f64 * (q / 100.0);
    let (low, t) = (rank.floor() as usize, rank.fract());
    let a = samples.at(low)?;
    let b = samples.at(low + 1).unwrap_or(a);
    Some(if t < 0.5 { a + (b - a) * t } else { b - (b - a) * (1.0 - t) })
}

/// Sums `term(x)` over the samples in halves, as NumPy does: the error grows with log n, not with n.
pub(crate) fn sum(samples: &(impl Ascending + ?Sized), term: &impl Fn(f64) -> f64) -> f64 {
    pairwise_sum(samples.count(), &mut samples.samples(), term)
}

/// Sums over the next `n` values.
fn pairwise_sum(
    n: usize,
    values: &mut impl Iterator<Item = f64>,
    term: &impl Fn(f64) -> f64,
) -> f64 {
    const BLOCK: usize = 128;
    const LANES: usize = 8;
    if n > BLOCK {
        let half = n / 2;
        let left = half - half % LANES;
        let sum = pairwise_sum(left, values, term);
        return sum + pairwise_sum(n - left, values, term);
    }
    let mut block = [0.0; BLOCK];
    for (place, value) in block.iter_mut().zip(values.take(n)) {
        *place = term(value);
    }
    let (groups, rest) = block[..n].as_chunks::<LANES>();
    let mut lanes = [0.0; LANES];
    for group in groups {
        for (lane, &value) in lanes.iter_mut().zip(group) {
            *lane += value;
        }
    }
    let pair = |lane: usize| lanes[lane] + lanes[lane + 1];
    let sum = (pair(0) + pair(2)) + (pair(4) + pair(6));
    rest.iter().fold(sum, |sum, &value| sum + value)
}

#[cfg(test)]
#[allow(
    clippy::float_cmp,
    clippy::unreadable_literal,
    reason = "exact values, as NumPy prints them"
)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_interpolate() {
        let values = [10.0, 20.0, 30.0, 40.0];
        let expected = [
            (0.0, 10.0),
            (25.0, 17.5),
            (50.0, 25.0),
            (90.0, 37.0),
            (95.0, 38.5),
            (99.0, 39.7),
            (99.9, 39.97),
            (100.0, 40.0),
        ];
        for (q, want) in expected {
            let got = percentile(&values, q).unwrap();
            assert!((got - want).abs() < 1e-12, "p{q}: {got}");
        }
        assert_eq!([-1.0, 101.0, f64::NAN].map(|q| percentile(&values, q)), [None; 3]);
    }

    #[test]
    fn the_four_samples_of_the_specification() {
        let d = Distribution::of(&mut [4.0, 2.0, 1.0, 3.0]).unwrap();
        assert_eq!((d.count, d.mean, d.median, d.min, d.max), (4, 2.5, 2.5, 1.0, 4.0));
        assert_eq!((d.p90, d.p95, d.p99), (3.7, 3.8499999999999996, 3.9699999999999998));
        assert_eq!(d.std, 1.118033988749895);
        let d = Distribution::of(&mut [10.0, 20.0, 30.0, 40.0]).unwrap();
        assert_eq!(d.std, 11.180339887498949);
        // `a + (b − a) · t` would give 39.7 and 39.97.
        assert_eq!((d.p99, d.p99_9), (39.699999999999996, 39.970000000000006));
    }

    #[test]
    fn one_sample_is_every_percentile_and_none_is_nothing() {
        let d = Distribution::of(&mut [7.0]).unwrap();
        assert_eq!([d.mean, d.median, d.min, d.max, d.p90, d.p95, d.p99, d.p99_9], [7.0; 8]);
        assert_eq!(d.std, 0.0);
        assert_eq!(Distribution::of(&mut []), None);
        assert_eq!(percentile(&[], 50.0), None);
    }

    #[test]
    fn numbers_of_numpy_to_the_last_bit() {
        // `x = numpy.sort(((numpy.arange(1000) * 7919) % 1009) / 13.0)`, NumPy 2.4.
        let mut samples: Vec<f64> =
            (0..1000_u32).map(|i| f64::from(i * 7919 % 1009) / 13.0).collect();
        let d = Distribution::of(&mut samples).unwrap();
        let numpy = [
            38.821384615384616,
            38.88461538461539,
            22.412236238955924,
            69.77692307692308,
            73.69615384615385,
            76.77000000000001,
            77.4616153846154,
        ];
        assert_eq!([d.mean, d.median, d.std, d.p90, d.p95, d.p99, d.p99_9], numpy);
    }
}
