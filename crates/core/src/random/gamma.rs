//! Normal and gamma draws of NumPy's legacy generator.

use super::NumpyLegacy;

impl NumpyLegacy {
    /// One value of the standard normal distribution (`standard_normal`), by Marsaglia's polar
    /// method, which makes two: the other one is kept for the next call.
    pub fn standard_normal(&mut self) -> f64 {
        if let Some(kept) = self.normal.take() {
            return kept;
        }
        loop {
            let (x, y) = (2.0 * self.random_f64() - 1.0, 2.0 * self.random_f64() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square != 0.0 {
                let scale = (-2.0 * square.ln() / square).sqrt();
                self.normal = Some(scale * x);
                return scale * y;
            }
        }
    }

    /// One value of the gamma distribution with this shape and scale 1 (`standard_gamma`): by
    /// Ahrens and Dieter's method for shapes below 1, by Marsaglia and Tsang's for those above, and an
    /// exponential value for 1.
    ///
    /// # Panics
    ///
    /// When the shape is not a positive finite number.
    pub fn standard_gamma(&mut self, shape: f64) -> f64 {
        assert!(shape > 0.0 && shape.is_finite(), "no gamma distribution has the shape {shape}");
        if shape < 1.0 {
            self.gamma_below_one(shape)
        } else if shape > 1.0 {
            self.gamma_above_one(shape)
        } else {
            self.exponential(1.0)
        }
    }

    fn gamma_below_one(&mut self, shape: f64) -> f64 {
        loop {
            let (u, limit) = (self.random_f64(), self.exponential(1.0));
            let (value, limit) = if u <= 1.0 - shape {
                (u.powf(1.0 / shape), limit)
            } else {
                let y = -((1.0 - u) / shape).ln();
                ((1.0 - shape + shape * y).powf(1.0 / shape), limit + y)
            };
            if value <= limit {
                return value;
            }
        }
    }

    fn gamma_above_one(&mut self, shape: f64) -> f64 {
        let scale = shape - 1.0 / 3.0;
        let spread = 1.0 / (9.0 * scale).sqrt();
        loop {
            let (x, root) = loop {
                let x = self.standard_normal();
                let root = 1.0 + spread * x;
                if root > 0.0 {
                    break (x, root);
                }
            };
            let v = root * root * root;
            let u = self.random_f64();
            let quick = u < 1.0 - 0.0331 * (x * x) * (x * x);
            if quick || u.ln() < 0.5 * x * x + scale * (1.0 - v + v.ln()) {
                return scale * v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected values were drawn by NumPy itself.

    /// Two libraries' logarithms and powers may differ in the last bits.
    fn assert_close(got: f64, want: f64) {
        assert!((got - want).abs() <= 16.0 * f64::EPSILON * want.abs(), "{got} is not {want}");
    }

    #[test]
    fn normal_values_match_numpy() {
        let mut numpy = NumpyLegacy::new(42);
        for want in [
            0.496_714_153_011_232_7,
            -0.138_264_301_171_184_66,
            0.647_688_538_100_692_5,
            1.523_029_856_408_025_4,
            -0.234_153_374_723_335_97,
            -0.234_136_956_949_180_55,
        ] {
            assert_close(numpy.standard_normal(), want);
        }
    }

    #[test]
    fn gamma_values_match_numpy() {
        #[rustfmt::skip]
        let cases = [
            (0.3, [0.037_872_834_774_844_21, 0.356_441_741_704_022_5, 0.002_044_505_565_085_655_6]),
            (0.5, [0.140_280_300_626_196_42, 0.659_018_032_842_185_1, 0.024_341_816_165_506_288]),
            (1.0, [0.469_268_089_976_859_1, 3.010_121_430_917_521, 1.316_745_693_545_449_3]),
            (2.5, [2.983_135_365_424_813, 1.969_452_957_482_012_5, 1.839_955_136_745_578_4]),
            (100.0, [104.708_219_021_016_25, 98.292_692_516_521_63, 97.347_267_039_517_89]),
        ];
        for (shape, values) in cases {
            let mut numpy = NumpyLegacy::new(42);
            for want in values {
                assert_close(numpy.standard_gamma(shape), want);
            }
        }
    }

    #[test]
    fn kinds_of_draws_mix_as_in_numpy() {
        let mut numpy = NumpyLegacy::new(42);
        assert_close(numpy.standard_gamma(2.5), 2.983_135_365_424_813);
        assert_close(numpy.standard_normal(), -0.138_264_301_171_184_66);
        assert_close(numpy.random_f64(), 0.598_658_484_197_036_6);
        assert_close(numpy.standard_gamma(0.5), 0.024_341_816_165_506_288);
        assert_close(numpy.standard_normal(), 1.579_212_815_507_391_5);
    }

    #[test]
    fn long_series_accept_and_reject_as_numpy_does() {
        // One rejection more or less, and everything after it differs.
        let mut numpy = NumpyLegacy::new(1);
        for (shape, sum, last) in [
            (0.2, 3_830.906_209_504_261_4, 0.061_350_270_706_721_66),
            (0.9, 17_901.926_190_153_325, 0.400_420_579_191_554_8),
            (1.1, 22_208.066_618_499_73, 1.833_027_010_538_443),
            (7.0, 140_098.568_686_434_27, 1.750_619_568_885_901),
        ] {
            let values: Vec<f64> = (0..20_000).map(|_| numpy.standard_gamma(shape)).collect();
            assert!((values.iter().sum::<f64>() - sum).abs() < 1e-8 * sum);
            assert_close(values[values.len() - 1], last);
        }
    }

    #[test]
    #[should_panic(expected = "no gamma distribution has the shape NaN")]
    fn a_shape_is_a_positive_number() {
        NumpyLegacy::new(1).standard_gamma(f64::NAN);
    }
}
