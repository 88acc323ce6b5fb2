//! The result line's schema, from the table that writes it.

use crate::columns::{COLUMNS, KeyDoc, Presence};
use serde_json::{Map, Value, json};

/// Every key the result line may have, in the order in which they are written.
pub fn keys() -> impl Iterator<Item = &'static KeyDoc> {
    COLUMNS.iter().map(|column| &column.doc)
}

/// A JSON Schema (draft 2020-12) of the result line.
///
/// Keys beyond it may follow: [`RunInfo::extra`](crate::RunInfo::extra), and keys of later versions.
pub fn schema() -> Value {
    let mut properties = Map::new();
    for key in keys() {
        let mut value = json!({"type": key.types});
        if key.is_per_request() {
            value = json!({"type": "array", "items": value});
        }
        let unit = if key.unit.is_empty() { String::new() } else { format!(" [{}]", key.unit) };
        value["description"] = json!(format!("{}{unit}", key.doc));
        properties.insert(key.key.to_string(), value);
    }
    let required: Vec<_> =
        keys().filter(|key| key.presence == Presence::Always).map(|key| key.key.clone()).collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "servebench result line",
        "type": "object",
        "properties": properties,
        "required": required,
    })
}
