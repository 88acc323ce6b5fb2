//! Every row of every recorded dataset, as it is sent.

use super::capture::{Call, is_generation};
use super::differences::{Applies, Shown};
use super::golden::{Case, cases, check_each, rerun};
use super::payloads::answer;
use serde_json::Value;
use servebench_cli::Code;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// What a dataset's recording does not say: row after row, and the lengths into the result.
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

#[test]
fn every_row_is_the_python_tools() {
    let cases = cases("datasets");
    let (shown, compared) = (Shown::none(), AtomicUsize::new(0));
    check_each(&cases, |case| {
        let arguments = [case.arguments(), RUN.map(str::to_owned).to_vec()].concat();
        let run = rerun(case, &arguments, |call, _| answer(call));
        if !matches!(run.ended, Ok(Code::Done)) {
            return vec![format!("{:?}", run.ended)];
        }
        let sent: Vec<Call> = run.calls.into_iter().filter(is_generation).collect();
        let rows = case.rows("rows");
        if sent.len() != rows.len() {
            return vec![format!("{} rows, not {}", sent.len(), rows.len())];
        }
        compared.fetch_add(rows.len(), SeqCst);
        let lens = run.line["input_lens"].as_array().into_iter().flatten();
        let pairs = rows.iter().zip(&sent).zip(lens);
        let wrong = pairs.filter_map(|((row, call), len)| wrong_row(case, &shown, row, call, len));
        wrong.chain(wrong_sum(case, &run.line)).collect()
    });
    shown.expect_all(|kind| matches!(kind, Applies::Prompt(_)));
    let seeds: BTreeSet<_> = cases.iter().filter_map(|case| case.value("--seed")).collect();
    let names: BTreeSet<_> = cases.iter().filter_map(|case| case.value("--dataset-name")).collect();
    assert_eq!((cases.len(), seeds.len(), names.len()), (146, 3, 4), "{seeds:?} {names:?}");
    let recorded: usize = cases.iter().map(|case| case.rows("rows").len()).sum();
    assert_eq!(compared.into_inner(), recorded, "rows");
}

/// A row that was not sent as recorded.
fn wrong_row(case: &Case, shown: &Shown, row: &Value, call: &Call, len: &Value) -> Option<String> {
    let body = call.body.as_ref()?;
    let mut prompt = body.get("text").or(body.get("input_ids")).cloned().unwrap_or_default();
    // A prompt that differs as meant has a length of its own, and so has decoded text: what is
    // recorded of it is the length asked for, whose sum is compared.
    let decoded = prompt.is_string()
        && case.value("--dataset-name").is_some_and(|name| name.starts_with("random"));
    let other_length = shown.prompt(case, &mut prompt) || decoded;
    let output_len = &body["sampling_params"]["max_new_tokens"];
    let right = prompt == row["prompt"]
        && (other_length || *len == row["prompt_len"])
        && *output_len == row["output_len"];
    (!right).then(|| format!("{prompt} with {len} and {output_len} tokens is not {row}"))
}

/// The sum that the Python tool prints is that of the result, unless prompts differ as meant.
fn wrong_sum(case: &Case, line: &Value) -> Option<String> {
    let recorded: u64 = case.rows("rows").iter().filter_map(|row| row["prompt_len"].as_u64()).sum();
    let printed = format!("#Input tokens: {recorded}");
    let same = line["total_input_tokens"] == recorded || case.has("--apply-chat-template");
    (!same || !case.rows("printed").contains(&Value::from(&*printed)))
        .then(|| format!("{} tokens are not {:?}", line["total_input_tokens"], case.get("printed")))
}
