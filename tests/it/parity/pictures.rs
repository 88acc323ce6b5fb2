//! Pictures in request bodies, and what table and result line say of their tokens.

use super::capture::{Call, is_generation};
use super::golden::{cases, check_each, rerun};
use super::payloads::answer;
use serde_json::{Value, json};
use servebench_cli::Code;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn pictures_are_sent_as_the_python_tool_sends_them() {
    let cases = cases("picture_payloads");
    let compared = AtomicUsize::new(0);
    check_each(&cases, |case| {
        let run = rerun(case, &case.arguments(), |call, _| answer(call));
        if !matches!(run.ended, Ok(Code::Done)) {
            return vec![format!("{:?}", run.ended)];
        }
        let sent: Vec<&Call> = run.calls.iter().filter(|call| is_generation(call)).collect();
        let recorded = case.rows("bodies");
        if sent.len() != recorded.len() {
            return vec![format!("{} bodies, not {}", sent.len(), recorded.len())];
        }
        compared.fetch_add(sent.len(), SeqCst);
        let mut wrong = Vec::new();
        for (call, recorded) in sent.iter().zip(recorded) {
            let mut body = shown(call.body.as_ref().unwrap_or(&Value::Null));
            // Usage is asked for on OpenAI routes, which is a difference that is meant.
            body.as_object_mut().and_then(|body| body.shift_remove("stream_options"));
            let mut recorded = recorded.clone();
            without_pixels(&mut recorded);
            if body != recorded {
                wrong.push(format!("{body} is not {recorded}"));
            }
        }
        for key in ["total_input_tokens", "total_input_text_tokens", "total_input_vision_tokens"] {
            if run.line[key] != case.get("line")[key] {
                wrong.push(format!("{key}: {} is not {}", run.line[key], case.get("line")[key]));
            }
        }
        for row in case.rows("table").iter().filter_map(Value::as_str) {
            if !run.printed.lines().any(|line| line == row) {
                wrong.push(format!("no `{row}` in {}", run.printed));
            }
        }
        wrong
    });
    assert_eq!((cases.len(), compared.into_inner()), (10, 20));
}

/// The body with the head and the size of each picture in its place, as it was recorded.
fn shown(value: &Value) -> Value {
    match value {
        Value::String(text) => {
            match text.split_once(',').filter(|(head, _)| head.starts_with("data:image/")) {
                Some((head, _)) => json!({"head": head, "width": 30, "height": 20}),
                None => value.clone(),
            }
        }
        Value::Array(values) => values.iter().map(shown).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (key.clone(), shown(value))).collect()
        }
        other => other.clone(),
    }
}

/// What pixels there are is compared where pictures are made, not here.
fn without_pixels(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(without_pixels),
        Value::Object(fields) => {
            fields.shift_remove("rgb_sha256");
            fields.values_mut().for_each(without_pixels);
        }
        _ => {}
    }
}
