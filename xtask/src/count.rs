//! `cargo xtask bench count`: instructions per frame, which a busy machine does not change.

use crate::shell;
use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Stdio;

/// Frames of a reply, as the example has them.
const FRAMES: u64 = 128;

/// Replies decoded in the shorter and in the longer run: their difference leaves the start out.
const FEW: u64 = 20;
const MANY: u64 = 120;

/// Backends, and bytes a read: a stream that comes packed, and about one event at a time.
const CASES: [(&str, usize); 4] = [
    ("sglang", 1 << 20),
    ("sglang-oai", 1 << 20),
    ("sglang-oai-chat", 1 << 20),
    ("sglang-oai-chat", 240),
];

/// Counts with valgrind's callgrind and prints a table.
pub(crate) fn run() -> Result<()> {
    ensure!(shell::has("valgrind", "--version"), "valgrind is needed: it counts instructions");
    let build = ["build", "--release", "-p", "servebench-benches", "--example", "replies"];
    shell::run(&mut shell::cargo(build))?;
    let program = shell::target()?.join("release/examples/replies");
    println!("| backend | bytes a read | instructions a frame |\n|---|---|---|");
    for (backend, read) in CASES {
        let count = |replies| instructions(&program, backend, replies, read);
        let frame = (count(MANY)? - count(FEW)?) / ((MANY - FEW) * FRAMES);
        println!("| {backend} | {read} | {frame} |");
    }
    Ok(())
}

/// All instructions of one run.
fn instructions(program: &Path, backend: &str, replies: u64, read: usize) -> Result<u64> {
    let mut valgrind = shell::command("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program);
    valgrind.args([backend, &replies.to_string(), &read.to_string()]);
    let output = valgrind.stdout(Stdio::null()).output().context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind ended with {}: {said}", output.status);
    let total = said.lines().find_map(|line| line.split_once("Collected :"));
    let (_, total) = total.with_context(|| format!("valgrind counted nothing: {said}"))?;
    Ok(total.trim().parse()?)
}
