//! Starting the program under test and reading what it leaves.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use tempfile::TempDir;

/// The repository's root folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the repository")
}

/// The program under test.
pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_bench-serving-under-test")
}

/// Held shared by tests that start the program, alone by the one that compares times.
static MACHINE: RwLock<()> = RwLock::new(());

/// Waits until nothing else runs and keeps others from starting.
pub(crate) fn quiet_machine() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub(crate) fn busy_machine() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// One or more runs of the program in an empty folder of their own.
#[derive(Debug)]
pub(crate) struct Folder(TempDir);

/// What a run left on its standard streams.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The program with `arguments`, in this folder, without the caller's keys and settings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program());
        command
            .args(arguments)
            .current_dir(self.0.path())
            .env_clear()
            .env("HF_HUB_OFFLINE", "1")
            .env("HOME", self.0.path())
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        let _busy = busy_machine();
        let output = self.command(arguments).output().expect("the program starts");
        Outcome {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// The lines of a result file, each of which must be JSON.
    pub(crate) fn results(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.path(name)).expect("a result file");
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

impl Outcome {
    /// Both streams, for messages and searches.
    pub(crate) fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// Panics with what was said unless the exit code is `code`.
    #[track_caller]
    pub(crate) fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.said());
        self
    }
}
