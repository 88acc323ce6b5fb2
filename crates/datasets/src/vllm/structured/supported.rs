//! Which JSON schemas vLLM 0.32 gives to xgrammar: others are refused by a server that uses it.

use serde_json::{Map, Value};

/// What a text may be said to be.
const FORMATS: [&str; 14] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "json-pointer",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
];

/// Whether xgrammar knows all that a schema says, at any depth.
pub(super) fn is_supported(schema: &Value) -> bool {
    // Without recursion: what is read may be deep.
    let mut rest: Vec<&Map<String, Value>> = schema.as_object().into_iter().collect();
    while let Some(part) = rest.pop() {
        if !is_part_supported(part) {
            return false;
        }
        for value in part.values() {
            match value {
                Value::Object(inner) => rest.push(inner),
                Value::Array(items) => rest.extend(items.iter().filter_map(Value::as_object)),
                _ => {}
            }
        }
    }
    true
}

fn is_part_supported(part: &Map<String, Value>) -> bool {
    let is = |kind: &str| match part.get("type") {
        Some(Value::String(name)) => name == kind,
        Some(Value::Array(names)) => names.iter().any(|name| name == kind),
        _ => false,
    };
    let has = |key: &str| part.contains_key(key);
    let number = !((is("integer") || is("number")) && has("multipleOf"));
    let array = !(is("array")
        && ["uniqueItems", "contains", "minContains", "maxContains"].into_iter().any(has));
    let format = part.get("format");
    let known = format.is_none_or(|format| FORMATS.iter().any(|known| format == known));
    let string = !is("string") || (known && !has_pattern_and_length(part));
    let object = !is("object") || (are_names_supported(part) && are_patterns_supported(part));
    let all_of = part.get("allOf").and_then(Value::as_array);
    number && array && string && object && all_of.is_none_or(|parts| parts.len() < 2)
}

fn has_pattern_and_length(part: &Map<String, Value>) -> bool {
    let has_any = |keys: [&str; 2]| keys.into_iter().any(|key| part.contains_key(key));
    has_any(["pattern", "format"]) && has_any(["minLength", "maxLength"])
}

fn are_names_supported(part: &Map<String, Value>) -> bool {
    let Some(names) = part.get("propertyNames") else { return true };
    let others =
        part.get("unevaluatedProperties").is_some_and(|others| *others != Value::Bool(true));
    let listed = ["patternProperties", "properties"].into_iter().any(|key| part.contains_key(key));
    !names.as_object().is_some_and(has_pattern_and_length) && !listed && !others
}

fn are_patterns_supported(part: &Map<String, Value>) -> bool {
    let patterns = part.get("patternProperties").and_then(Value::as_object);
    patterns.is_none_or(|patterns| patterns.len() <= 1 && !part.contains_key("properties"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn schemas_are_told_apart_as_in_python() {
        // has_xgrammar_unsupported_json_features of vLLM 0.32.0 says true of these,
        let refused = [
            json!({"type": "integer", "multipleOf": 3}),
            json!({"type": ["null", "number"], "multipleOf": 0.5}),
            json!({"type": "array", "uniqueItems": false}),
            json!({"type": "array", "contains": {}}),
            json!({"type": "string", "format": "iri"}),
            json!({"type": "string", "format": 7}),
            json!({"type": "string", "pattern": "a", "maxLength": 3}),
            json!({"type": "string", "format": "email", "minLength": 3}),
            json!({"type": "object", "propertyNames": {"pattern": "a", "minLength": 1}}),
            json!({"type": "object", "propertyNames": {}, "properties": {}}),
            json!({"type": "object", "propertyNames": {}, "patternProperties": {}}),
            json!({"type": "object", "propertyNames": {}, "unevaluatedProperties": false}),
            json!({"type": "object", "patternProperties": {"a": {}, "b": {}}}),
            json!({"type": "object", "patternProperties": {"a": {}}, "properties": {}}),
            json!({"allOf": [{}, {}]}),
            json!({"type": "object", "properties": {"x": {"anyOf": [1, {"type": "integer", "multipleOf": 2}]}}}),
        ];
        // and false of these.
        let known = [
            json!({"multipleOf": 3}),
            json!({"type": "array", "minItems": 1}),
            json!({"type": "string", "format": "date-time"}),
            json!({"type": "string", "maxLength": 3}),
            json!({"format": "iri", "maxLength": 3}),
            json!({"type": "object", "propertyNames": {"maxLength": 1}}),
            json!({"type": "object", "propertyNames": {}, "unevaluatedProperties": true}),
            json!({"type": "object", "patternProperties": {"a": {}}}),
            json!({"type": "object", "patternProperties": [], "properties": {}}),
            json!({"allOf": [{}]}),
            json!({"enum": [[{"type": "integer", "multipleOf": 2}]]}),
            json!("text"),
            json!(["array"]),
        ];
        for (schemas, want) in [(&refused[..], false), (&known[..], true)] {
            for schema in schemas {
                assert_eq!(is_supported(schema), want, "{schema}");
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_not_known_is_found_at_any_depth(depth in 0..60_usize, lists: bool) {
            let mut schema = json!({"type": "integer", "multipleOf": 2});
            let mut plain = json!({"type": "integer"});
            for _ in 0..depth {
                for schema in [&mut schema, &mut plain] {
                    let inner = schema.take();
                    *schema = if lists { json!({"anyOf": [inner]}) } else { json!({"items": inner}) };
                }
            }
            prop_assert!(!is_supported(&schema));
            prop_assert!(is_supported(&plain));
        }
    }
}
