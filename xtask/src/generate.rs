//! `cargo xtask gen`: the pages of `docs/src/reference` that are made from the real things.

use crate::shell;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Write the generated pages of docs/src/reference.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Compare instead of writing; a difference is an error
    #[arg(long)]
    pub(crate) check: bool,
}

const FOLDER: &str = "docs/src/reference";

/// The programs whose `--help` is shown, with their subcommands.
const PROGRAMS: [(&str, &[&str]); 6] = [
    ("bench-serving", &["analyze"]),
    (
        "bench-vllm",
        &[
            "serve",
            "throughput",
            "latency",
            "long-document-qa",
            "structured-output",
            "sweep",
            "sweep serve",
            "sweep serve_workload",
            "sweep plot",
            "sweep plot_pareto",
            "hash",
            "prefix-block-hash",
        ],
    ),
    ("bench-one-batch-server", &[]),
    ("profiler", &["start", "stop", "flush-cache", "server-info"]),
    ("send-one", &[]),
    ("sim-server", &[]),
];

/// The packages of those programs.
pub(crate) fn binaries() -> [&'static str; PROGRAMS.len()] {
    PROGRAMS.map(|(name, _)| name)
}

/// Makes every generated page, and writes or compares it.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let binaries = shell::release_binaries(&binaries())?;
    let mut pages = reference_pages()?;
    pages.insert("command-line.md".to_owned(), command_line(&binaries)?);
    let mut stale = Vec::new();
    for (name, text) in pages {
        let path = shell::root().join(FOLDER).join(&name);
        if fs::read_to_string(&path).is_ok_and(|old| old == text) {
            continue;
        }
        if arguments.check {
            stale.push(name);
        } else {
            fs::write(&path, text)?;
            println!("gen: wrote {FOLDER}/{name}");
        }
    }
    if !stale.is_empty() {
        bail!("stale pages in {FOLDER}: {}; run `cargo xtask gen`", stale.join(", "));
    }
    Ok(())
}

/// The pages that the crates' own tables make, by file name.
fn reference_pages() -> Result<BTreeMap<String, String>> {
    let mut cargo = shell::cargo(["run", "--quiet", "-p", "xtask", "--features", "reference"]);
    let pages = shell::read(cargo.args(["--bin", "reference"]))?;
    serde_json::from_str(&pages).context("the reference pages are not JSON")
}

fn command_line(folder: &Path) -> Result<String> {
    let mut text = String::from(
        "<!-- made by `cargo xtask gen`; do not edit -->\n# Command line\n\n\
         What the programs say about themselves with `--help`.\n",
    );
    for (program, subcommands) in PROGRAMS {
        let own = help(&folder.join(program), None)?;
        write!(text, "\n## {program}\n\n```text\n{own}\n```\n")?;
        for subcommand in subcommands {
            let own = help(&folder.join(program), Some(subcommand))?;
            write!(text, "\n### {program} {subcommand}\n\n```text\n{own}\n```\n")?;
        }
    }
    Ok(text)
}

/// The help text at a fixed width, whatever terminal and environment this program runs in.
fn help(binary: &Path, subcommand: Option<&str>) -> Result<String> {
    let mut command = shell::command(binary);
    let words = subcommand.into_iter().flat_map(str::split_whitespace);
    command.args(words).arg("--help").env_clear().env("COLUMNS", "100").stdin(Stdio::null());
    let text = shell::read(&mut command)?;
    Ok(text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned())
}
