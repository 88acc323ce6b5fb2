//! The commands of SGLang's guides that use this tool, and what their texts say about its flags.

use super::run;
use serde_json::{Value, json};

/// The plan of a command line.
#[track_caller]
fn plan(words: &str) -> Value {
    let words: Vec<&str> = words.split_whitespace().chain(["--dry-run"]).collect();
    serde_json::from_str(&run(&words).done()).expect("a plan")
}

#[test]
fn the_benchmark_guides_command() {
    let plan = plan(
        "--base-url http://127.0.0.1:30000 --model-path meta-llama/Meta-Llama-3.1-8B-Instruct \
         --batch-size 32 --input-len 256 --output-len 32",
    );
    assert_eq!(plan["base_url"], "http://127.0.0.1:30000");
    assert_eq!(plan["model_path"], "meta-llama/Meta-Llama-3.1-8B-Instruct");
    let sweep = [&plan["batch_size"], &plan["input_len"], &plan["output_len"]];
    assert_eq!(sweep, [&json!([32]), &json!([256]), &json!([32])]);
    assert_eq!((&plan["ignore_eos"], &plan["fake_prefill"]), (&json!(true), &json!(false)));
}

#[test]
fn the_serving_guides_command_for_a_decode_server() {
    let plan = plan(
        "--base-url http://127.0.0.1:30001 --model-path meta-llama/Llama-3.1-8B-Instruct \
         --batch-size 32 --input-len 1024 --output-len 256 --fake-prefill",
    );
    assert_eq!(
        (&plan["base_url"], &plan["fake_prefill"]),
        (&json!("http://127.0.0.1:30001"), &json!(true))
    );
}

#[test]
fn the_flags_that_the_guide_describes() {
    assert_eq!(plan("--enable-multi-batch --batch-size 512")["multi_batch"], true);
    assert_eq!(plan("--disable-ignore-eos --dataset-name sharegpt")["ignore_eos"], false);
    let custom = plan("--dataset-name custom --dataset-path chats.jsonl --output-len 64");
    assert_eq!(custom["source"]["dataset"], json!({"name": "custom", "path": "chats.jsonl"}));
    assert_eq!(plan("--lora-name mine")["lora_name"], json!(["mine"]));
}

#[test]
fn upstreams_defaults_abbreviations_and_aliases() {
    let plain = plan("");
    assert_eq!(plain["base_url"], "http://127.0.0.1:30000");
    let sweep = [&plain["batch_size"], &plain["input_len"], &plain["output_len"]];
    assert_eq!(sweep, [&json!([1]), &json!([1024]), &json!([16])]);
    assert_eq!(plain["source"]["dataset"]["name"], "random");
    assert_eq!((&plain["seed"], &plain["run_name"]), (&json!(42), &json!("default")));
    assert_eq!((&plain["result_file"], &plain["profile"]), (&json!("result.jsonl"), &Value::Null));
    assert_eq!(plain["lora_zipf_alpha"], 1.1);

    let short = plan("--batch 1 2 --model None --tensor-parallel-size 4 --show --result-filename=");
    assert_eq!((&short["batch_size"], &short["model_path"]), (&json!([1, 2]), &json!("None")));
    assert_eq!((&short["hourly_cost"], &short["show_report"]), (&json!(8.0), &json!(true)));
    assert_eq!(short["result_file"], Value::Null);
}
