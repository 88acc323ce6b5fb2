//! What the program says and how it ends when it is asked for something it cannot do.

use crate::support::{Folder, busy_machine};
use std::net::TcpListener;

/// A loopback address at which nothing listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("its address"))
}

#[track_caller]
fn expect(arguments: &[&str], code: i32, words: &[&str]) {
    let folder = Folder::new();
    let outcome = folder.run(arguments).expect_code(code);
    for word in words {
        assert!(outcome.stderr.contains(word), "no `{word}` in: {}", outcome.said());
    }
    assert!(!outcome.said().contains("panicked"), "{}", outcome.said());
}

#[test]
fn usage_errors_end_with_2_and_name_the_flag() {
    expect(&["--no-such-flag"], 2, &["--no-such-flag"]);
    expect(&["--backend", "nobody"], 2, &["nobody", "sglang-oai-chat"]);
    expect(&["--num-prompts", "0"], 2, &["--num-prompts"]);
    expect(&["--request-rate", "0"], 2, &["--request-rate"]);
    expect(&["--request-rate", "-1"], 2, &["--request-rate"]);
    expect(&["--max-concurrency", "-1"], 2, &["--max-concurrency"]);
    expect(&["--random-range-ratio", "1.5"], 2, &["--random-range-ratio"]);
    expect(&["--header", "no-equals-sign"], 2, &["--header"]);
    expect(&["--goodput", "speed:3"], 2, &["--goodput"]);
}

#[test]
fn an_ambiguous_abbreviation_names_what_it_could_mean() {
    expect(&["--random", "8"], 2, &["--random"]);
}

#[test]
fn unique_abbreviations_are_understood() {
    let folder = Folder::new();
    let arguments = [
        "--simulate",
        "--num-prompt",
        "2",
        "--random-input",
        "4",
        "--random-output=3",
        "--random-range",
        "1",
        "--disable-tq",
        "--output-f",
        "out.jsonl",
    ];
    folder.run(&arguments).expect_code(0);
    assert_eq!(folder.results("out.jsonl")[0]["total_output_tokens"], 6);
}

#[test]
fn of_a_repeated_flag_the_last_counts() {
    let folder = Folder::new();
    let arguments = [
        "--simulate",
        "--num-prompts",
        "50",
        "--random-output-len",
        "3",
        "--num-prompts",
        "2",
        "--random-range-ratio",
        "1",
        "--disable-tqdm",
        "--output-file",
        "out.jsonl",
    ];
    folder.run(&arguments).expect_code(0);
    assert_eq!(folder.results("out.jsonl")[0]["completed"], 2);
}

#[test]
fn a_server_that_is_not_there_ends_with_4_and_its_url() {
    let url = nobody();
    let arguments = [
        "--base-url",
        &url,
        "--ready-check-timeout-sec",
        "1",
        "--dataset-name",
        "random-ids",
        "--num-prompts",
        "1",
        "--model",
        "m",
        "--tokenizer",
        "m",
    ];
    expect(&arguments, 4, &[url.as_str()]);
}

#[test]
fn bad_data_end_with_3_and_the_file() {
    let folder = Folder::new();
    std::fs::write(folder.path("empty.jsonl"), "").expect("a file");
    let base = ["--simulate", "--dataset-name", "custom", "--dataset-path"];
    for file in ["empty.jsonl", "no-such-file.jsonl"] {
        let outcome = folder.run(&[&base[..], &[file]].concat()).expect_code(3);
        assert!(outcome.stderr.contains(file), "{}", outcome.said());
    }
}

#[test]
fn an_output_file_that_cannot_be_written_is_found_before_the_run() {
    let folder = Folder::new();
    std::fs::create_dir(folder.path("folder")).expect("a folder");
    let arguments = ["--simulate", "--num-prompts", "2", "--output-file", "folder"];
    let outcome = folder.run(&arguments).expect_code(7);
    assert!(outcome.stderr.contains("folder"), "{}", outcome.said());
    assert!(!outcome.stdout.contains("Serving Benchmark Result"), "{}", outcome.said());
}

#[test]
fn a_missing_folder_of_the_output_file_is_made() {
    let folder = Folder::new();
    let arguments = [
        "--simulate",
        "--num-prompts",
        "2",
        "--random-output-len",
        "2",
        "--disable-tqdm",
        "--output-file",
        "a/b/out.jsonl",
    ];
    folder.run(&arguments).expect_code(0);
    assert_eq!(folder.results("a/b/out.jsonl").len(), 1);
}

#[test]
fn help_and_version_go_to_standard_output() {
    let folder = Folder::new();
    let help = folder.run(&["--help"]).expect_code(0);
    assert!(help.stdout.contains("--request-rate") && help.stderr.is_empty(), "{}", help.said());
    let version = folder.run(&["--version"]).expect_code(0);
    assert!(version.stdout.contains(env!("CARGO_PKG_VERSION")), "{}", version.said());
}

#[test]
fn secrets_are_not_repeated() {
    let folder = Folder::new();
    let _busy = busy_machine();
    let mut command = folder.command(&[
        "--simulate",
        "--num-prompts",
        "1",
        "--random-output-len",
        "2",
        "--disable-tqdm",
        "--output-file",
        "out.jsonl",
        "--header",
        "X-Key=hidden-in-header",
    ]);
    let output = command.env("OPENAI_API_KEY", "hidden-in-environment").output().expect("a run");
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said += &String::from_utf8_lossy(&output.stderr);
    said += &std::fs::read_to_string(folder.path("out.jsonl")).expect("a result");
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("hidden-in"), "{said}");
}

/// What a panic, a trace or a debugger would show of the arguments.
#[track_caller]
fn shown<A: clap::Parser + std::fmt::Debug>(words: &str) -> String {
    let words = std::iter::once("program").chain(words.split(' '));
    format!("{:?}", A::try_parse_from(words).expect("arguments"))
}

#[test]
fn arguments_do_not_show_secrets() {
    let header = "--header X-Key=sk-secret";
    for shown in [
        shown::<bench_serving::Args>(header),
        shown::<bench_vllm::ServeArgs>(header),
        shown::<bench_vllm::StructuredOutputCommand>(&format!("{header} --dataset json")),
        shown::<bench_vllm::MultiTurnCommand>(&format!(
            "--input-file x --model m --api-key sk-secret {header}"
        )),
    ] {
        assert!(shown.contains("X-Key") && !shown.contains("sk-secret"), "{shown}");
    }
}
