//! Requests per second.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Why a rate or a burstiness was refused.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ArrivalError {
    /// The text is not a number.
    #[error("request rate `{0}` is not a number")]
    NotANumber(String),
    /// Zero, negative, NaN, or so small that the gap between two requests is infinite.
    #[error("request rate {0} is not a positive number of requests per second")]
    NotPositive(f64),
    /// The text is not a number.
    #[error("burstiness `{0}` is not a number")]
    NotAShape(String),
    /// Zero, negative, NaN, or too small to be inverted.
    #[error("burstiness {0} is not a positive number")]
    NotBursty(f64),
    /// A ramp ends below its start.
    #[error("a ramp from {start} to {end} requests per second falls")]
    Falling {
        /// The rate at its start.
        start: f64,
        /// The rate at its end.
        end: f64,
    },
}

/// A positive number of requests per second; infinite means all at once.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Rate(f64);

impl Rate {
    /// All requests at once.
    pub const INFINITE: Self = Self(f64::INFINITY);

    /// Checks a number of requests per second.
    ///
    /// # Errors
    ///
    /// [`ArrivalError::NotPositive`] for zero, negative numbers, NaN, and rates below about
    /// 10⁻³⁰⁸, whose mean gap is not a finite number.
    pub fn per_second(value: f64) -> Result<Self, ArrivalError> {
        if value > 0.0 && value.recip().is_finite() {
            Ok(Self(value))
        } else {
            Err(ArrivalError::NotPositive(value))
        }
    }

    /// Requests per second.
    pub const fn get(self) -> f64 {
        self.0
    }

    /// True when all requests start at once.
    pub const fn is_infinite(self) -> bool {
        self.0.is_infinite()
    }

    /// Mean time between two requests in seconds; zero for an infinite rate.
    pub fn mean_gap(self) -> f64 {
        self.0.recip()
    }
}

impl FromStr for Rate {
    type Err = ArrivalError;

    /// Reads a decimal number, or `inf`, as Python's `float` does.
    fn from_str(text: &str) -> Result<Self, ArrivalError> {
        let value = text.trim().parse().map_err(|_| ArrivalError::NotANumber(text.to_owned()))?;
        Self::per_second(value)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "tests mean exact values")]
mod tests {
    use super::*;

    #[test]
    fn reads_what_python_reads() {
        for (text, value) in [("50", 50.0), (" 0.5 ", 0.5), ("1e9", 1e9), ("+2", 2.0)] {
            assert_eq!(text.parse::<Rate>().unwrap().get(), value);
        }
        for text in ["inf", "Inf", "infinity", "+inf"] {
            assert!(text.parse::<Rate>().unwrap().is_infinite());
        }
    }

    #[test]
    fn refuses_what_is_no_rate() {
        for text in ["0", "-0.0", "-1", "nan", "-inf", "1e-320"] {
            let error = text.parse::<Rate>().unwrap_err();
            assert!(matches!(error, ArrivalError::NotPositive(_)), "{text}: {error}");
        }
        for text in ["", "fast", "10/s"] {
            let error = text.parse::<Rate>().unwrap_err();
            assert_eq!(error, ArrivalError::NotANumber(text.to_owned()));
        }
    }

    #[test]
    fn an_infinite_rate_has_no_gap() {
        assert_eq!(Rate::INFINITE.mean_gap(), 0.0);
        assert_eq!(Rate::INFINITE.to_string(), "inf");
    }
}
