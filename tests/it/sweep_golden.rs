//! `bench-vllm sweep` beside the Python tool (`tests/golden/vllm_sweep.json`): the same stand-in of server
//! and client gets the same calls in the same order, and what is printed and left is the same.

use crate::support::{Folder, Outcome, busy_machine, root};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};

/// A port of this machine that nobody listens at.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// Runs `bench-vllm` as a process of its own in a folder.
pub(crate) fn bench_vllm(folder: &Folder, words: &[&str]) -> Outcome {
    let _busy = busy_machine();
    let output = Command::new(env!("CARGO_BIN_EXE_bench-vllm-under-test"))
        .args(words)
        .current_dir(folder.path(""))
        .env_clear()
        .env("HF_HUB_OFFLINE", "1")
        .env("HOME", folder.path(""))
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// What our client's results are called while a run is under way is our own.
fn as_theirs(text: &str, port: &str) -> String {
    text.replace("/unfinished", "").replace(port, "{PORT}")
}

/// Every file of results with its text, by its path.
fn left(folder: &Path, below: &str, found: &mut BTreeMap<String, String>) {
    let Ok(entries) = fs::read_dir(folder.join(below)) else { return };
    for entry in entries {
        let entry = entry.expect("an entry");
        let name = format!("{below}/{}", entry.file_name().to_str().expect("a name in UTF-8"));
        if entry.file_type().expect("a kind").is_dir() {
            left(folder, &name, found);
        } else {
            found.insert(name.clone(), fs::read_to_string(folder.join(&name)).expect("text"));
        }
    }
}

/// What of a file is compared: JSON with the order of its keys, but not in whose words a failure is told;
/// tables by their cells, whose whole numbers stay whole here.
fn compared(name: &str, text: &str) -> Value {
    if Path::new(name).extension().is_some_and(|extension| extension == "csv") {
        let cell = |cell: &str| cell.parse().map_or_else(|_| Value::from(cell), |n: f64| n.into());
        return text.lines().map(|line| line.split(',').map(cell).collect::<Value>()).collect();
    }
    let mut value: Value = serde_json::from_str(text).unwrap_or_else(|_| panic!("{name}: {text}"));
    if name.ends_with("failure.json") {
        let written: &mut Map<String, Value> = value.as_object_mut().expect("an object");
        for word in ["error", "error_type"] {
            assert!(written.get(word).is_some_and(Value::is_string), "{name}: {written:?}");
            written.insert(word.to_owned(), Value::Null);
        }
    }
    // As text, so that the order of keys counts.
    value.to_string().into()
}

/// A server that no combination uses is started there, and not here.
fn without_idle_servers(printed: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for line in printed.lines() {
        let begun = kept.iter().rposition(|line| *line == "[BEGIN SERVER]");
        if line == "[END SERVER]"
            && let Some(begun) =
                begun.filter(|begun| !kept[*begun..].contains(&"[BEGIN BENCHMARK]"))
        {
            kept.truncate(begun);
        } else {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}

fn check(case: &Value) {
    let name = case["name"].as_str().expect("a name");
    let (folder, port) = (Folder::new(), free_port().to_string());
    symlink(env!("CARGO_BIN_EXE_sweep-stand-in"), folder.path("vllm")).expect("a link");
    for (file, value) in case["files"].as_object().into_iter().flatten() {
        fs::write(folder.path(file), value.to_string()).expect("a file");
    }
    // What a failure says is in our own words.
    let fails = name == "failures";
    for run in case["runs"].as_array().expect("runs") {
        for file in run["delete"].as_array().into_iter().flatten() {
            fs::remove_file(folder.path(file.as_str().expect("a path"))).expect("a file");
        }
        let arguments = run["arguments"].as_array().expect("arguments").iter();
        let arguments: Vec<String> =
            arguments.map(|word| word.as_str().expect("a word").replace("{PORT}", &port)).collect();
        let mut words = vec!["sweep", case["command"].as_str().expect("a command")];
        words.extend(arguments.iter().map(String::as_str));
        let outcome = bench_vllm(&folder, &words).expect_code(0);
        let printed = as_theirs(&outcome.stdout, &port);
        let wanted = without_idle_servers(run["stdout"].as_str().expect("text"));
        if !fails {
            assert_eq!(printed, wanted, "{name}");
        }
    }
    let calls = fs::read_to_string(folder.path("calls.jsonl")).unwrap_or_default();
    let calls: Vec<Value> = as_theirs(&calls, &port)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a call"))
        .collect();
    let wanted = case["calls"].as_array().expect("calls").clone();
    assert_eq!(without_unused(calls), without_unused(wanted), "{name}");
    let mut found = BTreeMap::new();
    left(&folder.path(""), "results", &mut found);
    let wanted = case["results"].as_object().expect("results");
    let names = |names: Vec<&String>| names.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(names(found.keys().collect()), names(wanted.keys().collect()), "{name}");
    for (file, text) in &found {
        let theirs = wanted[file].as_str().expect("text");
        let ours = as_theirs(text, &port);
        assert_eq!(compared(file, &ours), compared(file, theirs), "{name}: {file}");
    }
}

/// The calls without a server's start after which another one follows, or nothing.
fn without_unused(calls: Vec<Value>) -> Vec<Value> {
    let is_server = |call: Option<&Value>| call.is_none_or(|call| call[0] == "serve");
    let followed: Vec<bool> = (0..calls.len())
        .map(|at| !(is_server(calls.get(at)) && is_server(calls.get(at + 1))))
        .collect();
    calls.into_iter().zip(followed).filter(|(_, used)| *used).map(|(call, _)| call).collect()
}

#[test]
fn sweeps_are_those_of_the_python_tool() {
    let golden = fs::read(root().join("tests/golden/vllm_sweep.json")).expect("the golden file");
    let golden: Value = serde_json::from_slice(&golden).expect("JSON");
    let cases = golden["cases"].as_array().expect("cases");
    assert_eq!(cases.len(), 10);
    // Most of a case is waiting for its server.
    std::thread::scope(|scope| {
        for case in cases {
            scope.spawn(move || check(case));
        }
    });
}
