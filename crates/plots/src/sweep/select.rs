//! Which runs are drawn, and in which classes: `--filter-by` and `--bin-by`.

use crate::PlotError;
use crate::rows::{Cell, Row, require};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::str::FromStr;

/// How a variable is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
    /// `<`
    Below,
    /// `>`
    Above,
}

/// In the order in which they are looked for: no operator hides in one before it.
const OPERATORS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("<", Comparison::Below),
    (">", Comparison::Above),
];

/// Keeps the runs of which `key OP value` is true.
///
/// Equality compares numbers when the value is one, truths when it is `true` or `false` and the
/// run's value is a truth, else texts. The other operators need numbers. A run without the variable
/// is kept by `!=` only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// The variable.
    pub key: String,
    /// How it is compared.
    pub comparison: Comparison,
    /// With what, as it was written.
    pub value: String,
}

impl FromStr for Filter {
    type Err = PlotError;

    /// Spaces around both sides and quotes around the value are left out; a value may hold further
    /// operators.
    fn from_str(text: &str) -> Result<Self, PlotError> {
        let wanted = "a filter such as `max_concurrency<=8` (==, !=, <=, >=, <, >)";
        let wrong = || PlotError::Expression { text: text.to_owned(), wanted };
        let found = OPERATORS.iter().find_map(|(sign, comparison)| {
            text.split_once(sign).map(|(key, value)| (key, *comparison, value))
        });
        let (key, comparison, value) = found.ok_or_else(wrong)?;
        let key = key.trim();
        let value = value.trim().trim_matches('\'').trim_matches('"').trim();
        let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        if key.is_empty() || (!equality && python_number(value).is_none()) {
            return Err(wrong());
        }
        Ok(Self { key: key.to_owned(), comparison, value: value.to_owned() })
    }
}

impl Filter {
    /// Filters divided by commas; none of an empty text.
    ///
    /// # Errors
    ///
    /// [`PlotError::Expression`] with the first that is not understood.
    pub fn list(text: &str) -> Result<Vec<Self>, PlotError> {
        if text.is_empty() { Ok(Vec::new()) } else { text.split(',').map(str::parse).collect() }
    }

    /// The runs that are kept.
    ///
    /// # Errors
    ///
    /// [`PlotError::Missing`] when no run has the variable, [`PlotError::NotANumber`] when order is
    /// asked of a text.
    pub fn apply<'a>(&self, rows: Vec<&'a Row>) -> Result<Vec<&'a Row>, PlotError> {
        if rows.is_empty() {
            return Ok(rows);
        }
        require(&rows, &self.key)?;
        let mut kept = Vec::with_capacity(rows.len());
        for (run, row) in rows.into_iter().enumerate() {
            if self.keeps(run, row)? {
                kept.push(row);
            }
        }
        Ok(kept)
    }

    fn keeps(&self, run: usize, row: &Row) -> Result<bool, PlotError> {
        let cell = Cell::of(row.get(&self.key));
        let number = python_number(&self.value);
        match self.comparison {
            Comparison::Equal => return Ok(self.equals(&cell, number)),
            Comparison::NotEqual => return Ok(!self.equals(&cell, number)),
            _ => {}
        }
        let (here, limit) = match (&cell, number) {
            (Cell::Missing, _) | (_, None) => return Ok(false),
            (cell, Some(limit)) => (cell.number(), limit),
        };
        let here = here.ok_or_else(|| PlotError::NotANumber {
            key: self.key.clone(),
            run,
            found: row.get(&self.key).map(Value::to_string).unwrap_or_default(),
        })?;
        Ok(match self.comparison {
            Comparison::AtMost => here <= limit,
            Comparison::AtLeast => here >= limit,
            Comparison::Below => here < limit,
            _ => here > limit,
        })
    }

    fn equals(&self, cell: &Cell, number: Option<f64>) -> bool {
        match cell {
            Cell::Missing => false,
            Cell::Truth(truth) => match self.value.to_ascii_lowercase().as_str() {
                "true" => *truth,
                "false" => !truth,
                _ => number.is_some() && cell.number() == number,
            },
            Cell::Number(here) => Some(*here) == number,
            // A number is never equal to a text, even to one that looks the same.
            Cell::Text(here) => number.is_none() && *here == self.value,
        }
    }
}

/// Moves a variable down to a multiple of `size`: `key%size`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bin {
    /// The variable.
    pub key: String,
    /// The distance between two classes; not 0.
    pub size: f64,
}

impl FromStr for Bin {
    type Err = PlotError;

    fn from_str(text: &str) -> Result<Self, PlotError> {
        let wanted = "a bin such as `request_rate%5`";
        let wrong = || PlotError::Expression { text: text.to_owned(), wanted };
        let (key, size) = text.split_once('%').ok_or_else(wrong)?;
        let size = size.trim().trim_matches('\'').trim_matches('"');
        let size = python_number(size).ok_or_else(wrong)?;
        let key = key.trim();
        if key.is_empty() || !size.is_normal() {
            return Err(wrong());
        }
        Ok(Self { key: key.to_owned(), size })
    }
}

impl Bin {
    /// Bins divided by commas; none of an empty text.
    ///
    /// # Errors
    ///
    /// [`PlotError::Expression`] with the first that is not understood.
    pub fn list(text: &str) -> Result<Vec<Self>, PlotError> {
        if text.is_empty() { Ok(Vec::new()) } else { text.split(',').map(str::parse).collect() }
    }

    /// Changes the variable in all rows; what is missing stays missing.
    ///
    /// # Errors
    ///
    /// [`PlotError::Missing`] when no run has the variable, [`PlotError::NotANumber`] where it is a
    /// text.
    pub fn apply(&self, rows: &mut [Row]) -> Result<(), PlotError> {
        if rows.is_empty() {
            return Ok(());
        }
        require(&rows.iter().collect::<Vec<_>>(), &self.key)?;
        for (run, row) in rows.iter_mut().enumerate() {
            let Some(value) = row.get_mut(&self.key) else { continue };
            match Cell::of(Some(value)) {
                Cell::Missing => {}
                cell => {
                    let number = cell.number().ok_or_else(|| PlotError::NotANumber {
                        key: self.key.clone(),
                        run,
                        found: value.to_string(),
                    })?;
                    // Null of what is not finite.
                    *value = Value::from(floor_division(number, self.size) * self.size);
                }
            }
        }
        Ok(())
    }
}

/// Python's `//`: exact where the quotient's rounding would step over a multiple (`1 // 0.1` is 9).
fn floor_division(number: f64, size: f64) -> f64 {
    let rest = number % size;
    let mut quotient = (number - rest) / size;
    if rest != 0.0 && (size < 0.0) != (rest < 0.0) {
        quotient -= 1.0;
    }
    let floor = quotient.floor();
    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
}

/// What Python's `float` reads; more forms than these nobody writes in a filter.
fn python_number(text: &str) -> Option<f64> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rows() -> Vec<Row> {
        let runs = json!([
            {"c": 1, "name": "a", "on": true, "rate": "inf"},
            {"c": 4.0, "name": "b", "on": false, "rate": 2},
            {"name": "1"},
        ]);
        serde_json::from_value(runs).unwrap()
    }

    fn kept(filter: &str) -> Result<Vec<usize>, PlotError> {
        let rows = rows();
        let mut left: Vec<&Row> = rows.iter().collect();
        for filter in Filter::list(filter)? {
            left = filter.apply(left)?;
        }
        let place = |kept: &&Row| rows.iter().position(|row| std::ptr::eq(row, *kept)).unwrap();
        Ok(left.iter().map(place).collect())
    }

    #[test]
    fn filters_keep_what_they_say() {
        for (filter, wanted) in [
            ("", vec![0, 1, 2]),
            ("c==1", vec![0]),
            ("c == 1.0", vec![0]),
            ("c!=1", vec![1, 2]),
            ("c<=4", vec![0, 1]),
            ("c<4", vec![0]),
            ("c>1,c>=4", vec![1]),
            ("name=='a'", vec![0]),
            ("name==\"b\"", vec![1]),
            ("name==1", vec![]),
            ("on==true", vec![0]),
            ("on==False", vec![1]),
            ("on==1", vec![0]),
            ("rate==inf", vec![0]),
            ("rate<inf", vec![1]),
        ] {
            assert_eq!(kept(filter), Ok(wanted), "{filter}");
        }
    }

    #[test]
    fn only_the_first_operator_divides() {
        let filter: Filter = "name==a==b<c".parse().unwrap();
        assert_eq!((filter.key.as_str(), filter.value.as_str()), ("name", "a==b<c"));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in ["c", "c<x", "==1", ",", "c=1"] {
            assert!(matches!(Filter::list(text), Err(PlotError::Expression { .. })), "{text}");
        }
        for text in ["c", "c%", "c%0", "c%nan", "c%inf", "%2"] {
            assert!(matches!(Bin::list(text), Err(PlotError::Expression { .. })), "{text}");
        }
        assert!(matches!(kept("d==1"), Err(PlotError::Missing { .. })));
        assert!(matches!(kept("name<2"), Err(PlotError::NotANumber { run: 0, .. })));
    }

    #[test]
    fn bins_are_pythons_multiples() {
        // CPython: 7 // 5, -1 // 5, 1 // 0.1, 0.3 // 0.1, 7.0 // 7.0
        for (number, size, wanted) in
            [(7.0, 5.0, 1.0), (-1.0, 5.0, -1.0), (1.0, 0.1, 9.0), (0.3, 0.1, 2.0), (7.0, 7.0, 1.0)]
        {
            let quotient = floor_division(number, size);
            assert_eq!(Some(quotient), Some(wanted), "{number} // {size}");
        }
        let mut rows = rows();
        "c % 3".parse::<Bin>().unwrap().apply(&mut rows).unwrap();
        assert_eq!(
            rows.iter().map(|row| row.get("c").cloned()).collect::<Vec<_>>(),
            [Some(json!(0.0)), Some(json!(3.0)), None]
        );
        assert!(matches!(
            "name%2".parse::<Bin>().unwrap().apply(&mut rows),
            Err(PlotError::NotANumber { .. })
        ));
    }
}
