//! Result line and table of every recorded run, made from the recorded replies.

use super::capture::{Answer, Call, is_generation};
use super::differences::{Applies, Shown};
use super::golden::{Case, Rerun, cases, check_each, rerun};
use super::payloads;
use super::rewrites::same;
use serde_json::{Map, Value, json};
use servebench_cli::Code;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Counts that depend on how requests fall into the seconds of the run.
const BY_THE_SECOND: [&str; 2] = ["max_output_tokens_per_s", "max_concurrent_requests"];

/// The replies of a recorded run, by their requests' bodies.
fn replay(case: &Case) -> impl Fn(&Call, usize) -> Answer + use<> {
    let exchanges = case.rows("exchanges").to_vec();
    let server_info = case.get("line")["server_info"].clone();
    move |call, before| match (is_generation(call), &*call.path) {
        // The warm-up has a prompt of its own, so that only its place tells it.
        (true, _) if before == 0 => recorded(&exchanges[0]["reply"]),
        (true, _) => {
            let body = comparable(call);
            let exchange = exchanges[1..].iter().find(|exchange| exchange["body"] == body);
            exchange.map_or_else(
                || Answer::text(400, "nobody asked for this"),
                |exchange| recorded(&exchange["reply"]),
            )
        }
        (_, "/server_info") => Answer::json(&server_info),
        _ => payloads::answer(call),
    }
}

pub(super) fn recorded(reply: &Value) -> Answer {
    let writes = reply["writes"].as_array().into_iter().flatten();
    Answer {
        status: reply["status"].as_u64().expect("a status") as u16,
        kind: reply["type"].as_str().expect("a type").to_owned(),
        writes: writes.filter_map(Value::as_str).map(str::to_owned).collect(),
    }
}

/// The body as the Python tool would send it.
fn comparable(call: &Call) -> Value {
    let mut body = call.body.clone().unwrap_or_default();
    if let Some(body) = body.as_object_mut() {
        body.remove("stream_options");
    }
    body
}

#[test]
fn the_same_replies_give_the_same_result() {
    let cases = cases("results");
    let (shown, values, rows) = (Shown::none(), AtomicUsize::new(0), AtomicUsize::new(0));
    check_each(&cases, |case| {
        let run = rerun(case, &case.arguments(), replay(case));
        if !matches!(run.ended, Ok(Code::Done)) {
            return vec![format!("{:?}", run.ended)];
        }
        let mut wrong = Vec::new();
        wrong.extend(wrong_requests(case, &run.calls));
        wrong.extend(wrong_keys(case, &run.line));
        wrong.extend(wrong_values(case, &run.line, &shown, &values));
        wrong.extend(wrong_labels(case, &run, &rows));
        wrong
    });
    shown.expect_all(|kind| matches!(kind, Applies::Value(_)));
    assert_eq!(cases.len(), 41);
    let recorded: usize = cases.iter().map(|case| case.rows("keys").len()).sum();
    assert_eq!(values.into_inner(), recorded, "values");
    let (rows, tables) =
        (rows.into_inner(), cases.iter().filter(|case| !case.get("console").is_null()));
    let tables = tables.count();
    assert!(tables > 10 && rows > 30 * tables, "{rows} rows of {tables} tables");
}

/// Every recorded request was sent, and no other.
fn wrong_requests(case: &Case, calls: &[Call]) -> Option<String> {
    let generations = calls.iter().filter(|call| is_generation(call)).skip(1);
    let mut ours: Vec<_> = generations.map(|call| sorted(&comparable(call)).to_string()).collect();
    let exchanges = case.rows("exchanges").iter().skip(1);
    let mut recorded: Vec<_> = exchanges.map(|it| sorted(&it["body"]).to_string()).collect();
    ours.sort();
    recorded.sort();
    (ours != recorded).then(|| format!("sent {ours:#?}, not {recorded:#?}"))
}

/// The value with the keys of its objects in alphabetical order.
fn sorted(value: &Value) -> Value {
    let Value::Object(map) = value else { return value.clone() };
    let mut pairs: Vec<_> = map.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    Value::Object(Map::from_iter(pairs))
}

/// All recorded keys are there, in the recorded order; ours stand between them.
fn wrong_keys(case: &Case, line: &Value) -> Option<String> {
    let keys = line.as_object().into_iter().flatten().map(|(key, _)| json!(key));
    let shared: Vec<Value> = keys.filter(|key| case.rows("keys").contains(key)).collect();
    (shared != case.rows("keys")).then(|| format!("keys {shared:?}"))
}

fn wrong_values(case: &Case, line: &Value, shown: &Shown, compared: &AtomicUsize) -> Vec<String> {
    let recorded = case.get("line").as_object().expect("an object");
    compared.fetch_add(recorded.len(), SeqCst);
    let differ = recorded.iter().filter(|(key, recorded)| {
        let by_the_second = BY_THE_SECOND.contains(&&***key) && line[&**key].is_number();
        !same(recorded, &line[&**key])
            && !by_the_second
            && !shown.is_meant(case, key, recorded, line)
    });
    let differ = differ.map(|(key, recorded)| format!("{key}: {} is not {recorded}", line[key]));
    // Where there is a twin, it is the recorded value, whatever stands under the key itself.
    let twins = recorded.iter().filter_map(|(key, recorded)| {
        let twin = line.get(format!("upstream_{key}"))?;
        let right = same(recorded, twin) || BY_THE_SECOND.contains(&&**key);
        (!right).then(|| format!("upstream_{key}: {twin} is not {recorded}"))
    });
    differ.chain(twins).collect()
}

/// The table has the recorded rows in the recorded order, and sometimes a section of our own before its last row.
fn wrong_labels(case: &Case, run: &Rerun, compared: &AtomicUsize) -> Option<String> {
    let recorded = labels(case.rows("console").iter().filter_map(Value::as_str));
    let mut ours = labels(run.printed.lines());
    if let Some(own) = ours.iter().position(|label| label == "Client") {
        ours.drain(own..ours.len() - 1);
    }
    compared.fetch_add(recorded.len(), SeqCst);
    let wrong = ours.len() < 30 || (!recorded.is_empty() && recorded != ours);
    wrong.then(|| format!("table {ours:#?}, not {recorded:#?}"))
}

/// The labels of a table: what stands before the colon, or between the dashes.
fn labels<'a>(rows: impl Iterator<Item = &'a str>) -> Vec<String> {
    let table = rows.skip_while(|row| !row.contains(" Serving Benchmark Result "));
    table
        .map(|row| row.split(':').next().unwrap_or_default().trim_matches('-').to_owned())
        .collect()
}
