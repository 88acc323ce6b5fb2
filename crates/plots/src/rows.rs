//! Runs as rows of variables, and values as the Python tool reads and writes them.

use crate::PlotError;
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// One run: the object of a summary file.
pub type Row = Map<String, Value>;

/// A value as it is compared and drawn.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    /// Not there, or null.
    Missing,
    Truth(bool),
    Number(f64),
    Text(String),
}

impl Cell {
    /// The texts `inf`, `-inf` and `nan` are numbers; lists and objects are their JSON text.
    pub(crate) fn of(value: Option<&Value>) -> Self {
        match value {
            None | Some(Value::Null) => Self::Missing,
            Some(Value::Bool(truth)) => Self::Truth(*truth),
            Some(Value::Number(number)) => Self::Number(number.as_f64().unwrap_or(f64::NAN)),
            Some(Value::String(text)) => match text.as_str() {
                "inf" => Self::Number(f64::INFINITY),
                "-inf" => Self::Number(f64::NEG_INFINITY),
                "nan" => Self::Number(f64::NAN),
                _ => Self::Text(text.clone()),
            },
            Some(other) => Self::Text(other.to_string()),
        }
    }

    /// The number it is or stands for; truths are 1 and 0.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Truth(truth) => Some(f64::from(u8::from(*truth))),
            Self::Missing | Self::Text(_) => None,
        }
    }

    /// A total order: missing, truths, numbers, texts.
    pub(crate) fn order(&self, other: &Self) -> Ordering {
        let rank = |cell: &Self| match cell {
            Self::Missing => 0,
            Self::Truth(_) => 1,
            Self::Number(_) => 2,
            Self::Text(_) => 3,
        };
        match (self, other) {
            (Self::Truth(one), Self::Truth(two)) => one.cmp(two),
            (Self::Number(one), Self::Number(two)) => one.total_cmp(two),
            (Self::Text(one), Self::Text(two)) => one.cmp(two),
            _ => rank(self).cmp(&rank(other)),
        }
    }
}

/// A value as Python's `str` writes it; of lists and objects the JSON text.
pub(crate) fn python_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "None".to_owned(),
        Some(Value::Bool(true)) => "True".to_owned(),
        Some(Value::Bool(false)) => "False".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if number.is_f64() => {
            python_float(number.as_f64().unwrap_or(f64::NAN))
        }
        Some(other) => other.to_string(),
    }
}

/// A double as Python writes it: the shortest digits, an exponent below 1e-4 and from 1e16 on.
pub(crate) fn python_float(number: f64) -> String {
    let size = number.abs();
    if number.is_nan() {
        "nan".to_owned()
    } else if number.is_infinite() {
        if number > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{number:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = match exponent.strip_prefix('-') {
            Some(exponent) => ('-', exponent),
            None => ('+', exponent),
        };
        format!("{digits}e{sign}{exponent:0>2}")
    } else {
        format!("{number:?}")
    }
}

/// Fails unless some row has the variable.
pub(crate) fn require(rows: &[&Row], key: &str) -> Result<(), PlotError> {
    if rows.iter().any(|row| row.contains_key(key)) {
        return Ok(());
    }
    let known: BTreeSet<&str> =
        rows.iter().flat_map(|row| row.keys()).map(String::as_str).collect();
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Err(PlotError::Missing { key: key.to_owned(), known })
}

/// A file name of these parts without slashes, parent folders and outer quotes.
pub(crate) fn file_stem(parts: &[String]) -> String {
    let joined = parts.join("-").replace('/', "_").replace("..", "__");
    joined.trim_matches(['\'', '"']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_written_as_python_does() {
        // str() of CPython 3.11.
        for (number, wanted) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1.5e-5, "1.5e-05"),
            (1e15, "1000000000000000.0"),
            (-2.5e200, "-2.5e+200"),
            (f64::INFINITY, "inf"),
            (0.0, "0.0"),
        ] {
            assert_eq!(python_float(number), wanted);
        }
        let texts = [json!(null), json!(true), json!(3), json!(3.0), json!("x")];
        let written = texts.each_ref().map(|value| python_text(Some(value)));
        assert_eq!(written, ["None", "True", "3", "3.0", "x"]);
    }

    #[test]
    fn some_texts_are_numbers() {
        assert_eq!(Cell::of(Some(&json!("inf"))), Cell::Number(f64::INFINITY));
        assert_eq!(Cell::of(Some(&json!("12"))), Cell::Text("12".into()));
        assert_eq!(Cell::of(None), Cell::Missing);
    }

    #[test]
    fn file_names_stay_in_their_folder() {
        let parts = ["FIGURE", "model=a/../b"].map(str::to_owned);
        assert_eq!(file_stem(&parts), "FIGURE-model=a___".to_owned() + "_b");
    }
}
