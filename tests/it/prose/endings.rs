//! Runs that end before all is sent and answered, and outputs that cannot be written.

use super::bench::{Bench, Ended, count, number, tokenizer};
use super::peer::{Peer, Then, one_token, usual};
use serde_json::{Value, json};
use servebench_cli::{Environment, Io};

/// A server that answers the generation requests of these numbers (from 1) at once, and of others nothing
/// but a first token.
fn answering(answered: &'static [usize]) -> Peer {
    Peer::start(|seen, wire| {
        if !seen.generates() || answered.contains(&wire.log.generations().len()) {
            return usual(seen, wire);
        }
        wire.begin();
        wire.chunk(&one_token()[0]);
        Then::Hang
    })
}

/// What a line says of how its run ended.
fn ending(line: &Value) -> [&Value; 6] {
    ["completed", "failed", "unsent", "partial", "interrupted", "ended_by"].map(|key| &line[key])
}

#[test]
fn the_time_of_a_run_is_a_limit_and_not_a_failure() {
    let peer = answering(&[1, 2, 3]);
    let bench = Bench::of(&peer).and("--num-prompts 50 --max-concurrency 1");
    let ended = bench.and("--duration 2 --grace-period 0.2 --min-success-rate 1").run().code(0);
    let line = ended.line();
    let want = json!([3, 1, 46, false, false, "duration_limit"]);
    assert_eq!(json!(ending(line)), want, "{line}");
    assert_eq!(line["failures"], json!({"cancelled": 1}));
    assert_eq!(line["generated_texts"][3], "a", "what had come is kept");
    let duration = number(&line["duration"]);
    assert!((2.15..10.0).contains(&duration), "{duration}");
    ended.says(&["--duration 2 is over", "46 requests of the plan were not sent", "1 cut off"]);
    assert_eq!(line["plan"]["load"]["endings"]["grace_period_s"], 0.2);
}

#[test]
fn a_run_whose_requests_are_over_before_its_time_says_so() {
    let peer = Peer::start(usual);
    let bench = || Bench::of(&peer).and("--num-prompts 3 --duration 100");
    let ended = bench().run().code(0);
    assert_eq!(json!(ending(ended.line())), json!([3, 0, 0, false, false, null]));
    ended.says(&["all 3 requests were over", "give more --num-prompts"]);
    // With a rate that can be told before.
    let ended = bench().and("--request-rate 50").run().code(0);
    ended.says(&["warning: the last of 3 requests is due after"]);
}

#[test]
fn a_run_that_hangs_is_told_about_and_ended() {
    let peer = answering(&[1, 3]);
    let bench = Bench::of(&peer).and("--num-prompts 5 --max-concurrency 2");
    let ended = bench.and("--no-progress-timeout 1").run().code(8);
    let line = ended.line();
    assert_eq!(json!(ending(line)), json!([2, 2, 1, true, false, "no_progress"]), "{line}");
    assert_eq!(line["failures"], json!({"cancelled": 2}));
    assert!(ended.out.contains("Serving Benchmark Result"), "{}", ended.out);
    ended.says(&[
        "nothing has come for",
        "the run waits for 2 request(s)",
        "the run hung and was ended",
        "--no-progress-timeout",
    ]);
    // Which of those that were under way together were answered is the server's affair.
    let cancelled: Vec<usize> = (0..4).filter(|id| line["success"][*id] == false).collect();
    assert_eq!(cancelled.len(), 2);
    for id in cancelled {
        ended.says(&[&format!("request {id}: sent")]);
    }
    let named = line["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .filter(|error| error.as_str().is_some_and(|error| error.contains("made no progress")));
    assert_eq!(named.count(), 2);
}

/// Limits that make no sense name the flag.
#[test]
fn limits_are_checked() {
    let peer = Peer::start(usual);
    for (flags, named) in [
        ("--duration 0", "--duration"),
        ("--duration -1", "--duration"),
        ("--duration 1e300", "--duration"),
        ("--duration nan", "--duration"),
        ("--grace-period 5", "--duration"),
        ("--duration 5 --grace-period -5", "--grace-period"),
        ("--no-progress-timeout soon", "--no-progress-timeout"),
        ("--no-progress-timeout 0.2", "at least 1 second"),
    ] {
        Bench::of(&peer).and(flags).run().code(2).says(&[named]);
    }
    assert!(peer.requests().is_empty());
}

/// `bench-vllm serve` has the same limits.
#[test]
fn vllm_runs_end_so_too() {
    let vllm = |peer: &Peer, flags: &str| {
        let folder = crate::support::Folder::new();
        let common = "serve --backend openai-chat --model m --dataset-name random \
                      --random-input-len 8 --random-output-len 4 --num-prompts 5 --disable-tqdm \
                      --save-result --result-filename r.json";
        let mut words: Vec<std::ffi::OsString> =
            common.split_whitespace().chain(flags.split(' ')).map(Into::into).collect();
        words.extend(["--base-url".into(), peer.url().into()]);
        words.extend(["--result-dir".into(), folder.path("").into()]);
        words.extend(["--tokenizer".into(), tokenizer("bytes").into()]);
        let (io, captured) = Io::captured();
        let code = match bench_vllm::run(words, &Environment::default(), &io) {
            Ok(code) => code,
            Err(failure) => panic!("{failure}"),
        };
        let text = std::fs::read_to_string(folder.path("r.json")).expect("a result");
        let result: Value = serde_json::from_str(&text).expect("JSON");
        (code.number(), result, captured.err())
    };
    let ended = "--max-concurrency 1 --duration 2 --grace-period 0.2";
    let (code, result, said) = vllm(&answering(&[1, 2]), ended);
    assert_eq!(
        (code, &result["completed"], &result["failed"]),
        (0, &json!(2), &json!(1)),
        "{said}"
    );
    let own = result.pointer("/servebench").expect("what we say");
    assert_eq!((&own["ended_by"], &own["unsent"]), (&json!("duration_limit"), &json!(2)), "{own}");
    assert_eq!(own["partial"], json!(false));

    let (code, result, said) =
        vllm(&answering(&[1]), "--max-concurrency 1 --no-progress-timeout 1");
    assert_eq!((code, &result["completed"]), (8, &json!(1)), "{said}");
    assert_eq!(result["servebench"]["ended_by"], "no_progress");
    assert_eq!(result["servebench"]["partial"], json!(true));
    assert!(said.contains("the run hung and was ended"), "{said}");
}

/// OUT-02 (d): the line is not lost, and the table is printed.
#[test]
fn a_full_disk_sends_the_line_to_standard_output() {
    let peer = Peer::start(usual);
    let ended = Bench::of(&peer).with("--output-file", "/dev/full").run().code(7);
    ended.says(&["/dev/full", "the result line went to standard output instead"]);
    assert!(ended.out.contains("Serving Benchmark Result"), "{}", ended.out);
    let line: Value = serde_json::from_str(ended.out.lines().next_back().expect("a line"))
        .expect("the last line is the result");
    assert_eq!(count(&line["completed"]), 1);
}

/// Runs the command with what it prints going where `into` says, in a shell.
fn printing_into(bench: &Bench, into: &str) -> Ended {
    let shell = format!(r#"{{ "$0" "$@"; echo "code $?" >&2; }} {into}; exit 0;"#);
    bench.start_below(&shell).wait().code(0)
}

/// As with `| head -1`: whoever read has seen enough.
#[test]
fn a_reader_that_leaves_costs_nothing() {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer).and("--plot-throughput");
    let ended = printing_into(&bench, "| :");
    ended.says(&["code 0"]);
    assert_eq!(ended.line()["completed"], 1);

    let ended = printing_into(&bench.and("--dry-run"), "| :");
    ended.says(&["code 0"]);
    assert!(!ended.err.contains("error"), "{}", ended.err);
}

/// What cannot be printed for another reason is an error, but the file is written.
#[test]
fn standard_output_that_is_full_is_an_error_after_the_result() {
    let peer = Peer::start(usual);
    let ended = printing_into(&Bench::of(&peer), "> /dev/full");
    ended.says(&["code 7"]);
    assert_eq!(ended.line()["completed"], 1);
    // Neither there nor in the file: both are said.
    let ended = printing_into(&Bench::of(&peer).with("--output-file", "/dev/full"), "> /dev/full");
    ended.says(&["code 7", "standard output could not be written either"]);
}

/// Nobody who listens is no reason to stop.
#[test]
fn a_standard_error_that_is_closed_costs_nothing() {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer).and("--num-prompts 3");
    let ended = bench.start_below("exec 2>/dev/full;").wait().code(0);
    assert_eq!(ended.line()["completed"], 3);
    assert!(ended.err.is_empty());
}
