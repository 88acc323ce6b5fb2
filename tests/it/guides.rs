//! Every command of SGLang's and vLLM's guides (`tests/fixtures/guides`): it is understood here, or its
//! failure names what to do instead.

use crate::flags::run;
use crate::support::{Folder, root};
use clap::Parser;
use servebench::sim::{Sim, SimConfig};
use servebench_cli::profiler::PROFILER_FLAGS;
use servebench_cli::send_one::SEND_ONE_FLAGS;
use servebench_cli::{Failure, Io, parse_as};
use std::ffi::OsString;
use std::fs;

/// A line of a guide's file.
#[derive(Debug)]
enum Line {
    /// A command that works.
    Works(Vec<String>),
    /// A command that fails, and what the failure must name.
    Fails(Vec<String>, String),
    /// A command of a tool that has no program here, and the one that takes its place.
    Replaced(Vec<String>, Vec<String>),
}

const SGLANG: &[&str] = &["bench-serving.txt", "profiling.txt"];
const VLLM: &[&str] = &["vllm-bench.txt"];

fn lines(guides: &[&str]) -> Vec<Line> {
    let mut lines = Vec::new();
    for guide in guides {
        let text = fs::read_to_string(root().join("tests/fixtures/guides").join(guide));
        let text = text.expect("a guide's commands");
        let mut rows = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        while let Some(row) = rows.next() {
            lines.push(if let Some(failing) = row.strip_prefix("! ") {
                let (command, named) = failing.split_once(" => ").expect("what is named");
                Line::Fails(words(command), named.to_owned())
            } else if row.starts_with("python ") {
                let ours = rows.next().and_then(|next| next.strip_prefix("-> "));
                Line::Replaced(words(row), words(ours.expect("what takes its place")))
            } else {
                Line::Works(words(row))
            });
        }
    }
    lines
}

/// The words of a command as a shell takes them apart; quotes are single ones.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (at, piece) in command.split('\'').enumerate() {
        if at % 2 == 1 {
            words.push(piece.to_owned());
        } else {
            words.extend(piece.split_whitespace().map(str::to_owned));
        }
    }
    words
}

/// The plan that a command makes, or its failure.
fn plan(words: &[String]) -> Result<(), Failure> {
    let (program, rest) = words.split_first().expect("a program");
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    match (program.as_str(), rest.as_slice()) {
        ("bench-serving" | "bench-one-batch-server", rest) => {
            let (ended, printed) = run(program, &[rest, &["--dry-run"]].concat());
            ended.map(|_| {
                serde_json::from_str::<serde_json::Value>(&printed).expect("a plan in JSON");
            })
        }
        // These print no plan: they need no server, or tell what they would do in words of their own.
        ("bench-vllm", [command @ ("hash" | "prefix-block-hash"), rest @ ..]) => {
            let few = ["--iterations", "1", "--num-blocks", "1", "--trials", "1"];
            let few = if *command == "hash" { &few[..2] } else { &few[2..] };
            run(&format!("bench-vllm {command}"), &[rest, few].concat()).0.map(|_| ())
        }
        ("bench-vllm", [command, rest @ ..]) => {
            let (ended, printed) =
                run(&format!("bench-vllm {command}"), &[rest, &["--dry-run"]].concat());
            ended.map(|_| {
                serde_json::from_str::<serde_json::Value>(&printed).expect("a plan in JSON");
            })
        }
        ("profiler", ["start", rest @ ..]) => read::<profiler::Start>(rest, PROFILER_FLAGS),
        ("profiler", ["stop", rest @ ..]) => read::<profiler::Stop>(rest, PROFILER_FLAGS),
        ("profiler", rest) => read::<profiler::Profile>(rest, PROFILER_FLAGS),
        ("send-one", rest) => read::<send_one::Args>(rest, SEND_ONE_FLAGS),
        (other, _) => panic!("no program is called {other}"),
    }
}

fn read<A: Parser>(words: &[&str], upstream: &[&str]) -> Result<(), Failure> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    parse_as::<A>(words, "the guide's tool", upstream, &Io::captured().0).map(|_| ())
}

/// How many commands work, fail and are replaced, each of them as its line says.
#[track_caller]
fn check(guides: &[&str], page: &str) -> (u32, u32, u32) {
    let (mut works, mut fails, mut replaced) = (0, 0, 0);
    for line in lines(guides) {
        match line {
            Line::Works(words) => {
                if let Err(failure) = plan(&words) {
                    panic!("{}\n{failure}", words.join(" "));
                }
                works += 1;
            }
            Line::Fails(words, named) => {
                let failure = plan(&words).expect_err(&words.join(" "));
                assert_eq!(failure.code.number(), 2, "{words:?}: {failure}");
                assert!(failure.to_string().contains(&named), "no `{named}` in: {failure}");
                fails += 1;
            }
            Line::Replaced(python, ours) => {
                if let Err(failure) = plan(&ours) {
                    panic!("{}\n{failure}", ours.join(" "));
                }
                let (theirs, program) = match (python[1].as_str(), ours[0].as_str()) {
                    ("-m", ours) => (format!("python -m {}", python[2]), ours),
                    (script, _) => (script.to_owned(), ours[1].as_str()),
                };
                says_what_replaces(page, &theirs, program);
                replaced += 1;
            }
        }
    }
    (works, fails, replaced)
}

#[test]
fn every_command_makes_a_plan_or_names_its_replacement() {
    assert_eq!(check(SGLANG, "from-sglang.md"), (54, 3, 6), "a command was lost");
    assert_eq!(check(VLLM, "vllm-scripts.md"), (43, 5, 15), "a command was lost");
}

/// The guide's page has a row for what users start, and the row names ours.
#[track_caller]
fn says_what_replaces(page: &str, theirs: &str, program: &str) {
    let guide = fs::read_to_string(root().join("docs/src/guide").join(page)).expect("the guide");
    let named = |text: &&str| text.contains(&format!("`{theirs}`"));
    let row = guide.lines().filter(|line| line.starts_with('|')).find(named);
    let row = row.unwrap_or_else(|| panic!("{page} has no row for {theirs}"));
    assert!(row.contains(&format!("`{program}")), "no {program} in: {row}");
}

/// What makes a guide's command small, and names files that are there. The last of a flag counts.
fn small(words: &[String], url: &str) -> Option<Vec<String>> {
    let fixtures = root().join("tests/fixtures");
    let fixture = |name: &str| fixtures.join(name).to_string_lossy().into_owned();
    let after = |flag: &str| {
        let at = words.iter().rposition(|word| word == flag)?;
        words.get(at + 1).map(String::as_str)
    };
    let file = match after("--dataset-name").unwrap_or("sharegpt") {
        "sharegpt" | "random" | "image" => "sharegpt_small.json",
        "generated-shared-prefix" => "",
        "mooncake" => "mooncake_small.jsonl",
        "speed-bench" => "speed_bench_small.jsonl",
        "agentic-trace" => "agentic_small.json",
        // Fetched from the hub.
        _ => return None,
    };
    // A profile of workers that are not there is not a run.
    if words.iter().any(|word| word == "--pd-separated") {
        return None;
    }
    let mut more: Vec<String> = vec!["--base-url".into(), url.into()];
    if !file.is_empty() {
        more.extend(["--dataset-path".into(), fixture(file)]);
    }
    more.extend(["--tokenizer".into(), fixture("tokenizers/tiny-llama")]);
    let numbers = "--num-prompts 3 --random-input-len 8 --random-output-len 4 --request-rate inf \
        --sharegpt-output-len 4 --sharegpt-context-len 2048 --mooncake-num-rounds 2 \
        --mooncake-slowdown-factor 0 --gsp-num-groups 2 --gsp-prompts-per-group 2 --gsp-output-len 4 \
        --gsp-system-prompt-len 16 --gsp-question-len 8 --speed-bench-output-len 4 --image-resolution 8x8 \
        --dataset-offset 0 --profile-output-dir traces --output-file out.jsonl --disable-tqdm --no-calibrate";
    more.extend(numbers.split_whitespace().map(str::to_owned));
    Some([&words[1..], &more].concat())
}

#[test]
fn the_commands_that_a_simulated_server_can_serve_are_served() {
    let server = Sim::new(SimConfig::default()).spawn_in_thread().expect("a server");
    let (url, mut served) = (server.url(), 0);
    for line in lines(SGLANG) {
        let Line::Works(words) = line else { continue };
        if words[0] != "bench-serving" {
            continue;
        }
        let Some(arguments) = small(&words, &url) else { continue };
        let folder = Folder::new();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let outcome = folder.run(&arguments).expect_code(0);
        let result = folder.results("out.jsonl").remove(0);
        assert_eq!(result["failed"], 0, "{words:?}\n{}", outcome.said());
        assert!(result["completed"].as_u64().is_some_and(|n| n > 1), "{}", outcome.said());
        served += 1;
    }
    assert!(served > 25, "{served}");
}

#[test]
fn the_other_programs_commands_are_served_too() {
    let batch = "--simulate --batch 2 --input-len 8 --output-len 4 --result-filename=";
    let ended = run("bench-one-batch-server", &batch.split(' ').collect::<Vec<_>>());
    assert!(ended.0.is_ok() && ended.1.contains("batch size: 2"), "{ended:?}");
    let ended = run("send-one", &["--simulate", "--max-new-tokens", "4"]);
    assert!(ended.0.is_ok() && ended.1.contains("Latency (s)"), "{ended:?}");
}
