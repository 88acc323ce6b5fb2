//! The distributions from which lengths and turns are drawn.

use serde::Serialize;
use servebench_core::random::NumpyLegacy;
use std::fmt;

/// A distribution of whole numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "distribution", rename_all = "lowercase")]
#[non_exhaustive]
pub enum LengthDistribution {
    /// Always the same.
    Constant {
        /// The number.
        value: f64,
    },
    /// All alike from `min` to `max`, both included.
    Uniform {
        /// Smallest, above 0.
        min: f64,
        /// Largest.
        max: f64,
        /// Whether whole numbers are drawn, not real ones that are rounded.
        whole: bool,
    },
    /// Its logarithm is normally distributed.
    Lognormal {
        /// Mean of the logarithm.
        mean: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
        /// What the mean of each series is brought to, and the part of it that the median is.
        average: Option<(f64, f64)>,
        /// Largest.
        max: Option<f64>,
    },
    /// The power law of the numbers from 1 on.
    Zipf {
        /// Its exponent, above 1.
        alpha: f64,
        /// Largest.
        max: Option<f64>,
    },
    /// The Poisson distribution.
    Poisson {
        /// Its mean.
        alpha: f64,
        /// Largest.
        max: Option<f64>,
    },
}

impl LengthDistribution {
    /// A series of `count` numbers, with NumPy's draws; what is longer than any text is cut.
    pub fn sample(&self, numpy: &mut NumpyLegacy, count: usize) -> Vec<u32> {
        let capped = |value: f64, max: &Option<f64>| max.map_or(value, |max| value.min(max));
        match self {
            Self::Constant { value } => vec![whole(*value); count],
            Self::Uniform { min, max, whole: true } => {
                numpy.randint(whole(*min)..=whole(*max), count)
            }
            Self::Uniform { min, max, whole: false } => {
                (0..count).map(|_| whole(numpy.uniform(*min, *max))).collect()
            }
            Self::Lognormal { mean, sigma, average, max } => {
                let series: Vec<f64> = (0..count).map(|_| numpy.lognormal(*mean, *sigma)).collect();
                let found = series.iter().sum::<f64>() / count as f64;
                let scale = average.map_or(1.0, |(average, _)| average / found);
                series.into_iter().map(|value| whole(capped(value * scale, max))).collect()
            }
            Self::Zipf { alpha, max } => {
                (0..count).map(|_| whole(capped(numpy.zipf(*alpha) as f64, max))).collect()
            }
            Self::Poisson { alpha, max } => {
                (0..count).map(|_| whole(capped(numpy.poisson(*alpha) as f64, max))).collect()
            }
        }
    }
}

/// To the nearest whole number, to the even one of two; 0 for what is below.
fn whole(value: f64) -> u32 {
    value.round_ties_even() as u32
}

/// As the Python script shows it.
impl fmt::Display for LengthDistribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = |max: &Option<f64>| max.map_or("None".to_owned(), |max| max.to_string());
        match self {
            Self::Constant { value } => write!(f, "Constant[{value}]"),
            Self::Uniform { min, max, .. } => write!(f, "UniformDistribution[{min}, {max}]"),
            Self::Lognormal { average: Some((average, ratio)), max, .. } => {
                write!(f, "LognormalDistribution[{average}, {ratio}, {}]", limit(max))
            }
            Self::Lognormal { mean, sigma, average: None, max } => {
                write!(f, "LognormalDistribution[{mean}, {sigma}, {}]", limit(max))
            }
            Self::Zipf { alpha, .. } => write!(f, "ZipfDistribution[{alpha}]"),
            Self::Poisson { alpha, .. } => write!(f, "PoissonDistribution[{alpha}]"),
        }
    }
}
