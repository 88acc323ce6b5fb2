//! Drawn lengths.

use crate::DatasetError;
use serde::Serialize;
use serde_json::Value;
use servebench_core::random::NumpyGenerator;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// How far lengths may be from the asked one, as parts of it, each at least 0 and below 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RangeRatio {
    /// Of prompts.
    pub input: f64,
    /// Of outputs.
    pub output: f64,
}

/// Why a text is no range ratio.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected a number from 0 to below 1, or {{\"input\": R, \"output\": R}} of such, got `{text}`"
)]
pub struct RangeRatioError {
    text: String,
}

impl RangeRatio {
    fn new(input: f64, output: f64) -> Option<Self> {
        let fits = |ratio: f64| (0.0..1.0).contains(&ratio);
        (fits(input) && fits(output)).then_some(Self { input, output })
    }
}

impl FromStr for RangeRatio {
    type Err = RangeRatioError;

    /// Reads a number, or an object with `input` and `output`.
    fn from_str(text: &str) -> Result<Self, RangeRatioError> {
        let ratio = match text.trim().parse::<f64>() {
            Ok(ratio) => Self::new(ratio, ratio),
            Err(_) => serde_json::from_str::<Value>(text).ok().and_then(|object| {
                Self::new(object.get("input")?.as_f64()?, object.get("output")?.as_f64()?)
            }),
        };
        ratio.ok_or_else(|| RangeRatioError { text: text.to_owned() })
    }
}

/// The lengths of all requests, and where in the vocabulary each begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Lengths {
    pub(super) inputs: Vec<u32>,
    pub(super) outputs: Vec<u32>,
    pub(super) offsets: Vec<u32>,
}

/// The lengths around `len` that lie within `ratio` of it.
pub(super) fn interval(len: u32, ratio: f64, least: u32) -> RangeInclusive<u32> {
    let (low, high) = (f64::from(len) * (1.0 - ratio), f64::from(len) * (1.0 + ratio));
    (low.floor() as u32).max(least)..=(high.ceil() as u32).max(least)
}

impl Lengths {
    /// Draws all inputs, then all outputs, then all offsets. `input_len` is without special tokens.
    pub(super) fn draw(
        n: usize,
        (input_len, output_len): (u32, u32),
        ratio: RangeRatio,
        vocabulary: u32,
        random: &mut NumpyGenerator,
    ) -> Result<Self, DatasetError> {
        let Some(last) = vocabulary.checked_sub(1) else {
            return Err(DatasetError::NoUsableRows {
                dataset: "the vocabulary".to_owned(),
                skipped: "it is empty".to_owned(),
            });
        };
        Ok(Self {
            inputs: random.integers(interval(input_len, ratio.input, 0), n),
            outputs: random.integers(interval(output_len, ratio.output, 1), n),
            offsets: random.integers(0..=last, n),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_a_number_or_two() {
        assert_eq!("0.5".parse(), Ok(RangeRatio { input: 0.5, output: 0.5 }));
        let two = r#"{"input": 0, "output": 0.25}"#.parse();
        assert_eq!(two, Ok(RangeRatio { input: 0.0, output: 0.25 }));
        for text in ["1.0", "-0.1", "nan", "x", r#"{"input": 0.1}"#, r#"{"input":0.1,"output":1}"#]
        {
            assert!(text.parse::<RangeRatio>().is_err(), "{text}");
        }
    }

    #[test]
    fn intervals_round_outwards() {
        assert_eq!(interval(1024, 0.0, 0), 1024..=1024);
        assert_eq!(interval(10, 0.25, 0), 7..=13);
        assert_eq!(interval(1, 0.9, 1), 1..=2);
        assert_eq!(interval(0, 0.5, 0), 0..=0);
    }
}
