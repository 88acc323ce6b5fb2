//! Commands that start one other tool: golden files, benches, fuzzing.

use crate::{busy, ceiling, count, shell, smoke};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Make the golden files anew with the Python tools' own generators.
#[derive(clap::Args, Debug)]
pub(crate) struct Golden {
    /// Compare instead of writing; a difference is an error
    #[arg(long)]
    check: bool,
    /// The Python of an environment with the packages that tests/golden/PROVENANCE.md names
    #[arg(long, value_name = "PATH", default_value = "python3")]
    python: String,
}

const GOLDEN: &str = "tests/golden";

/// Runs `make_golden.py`, and with `--check` compares what it makes with what is there.
pub(crate) fn golden(arguments: &Golden) -> Result<()> {
    let mut maker = shell::command("python3");
    maker.arg(format!("{GOLDEN}/make_golden.py")).args(["--python", &arguments.python]);
    if !arguments.check {
        return shell::run(&mut maker);
    }
    let folder = smoke::empty_folder("golden")?;
    shell::run(maker.arg("--out").arg(&folder))?;
    let mut different = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let name = entry?.file_name();
        if lasting(&folder.join(&name))? != lasting(&shell::root().join(GOLDEN).join(&name))? {
            different.push(name.display().to_string());
        }
    }
    if !different.is_empty() {
        bail!("differs from {GOLDEN}: {}; look in {}", different.join(", "), folder.display());
    }
    println!("golden: nothing has changed");
    Ok(())
}

/// A golden file without what is another at every making: clock readings and library versions.
fn lasting(file: &Path) -> Result<Value> {
    let text =
        fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut value = serde_json::from_str(&text)?;
    forget_the_passing(&mut value);
    Ok(value)
}

fn forget_the_passing(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(forget_the_passing),
        Value::Object(fields) => {
            for passing in ["console", "made_with", "user-agent"] {
                fields.remove(passing);
            }
            if fields.get("path").is_some_and(|path| path == "/start_profile")
                && let Some(Value::Object(headers)) = fields.get_mut("headers")
            {
                headers.remove("content-length"); // the body holds the time
            }
            fields.values_mut().for_each(forget_the_passing);
        }
        _ => {}
    }
}

/// Run the benches, or compare the client with its peers, at leisure and kept from reading.
#[derive(clap::Args, Debug)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: Option<BenchCommand>,
    /// Run only the benches whose name contains this
    filter: Option<String>,
}

#[derive(clap::Subcommand, Debug)]
enum BenchCommand {
    /// Client against client on one core each, with the server on another
    Ceiling(ceiling::Arguments),
    /// What a client says that is kept from reading in time, with kernel stamps and without
    Busy(busy::Arguments),
    /// Instructions per decoded frame (needs valgrind)
    Count,
}

/// Runs the divan benches, or a comparison.
pub(crate) fn bench(arguments: &Bench) -> Result<()> {
    match &arguments.what {
        Some(BenchCommand::Ceiling(ceiling)) => return ceiling::run(ceiling),
        Some(BenchCommand::Busy(busy)) => return busy::run(busy),
        Some(BenchCommand::Count) => return count::run(),
        None => {}
    }
    let mut cargo = shell::cargo(["bench", "-p", "servebench-benches"]);
    if let Some(filter) = &arguments.filter {
        cargo.args(["--", filter]);
    }
    shell::run(&mut cargo)
}

/// Run one fuzz target for a while.
#[derive(clap::Args, Debug)]
pub(crate) struct Fuzz {
    /// A target of fuzz/; without one, the targets are listed
    target: Option<String>,
    /// How long to run, in seconds
    #[arg(long, default_value_t = 60)]
    seconds: u32,
}

/// Runs one target of `fuzz/` with cargo-fuzz.
pub(crate) fn fuzz(arguments: &Fuzz) -> Result<()> {
    if !shell::has_cargo("fuzz") {
        bail!(
            "cargo-fuzz is not installed; `cargo install cargo-fuzz` and a nightly toolchain are needed"
        );
    }
    let mut cargo = shell::command("cargo");
    cargo.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").args(["+nightly", "fuzz"]);
    match &arguments.target {
        None => cargo.arg("list"),
        Some(target) => {
            let corpus = format!("fuzz/corpus/{target}");
            fs::create_dir_all(shell::root().join(&corpus))?;
            cargo.args(["run", target, &corpus]);
            let seeds = format!("fuzz/seeds/{target}");
            if shell::root().join(&seeds).is_dir() {
                cargo.arg(&seeds);
            }
            cargo.args(["--", &format!("-max_total_time={}", arguments.seconds)])
        }
    };
    shell::run(&mut cargo)
}
