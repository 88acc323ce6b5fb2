//! The program as a process, against its own simulated server.

use clap::Parser;
use send_one::Args;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn run(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_send-one"))
        .args(words)
        .current_dir(folder)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .expect("the program starts")
}

/// What it printed, if it ended with `code`.
#[track_caller]
fn printed(words: &[&str], code: i32) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), words);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{out}{err}");
    assert!(!err.contains("panicked"), "{err}");
    if code == 0 { out.into_owned() } else { format!("{out}{err}") }
}

/// The cells of the table that has this column first.
#[track_caller]
fn cells(printed: &str, first: &str) -> Vec<String> {
    let start = format!("| {first} ");
    let mut lines = printed.lines().skip_while(|line| !line.trim_start().starts_with(&start));
    let row = lines.nth(2).unwrap_or_else(|| panic!("no table with {first} in:\n{printed}"));
    row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// The reply: what stands before the tables.
fn reply(printed: &str) -> &str {
    printed.split("\n\n+--").next().unwrap_or_default()
}

#[test]
fn one_prompt_is_answered_with_its_figures() {
    for stream in [&["--stream"][..], &[]] {
        let words = [&["--simulate", "--max-new-tokens", "24"], stream].concat();
        let said = printed(&words, 0);
        // The simulated server's tokens are bytes.
        assert_eq!(reply(&said).len(), 24, "{said}");
        let own = cells(&said, "Latency (s)");
        assert_eq!((own.len(), own[1].as_str(), own[2].as_str()), (4, "24", "1.000"), "{said}");
        let (latency, speed): (f64, f64) = (own[0].parse().unwrap(), own[3].parse().unwrap());
        assert!(latency > 0.0 && (speed * latency - 24.0).abs() < 24.0 * 0.01, "{said}");
        let seen = cells(&said, "TTFT (ms)");
        // Only a stream shows when tokens came.
        assert_eq!(seen[0] == "-", stream.is_empty(), "{said}");
        assert_eq!((seen.len(), seen[6].as_str()), (7, "0"), "{said}");
        assert!(seen[5].parse::<u32>().unwrap() > 20, "{said}");
    }
}

#[test]
fn a_batch_is_streamed_too() {
    for stream in [&["--stream"][..], &[]] {
        let words = ["--simulate", "--batch-size", "3", "--different-prompts"];
        let words = [&words[..], &["--random-input-len", "9", "--max-new-tokens", "5"], stream];
        let said = printed(&words.concat(), 0);
        assert_eq!(reply(&said).len(), 5, "the first prompt's alone: {said}");
        assert_eq!(cells(&said, "Latency (s)")[1], "5");
        let seen = cells(&said, "TTFT (ms)");
        assert_eq!((seen[5].as_str(), seen[7].as_str()), ("9", "15"), "{said}");
    }
}

#[test]
fn a_profile_is_made_around_the_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let words = ["--simulate", "--stream", "--profile", "--profile-steps", "2"];
    let words = [&words[..], &["--profile-output-dir", "t", "--profile-by-stage"]].concat();
    let output = run(folder.path(), &words);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    for end in ["-TP-0-EXTEND.trace.json.gz", "-TP-0-DECODE.trace.json.gz"] {
        assert!(out.contains(end), "{out}");
    }
    assert_eq!(cells(&out, "Latency (s)")[1], "512");
}

#[test]
fn failures_say_what_to_do() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = closed.local_addr().expect("its address").port().to_string();
    drop(closed);
    let said = printed(&["--host", "127.0.0.1", "--port", &port], 4);
    assert!(said.contains("connect") && said.contains("--base-url"), "{said}");
    assert!(printed(&["--image", "--batch-size", "2"], 2).contains("--image"));
    assert!(printed(&["--simulate", "--port", "1"], 2).contains("--port"));
    assert!(printed(&["--batch-size", "0"], 2).contains("--batch-size"));
}

/// The commands of SGLang's guide on profiling.
#[test]
fn the_guides_commands_are_understood() {
    let parse = |words: &[&str]| {
        let line = ["send-one"].iter().chain(words);
        Args::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"))
    };
    assert!(!parse(&[]).all.around.profile);
    let profiled = parse(&["--profile"]).all.around;
    assert!(profiled.profile && profiled.steps.profile_steps == 5);
}
