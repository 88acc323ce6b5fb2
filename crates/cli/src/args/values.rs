//! Values of flags.

use crate::hidden::{Header, Hidden};
use serde_json::{Map, Value};
use servebench_metrics::{Slo, SloMetric};

/// A finite number above zero.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() && value > 0.0 => Ok(value),
        _ => Err(format!("expected a finite float > 0, got '{text}'")),
    }
}

/// A finite number of at least zero, and no more than a year of seconds.
pub(super) fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=31_536_000.0).contains(&value) => Ok(value),
        _ => Err(format!("expected a number from 0 on, got '{text}'")),
    }
}

/// Seconds of silence: none, or at least one. What comes is noticed five times a second.
pub(super) fn silence(text: &str) -> Result<f64, String> {
    match not_negative(text)? {
        value if 0.0 < value && value < 1.0 => {
            Err(format!("expected 0 (never) or at least 1 second, got '{text}'"))
        }
        value => Ok(value),
    }
}

/// Seconds: above zero, and no more than a year.
pub(crate) fn positive_time(text: &str) -> Result<f64, String> {
    positive(text).and(not_negative(text))
}

/// A finite number from 0 to 1.
pub(super) fn ratio(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err(format!("expected a number from 0 to 1, got '{text}'")),
    }
}

/// A finite number above 0 and at most 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1.0 => Ok(value),
        _ => Err(format!("expected a number above 0 and at most 1, got '{text}'")),
    }
}

/// A percentile: from 0 to 100.
pub(super) fn percentile(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value),
        _ => Err(format!("expected a number from 0 to 100, got '{text}'")),
    }
}

/// `KEY:VALUE` of `--goodput`.
pub(super) fn objective(text: &str) -> Result<Slo, String> {
    let error = || format!("expected KEY:VALUE with KEY in ttft, tpot, e2el, got '{text}'");
    let (key, value) = text.split_once(':').ok_or_else(error)?;
    let metric = SloMetric::from_name(key).ok_or_else(error)?;
    Ok(Slo { metric, limit_ms: positive(value)? })
}

/// `Key=Value` of `--header`.
pub(crate) fn header(text: &str) -> Result<Header, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), Hidden(value.to_owned())))
        }
        // The value may be a secret: only the key is shown.
        Some((key, _)) => Err(format!("expected Key=Value, got '{key}=…' with an empty part")),
        None => Err("expected Key=Value, got an item without '='".into()),
    }
}

/// A JSON object.
pub(super) fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(format!("expected a JSON object, got {other}")),
        Err(error) => Err(format!("expected a JSON object: {error}")),
    }
}
