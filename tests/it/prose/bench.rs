//! Calls of the command, in this process or in one of its own.

use super::peer::{DEADLINE, Peer};
use crate::support::{Folder, busy_machine, program, root};
use bench_serving::run;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use servebench_cli::{Environment, Io};
use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::RwLockReadGuard;
use std::sync::mpsc;
use std::thread;

/// A command line in the making, and a folder for what it writes.
pub(super) struct Bench {
    words: Vec<String>,
    folder: Folder,
}

/// How a call ended and what it left.
#[derive(Debug)]
pub(super) struct Ended {
    /// The exit code.
    pub(super) code: i32,
    /// Standard output.
    pub(super) out: String,
    /// Standard error.
    pub(super) err: String,
    /// The result file, whose lines must be strict JSON.
    pub(super) lines: Vec<Value>,
}

impl Bench {
    /// One chat request to `peer`, without anything around it.
    pub(super) fn of(peer: &Peer) -> Self {
        Self::at(&peer.url())
    }

    /// The same to any address.
    pub(super) fn at(url: &str) -> Self {
        let bench = Self { words: Vec::new(), folder: Folder::new() };
        let (tokenizer, output) = (tokenizer("bytes"), bench.folder.path("out.jsonl"));
        bench
            .and("--backend sglang-oai-chat --model m --dataset-name random-ids --num-prompts 1")
            .and("--random-input-len 8 --random-output-len 4 --random-range-ratio 1.0")
            .and("--warmup-requests 0 --ready-check-timeout-sec 0 --disable-tqdm --seed 1")
            .and("--output-details --idle-timeout 50")
            .with("--base-url", url)
            .with("--tokenizer", tokenizer.to_str().expect("a path in UTF-8"))
            .with("--output-file", output.to_str().expect("a path in UTF-8"))
    }

    /// Adds flags, written with spaces. Of a repeated flag the last counts.
    pub(super) fn and(mut self, flags: &str) -> Self {
        self.words.extend(flags.split_whitespace().map(str::to_owned));
        self
    }

    /// Adds a flag with a value that may hold spaces.
    pub(super) fn with(mut self, flag: &str, value: &str) -> Self {
        self.words.extend([flag.to_owned(), value.to_owned()]);
        self
    }

    /// Takes a flag and its values back.
    pub(super) fn without(mut self, flag: &str) -> Self {
        let mut inside = false;
        self.words.retain(|word| {
            if word.starts_with("--") {
                inside = word == flag;
            }
            !inside
        });
        self
    }

    /// A file in the call's folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    /// Writes a file into the call's folder and gives its path.
    pub(super) fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("a file");
        path.to_string_lossy().into_owned()
    }

    /// Calls the command in this process.
    pub(super) fn run(&self) -> Ended {
        self.run_with([])
    }

    /// The same with these environment variables.
    pub(super) fn run_with<const N: usize>(&self, variables: [(&str, &str); N]) -> Ended {
        let _busy = busy_machine();
        let (io, captured) = Io::captured();
        let words = self.words.iter().map(Into::into).collect();
        let (code, failure) = match run(words, &Environment::from_pairs(variables), &io) {
            Ok(code) => (code, String::new()),
            Err(failure) => (failure.code, failure.to_string()),
        };
        self.ended(code.number().into(), captured.out(), captured.err() + &failure)
    }

    fn ended(&self, code: i32, out: String, err: String) -> Ended {
        assert!(!err.contains("panicked"), "{err}");
        let lines = if self.path("out.jsonl").exists() {
            self.folder.results("out.jsonl")
        } else {
            Vec::new()
        };
        Ended { code, out, err, lines }
    }

    /// Starts the command as a process, below a shell that first does `limits`.
    pub(super) fn start_below(&self, limits: &str) -> Running<'_> {
        let busy = busy_machine();
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{limits} exec \"$0\" \"$@\"")).arg(program());
        command.args(&self.words).current_dir(self.path("")).stdin(Stdio::null());
        command.env_clear().env("HF_HUB_OFFLINE", "1").env("HOME", self.path(""));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the program starts");
        let pid = Pid::from_child(&child);
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let ((say, talk), (end, ended)) = (mpsc::channel(), mpsc::channel());
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|l| say.send(l)));
        thread::spawn(move || end.send(child.wait_with_output()));
        Running { bench: self, pid, talk, said: RefCell::default(), ended, _busy: busy }
    }

    /// Starts the command as a process.
    pub(super) fn start(&self) -> Running<'_> {
        self.start_below("")
    }
}

/// The command as a process under way.
pub(super) struct Running<'a> {
    bench: &'a Bench,
    pid: Pid,
    talk: mpsc::Receiver<String>,
    said: RefCell<String>,
    ended: mpsc::Receiver<std::io::Result<std::process::Output>>,
    _busy: RwLockReadGuard<'static, ()>,
}

impl Running<'_> {
    pub(super) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("it is running");
    }

    /// The processes that it has started.
    pub(super) fn children(&self) -> Vec<u32> {
        let tasks = format!("/proc/{}/task", self.pid.as_raw_nonzero());
        let tasks = std::fs::read_dir(tasks).into_iter().flatten().flatten();
        let children = |task: std::fs::DirEntry| {
            std::fs::read_to_string(task.path().join("children")).unwrap_or_default()
        };
        let children: String = tasks.map(children).collect();
        children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
    }

    /// Waits until it says `word` on standard error.
    #[track_caller]
    pub(super) fn wait_until_it_says(&self, word: &str) {
        while !self.said.borrow().contains(word) {
            let line = self.talk.recv_timeout(DEADLINE);
            let line = line.unwrap_or_else(|_| panic!("no `{word}` in {}", self.said.borrow()));
            self.said.borrow_mut().push_str(&(line + "\n"));
        }
    }

    /// Waits for its end. A signal that nobody caught counts as code -1.
    #[track_caller]
    pub(super) fn wait(self) -> Ended {
        let Ok(output) = self.ended.recv_timeout(DEADLINE) else {
            self.signal(Signal::KILL);
            panic!("the program does not end");
        };
        let output = output.expect("its output");
        let code = output.status.code().unwrap_or(-1);
        let rest: String = self.talk.iter().map(|line| line + "\n").collect();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        self.bench.ended(code, out, self.said.take() + &rest)
    }
}

impl Ended {
    /// Panics with what was said unless the exit code is `code`.
    #[track_caller]
    pub(super) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        self
    }

    /// The only result line.
    #[track_caller]
    pub(super) fn line(&self) -> &Value {
        let [line] = &self.lines[..] else { panic!("not one line: {}{}", self.out, self.err) };
        line
    }

    /// Panics unless each of `words` is in what was said to the person.
    #[track_caller]
    pub(super) fn says(&self, words: &[&str]) {
        for word in words {
            assert!(self.err.contains(word), "no `{word}` in: {}", self.err);
        }
    }

    /// Everything that the call left for others to read.
    pub(super) fn everything(&self) -> String {
        let lines: String = self.lines.iter().map(ToString::to_string).collect();
        format!("{}{}{lines}", self.out, self.err)
    }
}

/// A tokenizer of the cases.
pub(super) fn tokenizer(name: &str) -> PathBuf {
    root().join("tests/cases/tokenizers").join(name)
}

/// A tokenizer with some thousands of tokens.
pub(super) fn tiny_llama() -> String {
    root().join("tests/fixtures/tokenizers/tiny-llama").to_string_lossy().into_owned()
}

/// A number of a result line.
#[track_caller]
pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// A whole number of a result line.
#[track_caller]
pub(super) fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// The numbers of an array.
#[track_caller]
pub(super) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap_or_else(|| panic!("{value} is no array")).iter().map(number).collect()
}
