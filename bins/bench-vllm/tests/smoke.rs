//! The program as a process: one run against its own simulated server.

use serde_json::Value;
use std::process::{Command, Stdio};

#[test]
fn a_simulated_run_prints_the_table_and_writes_the_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = Command::new(env!("CARGO_BIN_EXE_bench-vllm"))
        .args(["serve", "--simulate", "--num_prompts", "4", "--random-output-len", "4"])
        .args(["--disable-tqdm", "--save-res", "--result-dir", "results"])
        .args(["--result-filename", "out.json"])
        .current_dir(folder.path())
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{out}{err}");
    assert!(out.starts_with("============ Serving Benchmark Result ============\n"), "{out}");
    assert!(out.contains("Successful requests:                     4         \n"), "{out}");

    let text = std::fs::read_to_string(folder.path().join("results/out.json")).expect("a file");
    // serde_json refuses NaN and Infinity.
    let result: Value = serde_json::from_str(&text).expect("strict JSON");
    assert_eq!((&result["completed"], &result["failed"]), (&4.into(), &0.into()));
    assert_eq!(result["total_output_tokens"], 16);
    assert_eq!(result["request_rate"], "inf");
    assert_eq!(result["servebench"]["simulated"], true);
}
