//! `bench-vllm multi-turn` and `convert-sharegpt` beside what vLLM's scripts did, from
//! `tests/golden/vllm_multi_turn.json` (whose `PROVENANCE_VLLM.md` tells how it was recorded), and against the
//! simulated server.

use crate::parity::capture::{Answer, Call, Capture, is_generation};
use crate::support::root;
use serde_json::{Map, Value, json};
use servebench_cli::{Code, Environment, Failure, Io};
use std::path::Path;

fn golden() -> Value {
    let text = std::fs::read_to_string(root().join("tests/golden/vllm_multi_turn.json"));
    serde_json::from_str(&text.expect("the golden file")).expect("JSON")
}

fn rows<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("no list `{key}`"))
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn run(words: &[String]) -> (Result<Code, Failure>, String, String) {
    let (io, captured) = Io::captured();
    let environment = Environment::from_pairs([("HF_HUB_OFFLINE", "1")]);
    let ended = bench_vllm::run(words.iter().map(Into::into).collect(), &environment, &io);
    (ended, captured.out(), captured.err())
}

/// The reply to a body, as the recorder's server gives it.
fn answer(call: &Call) -> Answer {
    let body = call.body.clone().unwrap_or_default();
    let count = rows(&body, "messages").len();
    let mut pieces = vec![format!("answer {count}")];
    pieces.extend(std::iter::repeat_n(" more".to_owned(), count + 2));
    if body.get("stream").is_none() {
        let message = json!({"role": "assistant", "content": pieces.concat()});
        let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
        return Answer::json(&json!({"choices": [choice]}));
    }
    let last = pieces.len() - 1;
    let chunk = |(at, piece): (usize, &String)| {
        let reason = (at == last).then_some("stop");
        json!({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": reason}]})
    };
    Answer::events(&pieces.iter().enumerate().map(chunk).collect::<Vec<_>>())
}

/// The files that the recorder made.
fn inputs(folder: &Path, golden: &Value) {
    let line = |number: u32| format!("Line {number} of a text that nobody has to read. ");
    let words: String = (1..=4000).map(line).collect();
    std::fs::write(folder.join("words.txt"), words).expect("a file");
    std::fs::write(folder.join("talks.json"), golden["talks"].to_string()).expect("a file");
}

fn config(folder: &Path, config: &Value) -> String {
    let path = folder.join("generator.json");
    // Read beside the configuration.
    let text = config.to_string().replace("{TEXT}", "words.txt");
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a path in UTF-8").to_owned()
}

struct Again {
    calls: Vec<Call>,
    printed: String,
    stats: Vec<Value>,
    output: Value,
}

/// A recorded command line once more, against a server that answers alike.
fn again(case: &Value, golden: &Value) -> Again {
    let folder = tempfile::tempdir().expect("a folder");
    inputs(folder.path(), golden);
    let server = Capture::start(|call, _| {
        if is_generation(call) { answer(call) } else { Answer::text(404, "no such route\n") }
    })
    .expect("a server");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let tokenizer = root().join("tests/fixtures/tokenizers/tiny-llama");
    let tokenizer = tokenizer.to_str().expect("UTF-8");
    let mut words: Vec<String> = ["multi-turn", "-m", tokenizer, "--served-model-name", "m", "-u"]
        .map(str::to_owned)
        .to_vec();
    words.push(format!("http://{}", server.address));
    let files = ["--stats-json-output", &path("stats.json"), "-o", &path("out.json")];
    words.extend(files.map(str::to_owned));
    let generator = || config(folder.path(), &rows(golden, "generated")[0]["config"]);
    let flags: Vec<String> = rows(case, "flags")
        .iter()
        .map(|word| if word == "{GENERATOR}" { generator() } else { text(word).to_owned() })
        .collect();
    if !flags.contains(&"-i".to_owned()) {
        words.extend(["-i".to_owned(), path("talks.json")]);
    }
    words.extend(flags);
    words.push("--disable-tqdm".to_owned());
    let (ended, printed, said) = run(&words);
    let name = &case["name"];
    assert!(matches!(ended, Ok(Code::Done)), "{name}: {ended:?}\n{printed}{said}");
    assert!(!format!("{printed}{said}").contains("hidden"), "{name}: the key is shown");
    let read = |name: &str| -> Value {
        let text = std::fs::read_to_string(path(name)).expect("a file");
        serde_json::from_str(&text).expect("JSON")
    };
    let calls = server.calls().into_iter().filter(is_generation).collect();
    let stats = read("stats.json").as_array().expect("a list").clone();
    Again { calls, printed, stats, output: read("out.json") }
}

/// What differs on purpose: see the reference of differences.
fn as_upstream(body: &Value, limited: bool) -> Value {
    let mut body = body.clone();
    let fields = body.as_object_mut().expect("an object");
    assert_eq!(fields.remove("temperature"), Some(json!(0.0)));
    assert!(fields.remove("seed").is_some_and(|seed| seed.is_u64()));
    assert_eq!(fields.remove("min_tokens").is_some(), limited, "{body}");
    if let Some(options) = body.get_mut("stream_options") {
        assert_eq!(*options, json!({"include_usage": true}));
        *options = json!({"include_usage": false});
    }
    body
}

fn header(call: &Call, name: &str) -> Option<String> {
    call.headers.get(name).cloned()
}

#[test]
fn requests_are_those_of_the_script_in_its_order() {
    let golden = golden();
    for case in rows(&golden, "runs") {
        let name = text(&case["name"]);
        let ours = again(case, &golden);
        let theirs = rows(case, "calls");
        // The script leaves when there is nothing to begin any more, whatever is unfinished.
        assert!(ours.calls.len() >= theirs.len(), "{name}: {} calls", ours.calls.len());
        let complete = !name.contains("held");
        assert_eq!(complete, ours.calls.len() == theirs.len(), "{name}: {}", ours.calls.len());
        for (call, want) in ours.calls.iter().zip(theirs) {
            let mut body = as_upstream(call.body.as_ref().expect("a body"), name != "no limits");
            if name == "generated" {
                for message in body["messages"].as_array_mut().expect("a list") {
                    *message = json!(digest(text(&message["content"])));
                }
            }
            assert_eq!(body, want["body"], "{name}");
            assert_eq!(call.path, "/v1/chat/completions");
            for header_name in ["authorization", "x-session-id", "x-one", "x-two"] {
                let want = want["headers"].get(header_name).map(|value| text(value).to_owned());
                assert_eq!(header(call, header_name), want, "{name}: {header_name}");
            }
        }
        compare_figures(name, &ours, case, complete);
    }
}

fn digest(text: &str) -> String {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(text.as_bytes());
    let (eight, _) = hash.split_first_chunk().expect("a hash of 32 bytes");
    format!("{:016x}", u64::from_be_bytes(*eight))
}

/// Figures of requests and tables, as far as they do not depend on time.
fn compare_figures(name: &str, ours: &Again, case: &Value, complete: bool) {
    let theirs = rows(case, "stats");
    let keys = |row: &Value| -> Vec<String> {
        row.as_object().map(|row| row.keys().cloned().collect()).unwrap_or_default()
    };
    for (row, want) in ours.stats.iter().zip(theirs) {
        let mut row: Map<String, Value> = row.as_object().expect("an object").clone();
        assert!(row.remove("server_input_num_tokens").is_some_and(|it| it.is_null()), "{name}");
        assert!(row.remove("server_cached_num_tokens").is_some_and(|it| it.is_null()));
        for time in ["ttft_ms", "tpot_ms", "latency_ms", "start_time_ms"] {
            assert!(row.insert(time.into(), Value::Null).is_some_and(|time| time.is_f64()));
        }
        // Theirs are gaps between chunks.
        let chunks = row["output_num_chunks"].as_u64().expect("a number");
        row.insert("output_num_chunks".into(), json!(chunks - 1));
        if name == "no stream" {
            row.insert("output_num_chunks".into(), json!(0));
            // They see no first chunk in a reply that is whole.
            row.insert("output_num_first_chunk_tokens".into(), json!(0));
        }
        assert_eq!(keys(&Value::Object(row.clone())), keys(want), "{name}");
        assert_eq!(Value::Object(row), *want, "{name}");
    }
    if !complete || name == "verbose" {
        return;
    }
    if name != "generated" && name != "max turns" {
        assert_eq!(ours.output, case["output"], "{name}");
    }
    let words = |text: &str| -> Vec<String> {
        let kept = ["input_num", "output_num_tokens", "Statistics summary", "seed=", "text_files"];
        let kept = text.lines().filter(|line| kept.iter().any(|kept| line.starts_with(kept)));
        kept.flat_map(str::split_whitespace).map(str::to_owned).collect()
    };
    let (ours, theirs) = (words(&ours.printed), words(text(&case["printed"])));
    assert_eq!(ours.len(), theirs.len(), "{name}: {ours:?} and {theirs:?}");
    for (word, want) in ours.iter().zip(&theirs) {
        // Where a column holds a time near zero, pandas writes all of it with three digits.
        let near = match (word.parse::<f64>(), want.parse::<f64>()) {
            (Ok(value), Ok(want)) => (value - want).abs() <= 0.006 * want.abs(),
            _ => word == want,
        };
        assert!(near, "{name}: {word} is not {want}");
    }
}

#[test]
fn generated_conversations_are_those_of_the_script() {
    use servebench_datasets::vllm::load_multi_turn;
    use servebench_tokens::{Hub, HubConfig, Tokenizer};
    let golden = golden();
    let folder = tempfile::tempdir().expect("a folder");
    inputs(folder.path(), &golden);
    let hub = Hub::new(HubConfig { offline: true, ..HubConfig::new(folder.path()) });
    let tokenizer = root().join("tests/fixtures/tokenizers/tiny-llama");
    let tokenizer = Tokenizer::load(tokenizer.to_str().expect("UTF-8"), &hub).expect("one");
    for case in rows(&golden, "generated") {
        let path = config(folder.path(), &case["config"]);
        let seed = case["seed"].as_u64().expect("a seed") as u32;
        let found = load_multi_turn(Path::new(&path), &tokenizer, seed).expect("conversations");
        let theirs = rows(case, "conversations");
        assert_eq!(found.conversations.len(), theirs.len());
        for (talk, want) in found.conversations.iter().zip(theirs) {
            let counts = tokenizer.count_batch(&talk.messages, false).expect("counts");
            let name = format!("{} {seed} {}", case["name"], talk.id);
            assert_eq!(json!(counts), want["tokens"], "{name}");
            let hashes: Vec<String> = talk.messages.iter().map(|it| digest(it)).collect();
            assert_eq!((json!(talk.id), json!(hashes)), (want["id"].clone(), want["sha"].clone()));
        }
    }
}

#[test]
fn converted_files_are_those_of_the_script() {
    let golden = golden();
    for case in rows(&golden, "converted") {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
        std::fs::write(path("shared.json"), golden["shared"].to_string()).expect("a file");
        let mut words = vec!["convert-sharegpt".to_owned(), path("shared.json"), path("out.json")];
        words.extend(rows(case, "flags").iter().map(|word| text(word).to_owned()));
        // The script keeps what is not ASCII and nothing else, and here is nothing else.
        words.push("--any-language".to_owned());
        let (ended, printed, said) = run(&words);
        assert!(matches!(ended, Ok(Code::Done)), "{ended:?} {said}");
        let written = std::fs::read_to_string(path("out.json")).expect("a file");
        let written: Value = serde_json::from_str(&written).expect("JSON");
        assert_eq!(written, case["output"], "{}", case["name"]);
        let table = |text: &str| -> Vec<String> {
            let named = ["user_", "assistant_", "conv_"];
            let rows = text.lines().filter(|line| named.iter().any(|name| line.starts_with(name)));
            rows.map(str::to_owned).collect()
        };
        assert_eq!(table(&printed), table(text(&case["printed"])), "{}", case["name"]);
        // What English is kept of it.
        words.pop();
        let (ended, ..) = run(&words);
        assert_eq!(ended.expect_err("nothing is ASCII").code, Code::Data);
    }
}

#[test]
fn a_simulated_run_shows_turn_after_turn() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let words =
        ["multi-turn", "--simulate", "-p", "4", "-k", "12", "--warmup-step", "--disable-tqdm"];
    let mut words: Vec<String> = words.map(str::to_owned).to_vec();
    words.extend(["--output-json".to_owned(), path("result.json")]);
    let (ended, printed, said) = run(&words);
    assert!(matches!(ended, Ok(Code::Done)), "{ended:?} {said}");
    for line in
        ["warmup_runtime_sec = ", "By turn (ms)", "turn 2 ", "24 of 24 conversations", "Verdict: "]
    {
        assert!(printed.contains(line), "no {line}:\n{printed}");
    }
    assert!(!printed.contains("turn 1 "), "the first turns came before:\n{printed}");
    let result = std::fs::read_to_string(path("result.json")).expect("a file");
    let result: Value = serde_json::from_str(&result).expect("JSON");
    assert_eq!(result["finished_conversations"], 24);
    assert_eq!(
        (&result["servebench"]["partial"], &result["servebench"]["failed"]),
        (&json!(false), &json!(0))
    );
    assert!(rows(&result["servebench"], "turns").len() >= 2);
}

#[test]
fn answers_that_differ_are_told_and_end_with_another_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let talk = folder.path().join("talk.json");
    let said = json!([{"id": "one", "messages": [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "never said"}]}]);
    std::fs::write(&talk, said.to_string()).expect("a file");
    let words =
        ["multi-turn", "--simulate", "--verify-output", "-i", talk.to_str().expect("UTF-8")];
    let (ended, _, said) = run(&words.map(str::to_owned));
    assert!(matches!(ended, Ok(Code::Gate)), "{ended:?} {said}");
    assert!(said.contains("one, turn 1: the answer is not the one expected"), "{said}");
}
