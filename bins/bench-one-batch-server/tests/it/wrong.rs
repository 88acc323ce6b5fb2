//! Bad input: each message names the flag.

use super::{run, tokenizer};
use servebench_sim::{CostModel, Sim, SimConfig, Timing};

#[track_caller]
fn usage(words: &str, said: &str) {
    let words: Vec<&str> = words.split_whitespace().collect();
    let text = run(&words).failed(2);
    assert!(text.contains(said), "{words:?}: {text}");
}

#[test]
fn what_makes_no_sense_is_refused_by_name() {
    usage("--disable-ignore-eos --fake-prefill", "--disable-ignore-eos and --fake-prefill");
    usage("--disable-ignore-eos --client-stream-interval 2", "--client-stream-interval 1");
    usage("--input-len-list 4,x --dataset-name random-ids", "--input-len-list takes whole numbers");
    usage("--input-len-list 4,0 --dataset-name random-ids", "--input-len-list takes whole numbers");
    usage("--input-len-list 4 --dataset-name sharegpt", "--input-len-list works with");
    usage("--input-len-list 4 --fixed-prompt-file f", "--input-len-list works with");
    usage("--input-len-list 4 --input-len 1 2", "--input-len-list goes with one --input-len");
    usage(
        "--dataset-name sharegpt --fixed-prompt-file f",
        "--fixed-prompt-file and --dataset-name",
    );
    usage("--dataset-name sharegpt --input-len 1 2", "--input-len takes one value");
    usage("--dataset-name custom", "needs --dataset-path");
    usage("--apply-chat-template", "--apply-chat-template needs");
    usage("--lora-name a --lora-request-distribution distinct", "two or more --lora-name");
    usage("--lora-zipf-alpha 1", "--lora-zipf-alpha must be above 1");
    usage("--lora-name a --backend vllm", "--lora-name needs --backend sglang");
    usage("--cache-hit-rate 1.5", "--cache-hit-rate must be from 0 to 1");
    usage("--temperature -1", "--temperature must be 0 or more");
    usage("--batch-size 0", "--batch-size");
    usage("--profile --backend vllm", "--profile needs --backend sglang");
    usage("--base-url nonsense://x", "--base-url");
    usage("--simulate --base-url http://127.0.0.1:1", "drop --base-url");
    usage("--simulate --launch true", "drop --launch");
}

#[test]
fn what_is_not_built_says_why() {
    usage("--dataset-name mmmu --backend vllm", "take no pictures");
    usage("--input-len-step-percentage 0.5", "used for nothing");
    usage("--mem-fraction-static 0.8", "go into the command of --launch");
}

#[test]
fn a_server_that_is_not_there_is_said() {
    let free =
        std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it");
    let url = format!("http://{free}");
    let text = run(&["--base-url", &url, "--result-filename", ""]).failed(4);
    assert!(text.contains("--launch 'CMD' starts one"), "{text}");
}

#[test]
fn cases_that_do_not_fit_are_left_out() {
    let cost = CostModel { max_running: 4, ..CostModel::default() };
    let sim = Sim::new(SimConfig { timing: Timing::Engine(cost), ..SimConfig::default() });
    let sim = sim.spawn_in_thread().expect("a server");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.jsonl").to_string_lossy().into_owned();
    let url = sim.url();
    let base = ["--base-url", &url, "--local-tokenizer-path", tokenizer(), "--skip-warmup"];
    let words = ["--dataset-name", "random-ids", "--input-len", "8", "--output-len", "2"];
    let words = [&base[..], &words, &["--result-filename", &file, "--batch-size"]].concat();

    let out = run(&[&words[..], &["5", "4"]].concat()).done();
    assert!(out.starts_with("========Skip benchmark batch_size=5"), "{out}");
    assert_eq!(std::fs::read_to_string(&file).expect("results").lines().count(), 1);

    let text = run(&[&words[..], &["5"]].concat()).failed(3);
    assert!(text.contains("none of the 1 cases"), "{text}");

    let multi = run(&[&words[..], &["5", "2", "--enable-multi-batch"]].concat());
    assert!(multi.err.contains("does nothing for batch sizes [2]"), "{}", multi.err);
    multi.done();
    assert_eq!(std::fs::read_to_string(&file).expect("results").lines().count(), 3);
}

#[test]
fn a_batch_that_fails_keeps_the_results_before_it() {
    let config = SimConfig { context_tokens: 100, ..SimConfig::default() };
    let sim = Sim::new(config).spawn_in_thread().expect("a server");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.jsonl").to_string_lossy().into_owned();
    let url = sim.url();
    let base = ["--base-url", &url, "--local-tokenizer-path", tokenizer(), "--skip-warmup"];
    let words = ["--dataset-name", "random-ids", "--input-len", "8", "200", "--output-len", "2"];
    let ran = run(&[&base[..], &words, &["--result-filename", &file]].concat());
    assert!(ran.out.contains("Results are saved to"), "{}", ran.out);
    let text = ran.failed(5);
    assert!(text.contains("input length 200") && text.contains("exceed the context"), "{text}");
    assert_eq!(std::fs::read_to_string(&file).expect("results").lines().count(), 1);
}
