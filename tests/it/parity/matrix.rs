//! Every data set on every backend that the Python tool can run it on: bodies, counts, keys.

use super::capture::{Answer, Call};
use super::golden::{cases, check_each, rerun};
use super::payloads;
use serde_json::{Value, json};
use servebench_cli::Code;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

#[test]
fn every_data_set_on_every_backend_is_the_python_tools() {
    let cases = cases("matrix");
    let compared = AtomicUsize::new(0);
    check_each(&cases, |case| {
        let run = rerun(case, &case.arguments(), |call, _| answer(call));
        if !matches!(run.ended, Ok(Code::Done)) {
            return vec![format!("{:?}", run.ended)];
        }
        let sent: Vec<&Call> = run.calls.iter().filter(|call| is_measured(call)).collect();
        let recorded = case.rows("sent");
        if sent.len() != recorded.len() {
            return vec![format!("{} bodies, not {}", sent.len(), recorded.len())];
        }
        compared.fetch_add(sent.len(), SeqCst);
        let mut wrong = Vec::new();
        for (call, recorded) in sent.iter().zip(recorded) {
            let body = as_recorded(call.body.clone().unwrap_or_default());
            if call.path != recorded["path"] || body != recorded["body"] {
                wrong.push(format!("{} {body} is not {recorded}", call.path));
            }
        }
        // Where no server counts, the Python tool takes the number asked for, and we count the text.
        let is_counted =
            |key: &str| key != "total_output_tokens" || case.value("--backend") != Some("trt");
        for (key, count) in case.get("counts").as_object().into_iter().flatten() {
            if is_counted(key) && run.line[key] != *count {
                wrong.push(format!("{key}: {} is not {count}", run.line[key]));
            }
        }
        let missing = case.rows("keys").iter().filter_map(Value::as_str);
        let missing: Vec<_> = missing.filter(|key| run.line.get(key).is_none()).collect();
        if !missing.is_empty() {
            wrong.push(format!("no {missing:?}"));
        }
        wrong
    });
    assert_eq!((cases.len(), compared.into_inner()), (88, 273));
}

/// Our body as the Python tool would send it.
fn as_recorded(mut body: Value) -> Value {
    // Usage is asked for on OpenAI routes, which is a difference that is meant.
    body.as_object_mut().and_then(|body| body.shift_remove("stream_options"));
    body
}

fn is_measured(call: &Call) -> bool {
    let ends = ["/generate", "completions", "embeddings", "generate_stream", ":predict"];
    ends.iter().any(|end| call.path.ends_with(end))
}

/// A server of every kind that counts what it makes: as many tokens as are asked for.
fn answer(call: &Call) -> Answer {
    let body = call.body.as_ref().unwrap_or(&Value::Null);
    let limits = [&body["max_tokens"], &body["max_completion_tokens"]];
    let usage = json!({"completion_tokens": limits.into_iter().find_map(Value::as_u64)});
    let choice = json!({"index": 0, "finish_reason": "length", "text": "words"});
    match call.path.as_str() {
        path if path.ends_with("embeddings") => {
            Answer::json(&json!({"data": [{"index": 0, "embedding": [0.5]}]}))
        }
        path if path.ends_with("generate_stream") => {
            Answer::events(&[json!({"model_name": "ensemble", "text_output": "words"})])
        }
        path if path.ends_with("chat/completions") => {
            let choice =
                json!({"index": 0, "finish_reason": "length", "delta": {"content": "words"}});
            Answer::events(&[json!({"choices": [choice], "usage": usage})])
        }
        path if path.ends_with("completions") || path.ends_with(":predict") => {
            Answer::events(&[json!({"choices": [choice], "usage": usage})])
        }
        _ => payloads::answer(call),
    }
}
