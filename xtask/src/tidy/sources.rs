//! Lengths, machine paths, stubs and forbidden doors in source text.

use crate::shell;
use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};

/// Longest Rust file, in lines.
const LONGEST_FILE: usize = 900;
/// Longest `main.rs` of a binary, in lines: it chooses parts and leaves.
const LONGEST_MAIN: usize = 30;

/// Folders that exist on one machine only. In pieces, so that this file holds none of them.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// What unfinished Rust looks like, in pieces for the same reason.
const STUBS: &[&str] =
    &[concat!("todo", "!("), concat!("unimplemented", "!("), concat!("#[ig", "nore")];

/// Crates that know neither files, sockets nor the environment.
const PURE: &[&str] = &["core", "arrival", "metrics", "backends", "plots", "hashes", "journal"];
const DOORS: &[&str] = &["std::fs", "std::net", "std::env", "std::process"];

/// Checks the text of every file of the repository.
pub(super) fn check(files: &[PathBuf]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for file in files {
        let bytes = fs::read(shell::root().join(file))?;
        if bytes.contains(&0) {
            continue; // a model or a picture
        }
        complaints.extend(complaints_about(file, &String::from_utf8_lossy(&bytes)));
    }
    Ok(complaints)
}

fn complaints_about(file: &Path, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let name = file.display();
    for path in MACHINE_PATHS {
        if let Some(line) = line_with(text, path) {
            complaints.push(format!("{name}:{line} names the machine path {path}"));
        }
    }
    if file.extension().is_none_or(|end| end != "rs") {
        return complaints;
    }
    for stub in STUBS {
        if let Some(line) = line_with(text, stub) {
            complaints.push(format!("{name}:{line} holds `{stub}`: finish it or leave it out"));
        }
    }
    let lines = text.lines().count();
    if lines > LONGEST_FILE {
        complaints
            .push(format!("{name} has {lines} lines, more than {LONGEST_FILE}: split it by idea"));
    }
    if file.starts_with("bins") && file.ends_with("src/main.rs") && lines > LONGEST_MAIN {
        complaints.push(format!(
            "{name} has {lines} lines, more than {LONGEST_MAIN}: move the work into its lib.rs"
        ));
    }
    let pure = PURE.iter().any(|idea| file.starts_with(Path::new("crates").join(idea).join("src")));
    for door in DOORS.iter().filter(|_| pure) {
        if let Some(line) = line_with(text, door) {
            complaints.push(format!("{name}:{line} uses {door} in a crate that does no I/O"));
        }
    }
    complaints
}

/// The first line, from 1, that holds `needle`.
fn line_with(text: &str, needle: &str) -> Option<usize> {
    text.lines().position(|line| line.contains(needle)).map(|line| line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_complains_once() {
        let path = MACHINE_PATHS[0];
        let stub = STUBS[0];
        let long = "\n".repeat(LONGEST_FILE + 1);
        for (file, text, wanted) in [
            ("README.md", format!("see {path}x"), 1),
            ("README.md", stub.to_owned(), 0),
            ("crates/run/src/a.rs", format!("\n{stub})"), 1),
            ("crates/run/src/a.rs", long, 1),
            ("crates/run/src/a.rs", "use std::fs;".to_owned(), 0),
            ("crates/core/src/a.rs", "use std::fs;".to_owned(), 1),
            ("bins/x/src/main.rs", "\n".repeat(LONGEST_MAIN + 1), 1),
            ("bins/x/src/lib.rs", "\n".repeat(LONGEST_MAIN + 1), 0),
        ] {
            let complaints = complaints_about(Path::new(file), &text);
            assert_eq!(complaints.len(), wanted, "{file}: {complaints:?}");
        }
    }

    #[test]
    fn a_complaint_names_the_line() {
        let complaints = complaints_about(Path::new("x.rs"), &format!("a\nb {}", STUBS[1]));
        assert!(complaints[0].starts_with("x.rs:2 "), "{complaints:?}");
    }
}
