//! The schedule of every recorded run, through the plan's hash: it covers each due time and each body.

use super::capture::{Call, is_generation};
use super::golden::{cases, check_all, rerun};
use super::payloads::answer;
use serde_json::Value;
use servebench_arrival::Timeline;
use servebench_cli::Code;
use sha2::{Digest, Sha256};
use std::fmt::Write;

#[test]
fn requests_are_due_when_the_python_tool_sends_them() {
    let cases = cases("arrivals");
    assert_eq!(cases.len(), 9);
    // Each takes the two seconds that the recording slept through, so all run at once.
    check_all(&cases, cases.len(), |case| {
        let run = rerun(case, &case.arguments(), |call, _| answer(call));
        if !matches!(run.ended, Ok(Code::Done)) {
            return vec![format!("{:?}", run.ended)];
        }
        let measured: Vec<Call> = run.calls.into_iter().filter(is_generation).skip(1).collect();
        let gaps: Vec<f64> = case.rows("gaps").iter().filter_map(Value::as_f64).collect();
        let mut wrong = Vec::new();
        if (measured.len(), gaps.len()) != (20, 20) {
            wrong.push(format!("{} requests with {} gaps", measured.len(), gaps.len()));
        }
        if run.line["plan_sha256"] != hash(&measured, &gaps) {
            wrong.push("the plan's due times are not the sums of the recorded gaps".to_owned());
        }
        let adapters =
            measured.iter().map(|call| &call.body.as_ref().unwrap_or(&Value::Null)["lora_path"]);
        let recorded = (0..20).map(|i| &case.get("lora")[i]);
        if !adapters.eq(recorded) {
            wrong.push("other adapters".to_owned());
        }
        wrong
    });
}

/// The plan's hash as the documentation of the result describes it: the endpoint, then due time (nanoseconds,
/// little endian) and body of each request, every field after its own length.
fn hash(requests: &[Call], gaps: &[f64]) -> String {
    let mut hash = Sha256::new();
    let mut field = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    field(b"/generate");
    let mut timeline = Timeline::default();
    for (request, gap) in requests.iter().zip(gaps) {
        field(&timeline.now().0.to_le_bytes());
        field(&request.raw);
        timeline.advance(*gap);
    }
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}
