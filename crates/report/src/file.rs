//! Result files.

use crate::RunInfo;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a result was not written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The folder of the result file does not exist and cannot be created.
    #[error("cannot create folder `{}`", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The result file cannot be opened for writing: it is a folder, or read-only.
    #[error("cannot open result file `{}` for appending", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The result file was opened and could not be written: the disk is full.
    #[error("cannot write to result file `{}`", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Makes sure, before a run, that its result can be written after it.
///
/// Creates missing folders, and the file itself when it is missing: an empty file is no harm, and
/// removing one that another process may be writing to would be.
pub fn check_writable(path: &Path) -> Result<(), ReportError> {
    open(path).map(drop)
}

/// Appends one line to a file, which is created when it is missing, and so are its folders.
///
/// The whole line goes out in one write to a file opened for appending, so that lines of concurrent
/// runs never mix, and under a lock where the file system has locks. A file that lacks its last
/// newline gets one first; `line` gets one when it has none.
pub fn append_line(path: &Path, line: &str) -> Result<(), ReportError> {
    let mut file = open(path)?;
    let failed = |source| ReportError::Write { path: path.to_owned(), source };
    // Another run's line, half written, would look like a file without its last newline. Without a
    // lock (some network file systems have none) that costs an empty line; a result lost would be
    // worse. Closing the file unlocks it.
    file.lock().ok();
    let separator = if lacks_newline(&mut file).map_err(failed)? { "\n" } else { "" };
    let end = if line.ends_with('\n') { "" } else { "\n" };
    let mut parts = [separator, line, end].map(|part| IoSlice::new(part.as_bytes()));
    write_all_at_once(&mut file, &mut parts).map_err(failed)
}

fn open(path: &Path) -> Result<File, ReportError> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let failed = |source| ReportError::Folder { path: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let failed = |source| ReportError::Open { path: path.to_owned(), source };
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    // Reading is for the last byte only; a file (or device) that allows no reading will do too.
    options.clone().read(true).open(path).or_else(|_| options.open(path)).map_err(failed)
}

fn lacks_newline(file: &mut File) -> io::Result<bool> {
    let meta = file.metadata()?;
    if !meta.is_file() || meta.len() == 0 {
        return Ok(false);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    // A file that cannot be read gets no newline it may not need.
    Ok(file.read_exact(&mut last).is_ok() && last != *b"\n")
}

/// One gathering write; more only where the system takes less than all (over 2 GiB, full disk).
fn write_all_at_once(file: &mut File, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
    // Empty parts at the front would read as "nothing written".
    IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        match file.write_vectored(parts) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut parts, written),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The Python tool's default name of a result file: `{backend}_{MMDD}_{prompts}_{dataset}.jsonl`,
/// with input and output lengths for the `random` datasets.
///
/// `mmdd` is the local date. Characters that do not belong in a file name become `-`.
pub fn auto_file_name(info: &RunInfo, mmdd: &str, num_prompts: u64) -> String {
    let what = if info.dataset_name.starts_with("random") {
        let length = |tokens: Option<u64>| tokens.unwrap_or(0);
        format!("{}_{}", length(info.random_input_len), length(info.random_output_len))
    } else {
        info.dataset_name.clone()
    };
    let name = format!("{}_{mmdd}_{num_prompts}_{what}", info.backend);
    let safe = |c: char| if c.is_alphanumeric() || "._-".contains(c) { c } else { '-' };
    format!("{}.jsonl", name.chars().map(safe).collect::<String>())
}
