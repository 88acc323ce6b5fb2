//! Errors that servers put into a reply with status 200, in all the shapes seen.

use serde_json::{Map, Value};
use servebench_core::{Failure, FailureKind};

/// The failure that a frame reports, if it reports one.
///
/// Shapes: `{"error": {"message": …}}`, `{"error": "…"}`, `{"object": "error", "message": …}`, and
/// `{"message": …}` with a `code`, `type` or `status` but nothing of a reply. An `error` that is null,
/// false or empty is none.
pub(crate) fn in_frame(value: &Value) -> Option<Failure> {
    let frame = value.as_object()?;
    if let Some(error) = frame.get("error").filter(|error| is_error(error)) {
        let message = match error {
            Value::Object(error) => described(error),
            Value::String(error) => with_labels(error, frame, &["error_type", "code"]),
            other => other.to_string(),
        };
        return Some(Failure::new(FailureKind::Server, message));
    }
    let is_named = frame.get("object").is_some_and(|object| object == "error");
    let holds = |keys: &[&str]| keys.iter().any(|key| frame.contains_key(*key));
    let is_told = frame.get("message").is_some_and(Value::is_string)
        && holds(&["code", "type", "status"])
        && !holds(&["choices", "text", "meta_info", "usage"]);
    (is_named || is_told).then(|| Failure::new(FailureKind::Server, described(frame)))
}

/// The failure that an event named `error` reports, whatever its data are.
pub(crate) fn in_event(data: &[u8]) -> Failure {
    let told = crate::json::value(data).ok().and_then(|value| {
        in_frame(&value).or_else(|| {
            let message = described(value.as_object()?);
            Some(Failure::new(FailureKind::Server, message))
        })
    });
    told.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(data);
        let text = text.trim();
        let message = if text.is_empty() { "an error event without a message" } else { text };
        Failure::new(FailureKind::Server, message)
    })
}

fn is_error(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

/// An error object's message with its type and code; all of it where it has no message.
fn described(error: &Map<String, Value>) -> String {
    match error.get("message").and_then(Value::as_str) {
        Some(message) => with_labels(message, error, &["type", "code"]),
        None => Value::Object(error.clone()).to_string(),
    }
}

fn with_labels(message: &str, from: &Map<String, Value>, keys: &[&str]) -> String {
    let labels: Vec<String> = keys
        .iter()
        .filter_map(|key| match from.get(*key)? {
            Value::String(text) => Some(format!("{key} {text}")),
            Value::Number(number) => Some(format!("{key} {number}")),
            _ => None,
        })
        .collect();
    if labels.is_empty() {
        message.to_owned()
    } else {
        format!("{message} ({})", labels.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn detail(frame: &Value) -> Option<String> {
        in_frame(frame).map(|failure| failure.detail.into())
    }

    #[test]
    fn every_shape_is_seen() {
        let cases = [
            (json!({"error": {"message": "m", "type": "T", "code": 503}}), "m (type T, code 503)"),
            (json!({"error": "m", "error_type": "validation"}), "m (error_type validation)"),
            (json!({"error": ["m"]}), "[\"m\"]"),
            (json!({"error": {"reason": "r"}}), "{\"reason\":\"r\"}"),
            (json!({"object": "error", "message": "m", "code": 400}), "m (code 400)"),
            (json!({"message": "m", "type": "T"}), "m (type T)"),
        ];
        for (frame, want) in cases {
            assert_eq!(detail(&frame).as_deref(), Some(want));
        }
    }

    #[test]
    fn what_is_no_error_is_none() {
        for frame in [
            json!({}),
            json!({"error": null}),
            json!({"error": false, "choices": []}),
            json!({"error": ""}),
            json!({"error": {}}),
            json!({"message": "warming up"}),
            json!({"message": "m", "type": "T", "choices": []}),
            json!({"object": "chat.completion.chunk", "choices": []}),
            json!(["error"]),
        ] {
            assert_eq!(detail(&frame), None, "{frame}");
        }
    }

    #[test]
    fn an_error_event_always_has_a_message() {
        let detail = |data: &[u8]| String::from(in_event(data).detail);
        assert_eq!(detail(br#"{"message":"late"}"#), "late");
        assert_eq!(detail(br#"{"error":{"message":"late"}}"#), "late");
        assert_eq!(detail(b" worker died "), "worker died");
        assert_eq!(detail(b""), "an error event without a message");
        assert_eq!(detail(b"{}"), "{}");
    }
}
