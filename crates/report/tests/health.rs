//! How the client fared, in the result line and in the table.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::{info, options, report};
use serde_json::{Value, json};
use servebench_metrics::verdict::Verdict;
use servebench_report::{Calibration, ClientHealth, RunInfo, TcpCounts, json_line, table};

#[test]
fn the_clients_health_is_in_line_and_table() {
    let health = |verdict| ClientHealth {
        verdict,
        evidence: vec!["worker 0 was busy (limit 85 %)".into(), "the rest was fine".into()],
        summary: "busiest worker 41 %".into(),
        worker_cpu: vec![0.412_345, 0.1],
        process_cpu: Some(0.25),
        stalls: Some(3),
        longest_stall: Some(0.0125),
        descriptor_limit: Some(1024),
        descriptors_needed: Some(164),
        tcp: Some(TcpCounts { retransmits: 7, timeouts: Some(1), out_of_order: None }),
        calibration: Some(Calibration { ttft_bias_ms: Some(0.25), ..Calibration::default() }),
    };
    let of = |client| report(&[], &options(), RunInfo { client, ..info() });
    let line = json_line(&of(Some(health(Verdict::ClientBound))));
    let line: Value = serde_json::from_str(&line).unwrap();
    for (key, value) in [
        ("verdict", json!("client-bound")),
        ("verdict_evidence", json!(["worker 0 was busy (limit 85 %)", "the rest was fine"])),
        ("worker_cpu_share", json!([0.4123, 0.1])),
        ("process_cpu_share", json!(0.25)),
        ("loop_stalls", json!(3)),
        ("loop_stall_max_ms", json!(12.5)),
        ("fd_limit", json!(1024)),
        ("fd_needed", json!(164)),
        ("tcp_retransmits", json!(7)),
        ("tcp_timeouts", json!(1)),
        ("tcp_out_of_order", Value::Null),
    ] {
        assert_eq!(line[key], value, "{key}");
    }
    assert_eq!(line["calibration"]["ttft_bias_ms"], 0.25);
    assert_eq!(line["calibration"]["itl_bias_ms"], Value::Null);

    let verdict = |verdict| {
        let table = table(&of(Some(health(verdict))));
        table.lines().find(|line| line.starts_with("Verdict: ")).unwrap().to_owned()
    };
    assert_eq!(verdict(Verdict::ServerBound), "Verdict: server-bound (busiest worker 41 %)");
    let reason = "(worker 0 was busy (limit 85 %))";
    assert_eq!(verdict(Verdict::Undecided), format!("Verdict: undecided {reason}"));
    assert_eq!(verdict(Verdict::ClientBound), format!("Verdict: client-bound {reason}"));
    assert!(!table(&of(None)).contains("Verdict"));
}
