//! The program as a process: one run against its own simulated server.

use serde_json::Value;
use std::process::{Command, Stdio};

#[test]
fn a_simulated_run_prints_the_table_and_writes_one_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_bench-serving"))
        .args(["--simulate", "--num-prompts", "4", "--random-output-len", "4", "--disable-tqdm"])
        .args(["--output-file", "results/out.jsonl"])
        .current_dir(folder.path())
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(out.contains(" Serving Benchmark Result "), "{out}");
    assert!(out.contains("Successful requests:                     4 "), "{out}");

    let text = std::fs::read_to_string(folder.path().join("results/out.jsonl")).expect("a file");
    // serde_json refuses NaN and Infinity.
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("strict JSON")).collect();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["simulated"], true);
    assert_eq!((&lines[0]["completed"], &lines[0]["failed"]), (&4.into(), &0.into()));
    assert_eq!(lines[0]["total_output_tokens"], 16);
}
