//! The raw log of a run: each record as soon as its request is over, and what a report needs beside them.
//!
//! What is in the file is `servebench_journal::records`' business; what a report needs is ours, and is
//! `facts`.

mod facts;
mod parts;
mod sink;

pub(crate) use facts::{EndFacts, Metadata, PartFacts, another};
pub(crate) use parts::{History, RunPart, Whole};
pub(crate) use sink::{LogFile, RawLog, unix_ms};

use crate::{Code, Failure};
use servebench_journal::JournalError;
use servebench_journal::records::RecordLog;
use std::ffi::OsString;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Reads the log at `path`.
pub(crate) fn open(path: &Path) -> Result<RecordLog, Failure> {
    let file = File::open(path).map_err(|error| {
        Failure::new(Code::Data, anyhow::Error::new(error).context(path.display().to_string()))
    })?;
    read(path, &file)
}

fn read(path: &Path, file: &File) -> Result<RecordLog, Failure> {
    RecordLog::read(BufReader::with_capacity(1 << 16, file)).map_err(|error| {
        let hint = match &error {
            JournalError::Header => "the run was ended before it had begun: there is nothing in it",
            _ => "a raw log is what --raw-log writes",
        };
        let error = anyhow::Error::new(error).context(path.display().to_string());
        Failure::new(Code::Data, error).hint(hint)
    })
}

/// Flags that are no part of what a run is, or whose values may be secret.
const NOT_LOGGED: [&str; 5] = ["--header", "--raw-log", "--resume", "--record", "--record-prompts"];

/// Of arguments in plain form, those that a log keeps.
pub(crate) fn logged_arguments(plain: &[OsString]) -> Vec<String> {
    let mut kept = true;
    let mut logged = Vec::new();
    for word in plain {
        let word = word.to_string_lossy();
        if word.starts_with("--") && word.len() > 2 {
            let name = word.split('=').next().unwrap_or_default();
            kept = !NOT_LOGGED.contains(&name);
        }
        if kept {
            logged.push(word.into_owned());
        }
    }
    logged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_secret_is_not_logged() {
        let words = "--seed 1 --header Authorization=sk-1 X-Key=sk-2 --num-prompts=3 --header=A=sk-3 \
                     --raw-log x --goodput ttft:1 -5";
        let words: Vec<OsString> = words.split_whitespace().map(Into::into).collect();
        let want = ["--seed", "1", "--num-prompts=3", "--goodput", "ttft:1", "-5"];
        assert_eq!(logged_arguments(&words), want);
    }
}
