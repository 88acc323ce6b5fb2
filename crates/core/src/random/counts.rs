//! Poisson, Zipf, log-normal and uniform draws of NumPy's legacy generator.

use super::NumpyLegacy;

/// Means from which Poisson values are found by rejection.
const LARGE_MEAN: f64 = 10.0;
/// Exponents from which a Zipf value is 1, as far as doubles can tell.
const STEEP: f64 = 1025.0;

impl NumpyLegacy {
    /// A double in `[low, high)` (`uniform`).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random_f64()
    }

    /// One value whose logarithm is normally distributed (`lognormal`).
    pub fn lognormal(&mut self, mean: f64, sigma: f64) -> f64 {
        (mean + sigma * self.standard_normal()).exp()
    }

    /// One value of the Poisson distribution (`poisson`): by multiplying uniform ones for small means
    /// (Knuth), by transformed rejection for those from 10 on (Hörmann 1993, PTRS).
    ///
    /// # Panics
    ///
    /// When `mean` is negative or not a finite number.
    pub fn poisson(&mut self, mean: f64) -> u64 {
        assert!(mean >= 0.0 && mean.is_finite(), "no Poisson distribution has the mean {mean}");
        if mean >= LARGE_MEAN {
            return self.large_poisson(mean);
        }
        if mean == 0.0 {
            return 0;
        }
        let (least, mut product, mut count) = ((-mean).exp(), 1.0, 0);
        loop {
            product *= self.random_f64();
            if product <= least {
                return count;
            }
            count += 1;
        }
    }

    fn large_poisson(&mut self, mean: f64) -> u64 {
        let slope = 0.931 + 2.53 * mean.sqrt();
        let bend = -0.059 + 0.02483 * slope;
        let inverse_alpha = 1.1239 + 1.1328 / (slope - 3.4);
        let quick = 0.9277 - 3.6224 / (slope - 2.0);
        loop {
            let (u, v) = (self.random_f64() - 0.5, self.random_f64());
            let near = 0.5 - u.abs();
            let k = ((2.0 * bend / near + slope) * u + mean + 0.43).floor();
            if near >= 0.07 && v <= quick {
                return k as u64;
            }
            if k < 0.0 || (near < 0.013 && v > near) {
                continue;
            }
            let left = v.ln() + inverse_alpha.ln() - (bend / (near * near) + slope).ln();
            if left <= -mean + k * mean.ln() - ln_gamma(k + 1.0) {
                return k as u64;
            }
        }
    }

    /// One value of the Zipf distribution with this exponent (`zipf`), by rejection (Devroye 1986).
    ///
    /// # Panics
    ///
    /// When `exponent` is not above 1.
    pub fn zipf(&mut self, exponent: f64) -> u64 {
        assert!(exponent > 1.0, "no Zipf distribution has the exponent {exponent}");
        if exponent >= STEEP {
            return 1;
        }
        let less = exponent - 1.0;
        let doubled = less.exp2();
        loop {
            let (u, v) = (1.0 - self.random_f64(), self.random_f64());
            let x = u.powf(-1.0 / less).floor();
            if !(1.0..=i64::MAX as f64).contains(&x) {
                continue;
            }
            let next = (1.0 + 1.0 / x).powf(less);
            if v * x * (next - 1.0) / (doubled - 1.0) <= next / doubled {
                return x as u64;
            }
        }
    }
}

/// The logarithm of the gamma function for `x` of 1 and more, by Stirling's series above 7.
fn ln_gamma(x: f64) -> f64 {
    /// B(2k) / (2k (2k − 1)), from k = 1 on.
    const SERIES: [f64; 8] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
        -3617.0 / 122_400.0,
    ];
    let mut shifted = x;
    let mut product: f64 = 1.0;
    while shifted < 7.0 {
        product *= shifted;
        shifted += 1.0;
    }
    let square = 1.0 / (shifted * shifted);
    let series = SERIES.iter().rev().fold(0.0, |sum, term| sum * square + term) / shifted;
    let half_ln_tau = 0.5 * std::f64::consts::TAU.ln();
    (shifted - 0.5) * shifted.ln() - shifted + half_ln_tau + series - product.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values were drawn by NumPy itself, seed 42.

    fn series<T: Copy>(mut draw: impl FnMut(&mut NumpyLegacy) -> T) -> Vec<T> {
        let mut numpy = NumpyLegacy::new(42);
        (0..20_000).map(|_| draw(&mut numpy)).collect()
    }

    #[test]
    fn poisson_values_match_numpy() {
        for (mean, first, sum, last) in [
            (0.0, [0, 0, 0, 0, 0, 0], 0, 0),
            (0.5, [0, 2, 0, 0, 0, 1], 9946, 3),
            (3.0, [4, 1, 3, 3, 2, 3], 59_990, 3),
            (9.99, [10, 10, 9, 9, 12, 6], 199_999, 11),
            (10.0, [12, 6, 11, 14, 7, 8], 199_735, 10),
            (12.5, [15, 8, 14, 16, 9, 10], 249_559, 14),
            (100.0, [96, 107, 88, 103, 111, 90], 1_999_100, 114),
            (5000.0, [4974, 5049, 4919, 5020, 5077, 4927], 99_995_976, 4968),
        ] {
            let values = series(|numpy| numpy.poisson(mean));
            let got = (&values[..6], values.iter().sum::<u64>(), values[19_999]);
            assert_eq!(got, (&first[..], sum, last), "mean {mean}");
        }
    }

    #[test]
    fn zipf_values_match_numpy() {
        for (exponent, first, sum, last) in [
            (1.1, [523_062, 5, 1, 1, 57_327_754, 7], 5_229_271_219, 14_715),
            (1.5, [13, 1, 1, 1, 35, 1], 30_028_440, 253),
            (2.0, [1, 3, 1, 1, 2, 1], 122_850, 1),
            (3.5, [1, 1, 1, 1, 1, 1], 23_749, 1),
        ] {
            let values = series(|numpy| numpy.zipf(exponent));
            let capped: u64 = values.iter().map(|value| (*value).min(1_000_000)).sum();
            assert_eq!((&values[..6], capped, values[19_999]), (&first[..], sum, last));
        }
        assert_eq!(NumpyLegacy::new(1).zipf(1e9), 1);
    }

    #[test]
    fn lognormal_and_uniform_values_match_numpy() {
        let mut numpy = NumpyLegacy::new(42);
        for want in [1_078.284_970_035_137, 750.837_573_690_103_7, 1_175.186_887_024_36] {
            let got = numpy.lognormal(6.7, 0.57);
            assert!((got - want).abs() < 1e-12 * want, "{got} is not {want}");
        }
        let mut numpy = NumpyLegacy::new(42);
        for want in [4.279_065_564_524_972, 7.015_892_955_447_102, 5.976_971_223_604_174] {
            let got = numpy.uniform(2.5, 7.25);
            assert!((got - want).abs() < 1e-15 * want, "{got} is not {want}");
        }
    }

    #[test]
    fn factorials_have_their_logarithms() {
        let mut factorial: f64 = 1.0;
        for n in 1_u32..=20 {
            factorial *= f64::from(n);
            let got = ln_gamma(f64::from(n) + 1.0);
            assert!((got - factorial.ln()).abs() < 1e-13 * got.abs().max(1.0), "{n}: {got}");
        }
    }
}
