//! Starting the program and reading what it leaves.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// An empty folder in which the program runs, without the caller's keys and settings.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

/// How the program ended and what it said.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_profiler"));
        command.args(words).current_dir(self.0.path()).env_clear().stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Outcome {
        outcome(self.start(words))
    }

    pub(crate) fn start(&self, words: &[&str]) -> Child {
        let mut command = self.command(words);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
    }
}

/// Waits for the program's end.
pub(crate) fn outcome(child: Child) -> Outcome {
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Outcome { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr) }
}

impl Outcome {
    #[track_caller]
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    #[track_caller]
    pub(crate) fn says(self, words: &[&str]) -> Self {
        let said = format!("{}{}", self.out, self.err);
        for word in words {
            assert!(said.contains(word), "no `{word}` in: {said}");
        }
        self
    }
}
