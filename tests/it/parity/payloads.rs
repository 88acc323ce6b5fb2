//! Every call of every recorded run.

use super::capture::{Answer, Call, is_generation};
use super::differences::{Applies, Shown};
use super::golden::{Case, cases, check_each, rerun};
use crate::support::root;
use serde_json::{Value, json};
use servebench_cli::Code;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A server of every kind at once: it answers as the route asks for.
pub(super) fn answer(call: &Call) -> Answer {
    let path = call.path.split('?').next().unwrap_or_default();
    let tokenizer = root().join("tests/fixtures/tokenizers/tiny-llama");
    match path {
        "/v1/models" => Answer::json(&json!({"object": "list", "data": [{"id": "served-tiny"}]})),
        "/model_info" => Answer::json(&json!({"tokenizer_path": tokenizer})),
        "/server_info" => Answer::json(&json!({"internal_states": [{}], "version": "capture"})),
        "/flush_cache" | "/reset_prefix_cache" | "/start_profile" | "/stop_profile" => {
            Answer::text(200, "done\n")
        }
        _ if is_generation(call) => generate(path, call.body.as_ref().unwrap_or(&Value::Null)),
        _ => Answer::text(404, "no such route\n"),
    }
}

/// As many tokens as are asked for, in one piece, one token at least.
fn generate(path: &str, body: &Value) -> Answer {
    let limits = [&body["max_tokens"], &body["max_completion_tokens"]];
    let limit = limits.into_iter().find_map(Value::as_u64);
    let count = limit.or_else(|| body.pointer("/sampling_params/max_new_tokens")?.as_u64());
    let (count, text) = (count.unwrap_or(1).max(1), "some words");
    let stream = body["stream"] == true;
    let reply = if path == "/generate" {
        let meta = json!({"finish_reason": {"type": "length"}, "completion_tokens": count});
        json!({"text": text, "meta_info": meta})
    } else {
        let mut choice = json!({"index": 0, "finish_reason": "length"});
        match (path, stream) {
            ("/v1/chat/completions", true) => choice["delta"] = json!({"content": text}),
            ("/v1/chat/completions", false) => choice["message"] = json!({"content": text}),
            _ => choice["text"] = json!(text),
        }
        json!({"choices": [choice]})
    };
    if stream { Answer::events(&[reply]) } else { Answer::json(&reply) }
}

#[test]
fn every_call_is_the_python_tools() {
    let cases = cases("payloads");
    let (shown, compared) = (Shown::none(), AtomicUsize::new(0));
    check_each(&cases, |case| {
        let run = rerun(case, &shown.arguments(case), |call, _| answer(call));
        if !matches!(run.ended, Ok(Code::Done)) {
            return vec![format!("{:?}", run.ended)];
        }
        let generations = run.calls.iter().filter(|call| is_generation(call)).count();
        compared.fetch_add(generations, SeqCst);
        shown.calls(case, run.calls)
    });
    shown.expect_all(|kind| matches!(kind, Applies::Arguments(_) | Applies::Calls(_)));
    let backends: BTreeSet<_> = cases.iter().filter_map(|case| case.value("--backend")).collect();
    assert_eq!((cases.len(), backends.len()), (212, 8), "{backends:?}");
    let recorded = cases.iter().flat_map(Case::calls).filter(is_generation).count();
    assert_eq!(compared.into_inner(), recorded, "generation requests");
}

#[test]
fn header_items_that_the_python_tool_drops_are_refused() {
    let cases = cases("payloads");
    let mut refused = 0;
    for case in cases.iter().filter(|case| case.has("--header")) {
        let broken = Shown::none().arguments(case) != case.arguments();
        if broken {
            let run = rerun(case, &case.arguments(), |call, _| answer(call));
            let said = run.ended.expect_err("a usage error");
            assert!(said.contains("expected Key=Value"), "{said}");
            assert!(run.calls.is_empty(), "{:?}", run.calls);
            refused += 1;
        }
    }
    assert_eq!(refused, 8, "one a backend");
}
