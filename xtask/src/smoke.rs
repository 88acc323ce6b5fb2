//! `cargo xtask smoke`: the README's first command, and a look at what it leaves.

use crate::shell;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The README's first command.
pub(crate) const COMMAND: [&str; 6] =
    ["run", "--release", "-p", "bench-serving", "--", "--simulate"];

/// Longest time the command may take once it is built.
const LIMIT: Duration = Duration::from_secs(15);

/// Runs the command in an empty folder and checks exit status, table, result line and time.
pub(crate) fn run() -> Result<()> {
    shell::release_binaries(&["bench-serving"])?;
    let folder = empty_folder("smoke")?;
    let mut cargo = shell::cargo(["run", "--manifest-path"]);
    cargo.arg(shell::root().join("Cargo.toml")).args(&COMMAND[1..]).current_dir(&folder);
    let start = Instant::now();
    let table = shell::read(&mut cargo)?;
    let took = start.elapsed();
    println!("{table}");
    ensure!(table.contains(" Serving Benchmark Result "), "the table is missing");
    ensure!(took < LIMIT, "it took {:.1} s, more than {} s", took.as_secs_f64(), LIMIT.as_secs());
    let line = result_line(&folder)?;
    let completed = line["completed"].as_u64().context("`completed` is not a count")?;
    ensure!(completed > 0, "no request was completed");
    ensure!(line["failed"] == 0, "{} requests failed", line["failed"]);
    ensure!(line["simulated"] == true, "the result does not say that it was simulated");
    println!("smoke: {completed} requests completed in {:.1} s", took.as_secs_f64());
    Ok(())
}

/// An empty folder of its own below the build folder.
pub(crate) fn empty_folder(name: &str) -> Result<PathBuf> {
    let folder = shell::target()?.join("xtask").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// The last line of the one result file in `folder`.
pub(crate) fn result_line(folder: &Path) -> Result<Value> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "jsonl") {
            files.push(path);
        }
    }
    let [file] = files.as_slice() else {
        bail!("{} result files in {}, not one", files.len(), folder.display());
    };
    let text = fs::read_to_string(file)?;
    let line = text.lines().next_back().context("the result file is empty")?;
    serde_json::from_str(line).context("the result line is not JSON")
}
