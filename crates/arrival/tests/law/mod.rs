//! What arrivals must look like, as numbers with error bars.

use servebench_arrival::{Burstiness, Constant, Gamma, Poisson, Rate};
use servebench_core::Stamp;
use servebench_core::random::NumpyLegacy;
use statrs::distribution::{ContinuousCDF, Exp, Gamma as GammaLaw};

/// A renewal process, by what its gaps are like.
pub(crate) struct Law {
    pub(crate) name: &'static str,
    /// Arrivals per second.
    pub(crate) rate: f64,
    /// Standard deviation over mean of the gaps.
    pub(crate) variation: f64,
    /// The share of gaps that are at most so many seconds long.
    pub(crate) gaps: Box<dyn Fn(f64) -> f64>,
}

impl Law {
    /// Panics unless `offsets` may well be a sample of this process. The first is the start.
    ///
    /// Each bound is met by all but one sample in a thousand, or fewer.
    pub(crate) fn check(&self, offsets: &[Stamp]) {
        let name = self.name;
        let gaps: Vec<f64> = offsets.windows(2).map(|pair| pair[1].secs_since(pair[0])).collect();
        let n = gaps.len() as f64;

        let rate = n / gaps.iter().sum::<f64>();
        let error = 3.3 * self.variation / n.sqrt() + 1e-6;
        assert!((rate / self.rate - 1.0).abs() < error, "{name}: {rate}/s for {}/s", self.rate);

        // 50 arrivals to an interval: the index has then come close to the gaps' squared variation
        // (Cox 1962); of a sample it has a relative error of √(2 / intervals).
        let index = index_of_dispersion(offsets, 50.0 / self.rate);
        let want = self.variation.powi(2);
        let error = want * 3.3 * (2.0 * 50.0 / n).sqrt() + 0.06;
        assert!((index - want).abs() < error, "{name}: index of dispersion {index} for {want}");

        let distance = distance(gaps, &self.gaps);
        // The critical value at the level of one in a thousand.
        assert!(distance < 1.95 / n.sqrt(), "{name}: Kolmogorov-Smirnov distance {distance}");
    }
}

/// Every process with its law: `n` arrivals at `rate` per second, whose inverse must be a whole number
/// of nanoseconds, and so large that rounding to these does not show.
pub(crate) fn samples(rate: f64, n: usize, seed: u32) -> Vec<(Law, Vec<Stamp>)> {
    let per_second = Rate::per_second(rate).unwrap();
    let draws = &mut NumpyLegacy::new(seed);
    let even = Law {
        name: "constant",
        rate,
        variation: 0.0,
        gaps: Box::new(move |gap| if gap < 1.0 / rate { 0.0 } else { 1.0 }),
    };
    let poisson = Law {
        name: "Poisson",
        rate,
        variation: 1.0,
        gaps: {
            let law = Exp::new(rate).unwrap();
            Box::new(move |gap| law.cdf(gap))
        },
    };
    let mut samples = vec![
        (even, Constant::new(per_second).take(n).collect()),
        (poisson, Poisson::new(per_second, draws).take(n).collect()),
    ];
    for (name, shape) in [("bursty gamma", 0.5), ("steady gamma", 4.0)] {
        let law = GammaLaw::new(shape, rate * shape).unwrap();
        let gaps = Box::new(move |gap| law.cdf(gap));
        let burstiness = Burstiness::new(shape).unwrap();
        let offsets = Gamma::new(per_second, burstiness, draws).take(n).collect();
        samples.push((Law { name, rate, variation: shape.sqrt().recip(), gaps }, offsets));
    }
    samples
}

/// Variance over mean of the counts per interval of so many seconds.
fn index_of_dispersion(offsets: &[Stamp], interval: f64) -> f64 {
    let bin = |at: &Stamp| (at.as_secs_f64() / interval) as usize;
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

/// The Kolmogorov-Smirnov distance of a sample from a distribution, which may have steps.
fn distance(mut sample: Vec<f64>, law: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let share = |count: usize| count as f64 / sample.len() as f64;
    let at_value = |&value: &f64| {
        let below = share(sample.partition_point(|&other| other < value));
        let up_to = share(sample.partition_point(|&other| other <= value));
        (law(value.next_down()) - below).abs().max((law(value) - up_to).abs())
    };
    sample.iter().map(at_value).fold(0.0, f64::max)
}
