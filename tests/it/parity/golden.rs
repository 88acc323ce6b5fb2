//! Recorded runs, and running them again.

use super::capture::{Answer, Call, Capture};
use crate::support::root;
use serde_json::Value;
use servebench_cli::{Code, Environment, Io};
use std::array;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Runs at a time: a run mostly waits for its threads and sockets.
const AT_ONCE: usize = 6;

/// Environment variables that a recording may set, and their values where it does not; empty is not set.
const VARIABLES: [(&str, &str); 5] = [
    ("OPENAI_API_KEY", ""),
    ("API_KEY", ""),
    ("SGLANG_IS_IN_CI", ""),
    ("SGLANG_TORCH_PROFILER_DIR", ""),
    ("HF_HUB_OFFLINE", "1"),
];

/// One recorded run of the Python tool.
#[derive(Debug)]
pub(super) struct Case(Value);

/// The cases of `tests/golden/<name>.json`.
pub(super) fn cases(name: &str) -> Vec<Case> {
    let path = root().join("tests/golden").join(name).with_extension("json");
    let text = std::fs::read_to_string(path).expect("the golden file");
    let mut golden: Value = serde_json::from_str(&text).expect("JSON");
    let cases: Vec<Value> = serde_json::from_value(golden["cases"].take()).expect("cases");
    cases.into_iter().map(Case).collect()
}

impl Case {
    pub(super) fn name(&self) -> &str {
        self.0["name"].as_str().expect("a name")
    }

    /// A part of what was recorded.
    pub(super) fn get(&self, key: &str) -> &Value {
        &self.0[key]
    }

    /// The recorded array `key`; empty if there is none.
    pub(super) fn rows(&self, key: &str) -> &[Value] {
        self.0[key].as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// The recorded command line, with its placeholders.
    pub(super) fn arguments(&self) -> Vec<String> {
        let words = self.rows("argv").iter().filter_map(Value::as_str);
        words.map(str::to_owned).collect()
    }

    pub(super) fn has(&self, flag: &str) -> bool {
        self.rows("argv").iter().any(|word| word == flag)
    }

    /// The value of a flag; of a repeated flag the last.
    pub(super) fn value(&self, flag: &str) -> Option<&str> {
        let words = self.rows("argv");
        let at = words.iter().rposition(|word| word == flag)?;
        words.get(at + 1)?.as_str()
    }

    /// The calls that were recorded.
    pub(super) fn calls(&self) -> Vec<Call> {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let call = |request: &Value| Call {
            method: text(&request["method"]),
            path: text(&request["path"]),
            headers: serde_json::from_value(request["headers"].clone()).expect("headers"),
            body: request.get("body").cloned(),
            raw: Vec::new(),
        };
        self.rows("requests").iter().map(call).collect()
    }
}

/// A recorded run that was made again.
#[derive(Debug)]
pub(super) struct Rerun {
    /// How it ended: its exit code, or why it has none.
    pub(super) ended: Result<Code, String>,
    /// What the server was asked, with placeholders like those of the recording.
    pub(super) calls: Vec<Call>,
    /// Standard output.
    pub(super) printed: String,
    /// The result line.
    pub(super) line: Value,
}

/// Runs `case` again with these arguments against a server that answers with `respond`.
pub(super) fn rerun(
    case: &Case,
    arguments: &[String],
    respond: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static,
) -> Rerun {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let server = Capture::start(respond).expect("a server on loopback");
    let places = Places::new(case, &server, &folder);
    let arguments = arguments.iter().map(|word| places.fill(word).into()).collect();
    let values = VARIABLES
        .map(|(name, usual)| places.fill(case.get("environ")[name].as_str().unwrap_or(usual)));
    let set = case.get("environ").as_object().into_iter().flatten();
    for (name, _) in set {
        assert!(VARIABLES.iter().any(|(known, _)| known == name), "{}: {name}", case.name());
    }
    let pairs: [_; VARIABLES.len()] = array::from_fn(|i| (VARIABLES[i].0, &*values[i]));
    let environment = Environment::from_pairs(pairs);
    let (io, captured) = Io::captured();
    let ended = bench_serving::run(arguments, &environment, &io);
    let ended = ended.map_err(|failure| format!("{failure}\n{}", captured.err()));
    let line = std::fs::read_to_string(folder.path().join("result.jsonl")).ok();
    let line = line.and_then(|line| serde_json::from_str(&line).ok()).unwrap_or_default();
    let calls = server.calls().into_iter().map(|call| places.clean_call(call)).collect();
    Rerun { ended, calls, printed: captured.out(), line }
}

/// What stands behind the recording's placeholders in one run.
struct Places(Vec<(&'static str, String)>);

impl Places {
    fn new(case: &Case, server: &Capture, folder: &tempfile::TempDir) -> Self {
        let fixtures = root().join("tests/fixtures");
        let tokenizer = case.get("tokenizer").as_str().unwrap_or("tiny-llama");
        let tokenizer = fixtures.join("tokenizers").join(tokenizer);
        let text = |path: &std::path::Path| path.to_str().expect("a path in UTF-8").to_owned();
        // The longer of two that begin alike comes first.
        Self(vec![
            ("{URL}", format!("http://{}", server.address)),
            ("{HOST}", server.address.to_string()),
            ("{TOKENIZER}", text(&tokenizer)),
            ("{FIXTURES}", text(&fixtures)),
            ("{DIR}", text(folder.path())),
        ])
    }

    fn fill(&self, text: &str) -> String {
        let fill = |text: String, (name, real): &(&str, String)| text.replace(name, real);
        self.0.iter().fold(text.to_owned(), fill)
    }

    /// The inverse of `fill`; a folder named after the time becomes `{TIME}` too.
    fn clean(&self, text: &str) -> String {
        let clean = |text: String, (name, real): &(&str, String)| text.replace(real, name);
        let text = self.0.iter().fold(text.to_owned(), clean);
        let timed = |folder: &str, time: &str| {
            (folder == "/tmp" || folder.starts_with("{DIR}"))
                && time.parse::<f64>().is_ok_and(|time| time > 1e9)
        };
        match text.rsplit_once('/') {
            Some((folder, time)) if timed(folder, time) => format!("{folder}/{{TIME}}"),
            _ => text,
        }
    }

    fn clean_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.clean(text).into(),
            Value::Array(values) => values.iter().map(|value| self.clean_value(value)).collect(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| (key.clone(), self.clean_value(value))).collect()
            }
            other => other.clone(),
        }
    }

    fn clean_call(&self, call: Call) -> Call {
        Call {
            headers: call.headers.into_iter().map(|(k, v)| (k, self.clean(&v))).collect(),
            body: call.body.map(|body| self.clean_value(&body)),
            ..call
        }
    }
}

/// Checks all cases, some at a time. `check` gives what is wrong with one; the test fails with all of it.
pub(super) fn check_all(
    cases: &[Case],
    at_once: usize,
    check: impl Fn(&Case) -> Vec<String> + Sync,
) {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, SeqCst)) {
                    let found = check(case).into_iter();
                    let found = found.map(|what| format!("{}: {what}", case.name()));
                    wrong.lock().expect("no check died over its findings").extend(found);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no check died over its findings");
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

pub(super) fn check_each(cases: &[Case], check: impl Fn(&Case) -> Vec<String> + Sync) {
    check_all(cases, AT_ONCE, check);
}
