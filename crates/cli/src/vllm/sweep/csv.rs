//! The table of all runs.

use super::words::python_text;
use serde_json::{Map, Value};

/// Runs as CSV: a column with their numbers from 0, then every variable in the order in which it is first
/// seen. Values are written as Python does; null and missing ones are empty.
pub(super) fn table(runs: &[Map<String, Value>]) -> String {
    let mut columns: Vec<&String> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for key in runs.iter().flat_map(Map::keys) {
        if seen.insert(key) {
            columns.push(key);
        }
    }
    let mut text = String::new();
    for column in &columns {
        text.push(',');
        text.push_str(&field(column));
    }
    text.push('\n');
    for (number, run) in runs.iter().enumerate() {
        text.push_str(&number.to_string());
        for column in &columns {
            text.push(',');
            let value = run.get(*column).filter(|value| !value.is_null());
            text.push_str(&value.map_or_else(String::new, |value| field(&python_text(value))));
        }
        text.push('\n');
    }
    text
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_those_of_all_runs() {
        let runs = [json!({"a": 1.0, "b": "x,\"y\""}), json!({"c": [1, 2], "a": null})];
        let runs = runs.map(|run| run.as_object().cloned().expect("an object"));
        assert_eq!(table(&runs), ",a,b,c\n0,1.0,\"x,\"\"y\"\"\",\n1,,,\"[1, 2]\"\n");
    }
}
