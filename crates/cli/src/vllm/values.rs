//! Values of flags, as the Python tool reads them.

use crate::hidden::{Header, Hidden};
use serde_json::{Map, Value};
use servebench_metrics::{Slo, SloMetric};

/// `KEY=VALUE`, split at the first `=`, both sides trimmed.
fn pair(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    let (key, value) = (key.trim(), value.trim());
    (!key.is_empty()).then(|| (key.to_owned(), value.to_owned()))
}

/// `KEY=VALUE` of `--header`. The value may be a secret, so no message shows it.
pub(crate) fn header(text: &str) -> Result<Header, String> {
    let header = pair(text).map(|(name, value)| (name, Hidden(value)));
    header.ok_or_else(|| "expected KEY=VALUE, got an item without a key or without '='".into())
}

/// `KEY=VALUE` of `--metadata`.
pub(crate) fn metadata(text: &str) -> Result<(String, String), String> {
    pair(text).ok_or_else(|| format!("expected KEY=VALUE, got '{text}'"))
}

/// A JSON object.
pub(crate) fn object(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(other) => Err(format!("expected a JSON object, got {other}")),
        Err(error) => Err(format!("expected a JSON object: {error}")),
    }
}

/// `NAME:MS` of `--goodput`.
pub(crate) fn objective(text: &str) -> Result<Slo, String> {
    let error = || {
        format!("expected NAME:MS with NAME in ttft, tpot, e2el and MS of 0 or more, got '{text}'")
    };
    let (name, limit) = text.split_once(':').ok_or_else(error)?;
    let metric = SloMetric::from_name(name.trim()).ok_or_else(error)?;
    let limit_ms: f64 = limit.trim().parse().map_err(|_| error())?;
    if limit_ms.is_finite() && limit_ms >= 0.0 {
        Ok(Slo { metric, limit_ms })
    } else {
        Err(error())
    }
}

/// A number from 0 to 1.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err(format!("expected a number from 0 to 1, got '{text}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_split_and_trimmed() {
        assert_eq!(header(" a = b=c "), Ok(("a".into(), Hidden("b=c".into()))));
        assert_eq!(metadata("k="), Ok(("k".into(), String::new())));
        let said = header("secret").unwrap_err();
        assert!(!said.contains("secret"), "{said}");
        assert!(metadata("=x").is_err());
    }

    #[test]
    fn objectives_may_be_zero() {
        assert_eq!(objective("tpot:0"), Ok(Slo { metric: SloMetric::Tpot, limit_ms: 0.0 }));
        for text in ["ttft", "ttft:-1", "ttft:x", "itl:5", "ttft:1:2", "ttft:inf"] {
            assert!(objective(text).is_err(), "{text}");
        }
    }
}
