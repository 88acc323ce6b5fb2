//! The sets whose rows have more than a prompt, as they are sent: groups, traces, whole requests.

use super::capture::{Answer, Call, is_generation};
use super::golden::{Case, Rerun, cases, check_each, rerun};
use super::payloads::answer;
use super::results::recorded;
use serde_json::{Map, Value};
use servebench_cli::Code;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Row after row, and a result that is thrown away.
const RUN: [&str; 8] = [
    "--warmup-requests",
    "0",
    "--max-concurrency",
    "1",
    "--disable-tqdm",
    "--output-details",
    "--output-file",
    "{DIR}/result.jsonl",
];

/// Runs every case again and checks each call with its row. Gives the number of calls.
fn compare(cases: &[Case], check: impl Fn(&Case, &Rerun, &Call, &Value) -> bool + Sync) -> usize {
    let compared = AtomicUsize::new(0);
    check_each(cases, |case| {
        let arguments = [case.arguments(), RUN.map(str::to_owned).to_vec()].concat();
        let run = rerun(case, &arguments, |call, _| answer(call));
        if !matches!(run.ended, Ok(Code::Done)) {
            return vec![format!("{:?}", run.ended)];
        }
        let sent: Vec<&Call> = run.calls.iter().filter(|call| is_generation(call)).collect();
        let rows = case.rows("rows");
        if sent.len() < rows.len() {
            return vec![format!("{} calls for {} rows", sent.len(), rows.len())];
        }
        compared.fetch_add(rows.len(), SeqCst);
        let wrong = rows.iter().zip(sent).filter(|(row, call)| !check(case, &run, call, row));
        wrong.map(|(row, call)| format!("{:?} is not {row}", call.body)).collect()
    });
    compared.into_inner()
}

fn native(call: &Call, row: &Value) -> bool {
    let Some(body) = &call.body else { return false };
    let prompt = body.get("text").or(body.get("input_ids"));
    prompt == Some(&row["prompt"]) && body["sampling_params"]["max_new_tokens"] == row["output_len"]
}

#[test]
fn shared_prefixes_are_sent_as_the_python_tool_makes_them() {
    let cases: Vec<Case> =
        cases("prefixes").into_iter().filter(|case| !case.has("--gsp-num-turns")).collect();
    let rows = compare(&cases, |_, run, call, row| {
        let keys = run.calls.iter().filter_map(|call| call.headers.get("x-smg-routing-key"));
        let runs: BTreeSet<_> = keys.filter_map(|key| Some(key.rsplit_once('_')?.0)).collect();
        let group = call.headers.get("x-smg-routing-key").and_then(|key| key.rsplit('_').next());
        let recorded = row["group"].as_u64().map(|group| group.to_string());
        native(call, row) && group == recorded.as_deref() && runs.len() <= 1
    });
    assert_eq!((cases.len(), rows), (54, 54 * 12 + 3 * 16), "one case has 28 rows for each seed");
}

#[test]
fn a_trace_is_sent_as_the_python_tool_sends_it() {
    let cases = cases("traces");
    let rows = compare(&cases, |_, run, call, row| {
        native(call, row) && run.line["request_rate"] == "trace"
    });
    assert_eq!((cases.len(), rows), (7, 4 + 4 + 4 + 12 + 8 + 6 + 4));
}

#[test]
fn chat_requests_are_sent_with_their_own_fields() {
    let cases = cases("requests");
    let rows = compare(&cases, |_, _, call, row| {
        let Some(Value::Object(mut body)) = call.body.clone() else { return false };
        let own: Map<String, Value> =
            row["extra_request_body"].as_object().cloned().unwrap_or_default();
        let right = own.iter().all(|(key, value)| body.shift_remove(key).as_ref() == Some(value));
        let rest = [
            "model",
            "messages",
            "max_completion_tokens",
            "stream",
            "temperature",
            "ignore_eos",
            "stream_options",
        ];
        right
            && body["messages"] == row["prompt"]
            && body["max_completion_tokens"] == row["output_len"]
            && body.keys().all(|key| rest.contains(&key.as_str()))
    });
    assert_eq!((cases.len(), rows), (3, 4 + 7 + 7));
}

/// The replies of a recorded run, by the bodies of their requests.
fn replay(case: &Case) -> impl Fn(&Call, usize) -> Answer + use<> {
    let exchanges = case.rows("exchanges").to_vec();
    move |call, _| {
        let exchange =
            exchanges.iter().find(|exchange| Some(&exchange["body"]) == call.body.as_ref());
        match (is_generation(call), exchange) {
            (true, Some(exchange)) => recorded(&exchange["reply"]),
            (true, None) => Answer::text(400, "nobody asked for this"),
            _ => answer(call),
        }
    }
}

#[test]
fn conversations_hold_the_servers_own_replies_as_in_the_python_tool() {
    let cases = cases("turns");
    let compared = AtomicUsize::new(0);
    check_each(&cases, |case| {
        let run = rerun(case, &case.arguments(), replay(case));
        if !matches!(run.ended, Ok(Code::Done)) {
            return vec![format!("{:?}", run.ended)];
        }
        let sent: Vec<&Value> = run
            .calls
            .iter()
            .filter(|call| is_generation(call))
            .filter_map(|call| call.body.as_ref())
            .collect();
        let recorded: Vec<&Value> =
            case.rows("exchanges").iter().map(|exchange| &exchange["body"]).collect();
        compared.fetch_add(sent.len(), SeqCst);
        let mut wrong = Vec::new();
        if sent != recorded {
            wrong.push(format!("{sent:?} is not {recorded:?}"));
        }
        let line = case.get("line");
        let counted = case.get("server")["usage"] == true;
        // Where it does not, the Python tool takes the length asked for.
        let keys = ["completed", "generated_texts", "total_output_tokens", "output_lens"];
        for key in &keys[..if counted { 4 } else { 2 }] {
            if run.line[*key] != line[*key] {
                wrong.push(format!("{key}: {} is not {}", run.line[key], line[key]));
            }
        }
        // Where the server counts, its counts are in the details and, unlike upstream, in the sum.
        if counted {
            let lens = line["input_lens"].as_array().into_iter().flatten();
            let sum: u64 = lens.filter_map(Value::as_u64).sum();
            if run.line["input_lens"] != line["input_lens"] || run.line["total_input_tokens"] != sum
            {
                wrong.push(format!(
                    "{} and {}",
                    run.line["input_lens"], run.line["total_input_tokens"]
                ));
            }
        }
        let found = &run.line["conversations"];
        let turns = found["turns"].as_array().into_iter().flatten();
        let requests: u64 = turns.filter_map(|turn| turn["requests"].as_u64()).sum();
        let failed = u64::from(case.name().ends_with("failure"));
        if found["count"] != 4 || requests != sent.len() as u64 || found["completed"] != 4 - failed
        {
            wrong.push(format!("{found}"));
        }
        let numbers = run.line["turn_numbers"].as_array().map_or(0, Vec::len);
        if numbers != sent.len() {
            wrong.push(format!("{numbers} turn numbers"));
        }
        wrong
    });
    assert_eq!((cases.len(), compared.into_inner()), (9, 8 * 9 + 12));
}
