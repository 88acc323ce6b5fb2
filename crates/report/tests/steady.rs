//! The block of a steady state, held against what the Python tool prints.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use serde_json::Value;
use servebench_metrics::SteadyState;
use servebench_report::steady_table;

#[test]
fn the_block_is_the_python_tools_to_the_character() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/steady.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut compared = 0;
    for case in golden["cases"].as_array().unwrap() {
        let Some(console) = case["console"].as_str() else { continue };
        let state: SteadyState = serde_json::from_value(case["metrics"].clone()).unwrap();
        assert_eq!(steady_table(&state), console, "{}", case["name"]);
        compared += 1;
    }
    assert!(compared > 30, "{compared}");
}

#[test]
fn what_nobody_counted_has_no_number() {
    let state = SteadyState {
        concurrency_ratio: 0.8,
        window_start: 1.0,
        window_end: 3.5,
        duration: 2.5,
        concurrency_threshold: 4,
        completed: 7,
        total_input: 100,
        input_throughput: 40.0,
        total_output: 12.25,
        total_output_retokenized: None,
        output_throughput: 4.9,
        output_throughput_retokenized: None,
        average_concurrency: 4.5,
        peak_concurrency: 5,
        peak_output_throughput: 6.0,
    };
    let row = format!("{:<40} {:<10}", "Output throughput, retokenized (tok/s):", "N/A");
    assert!(steady_table(&state).lines().any(|line| line == row));
}
