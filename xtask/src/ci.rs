//! `cargo xtask ci`: every check, cheapest first, each announced with the time it took.

use crate::{generate, package, shell, smoke, tidy};
use anyhow::{Context, Result, bail};
use std::time::Instant;

/// Run every check that CI runs, cheapest first.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Run these steps only (comma-separated)
    #[arg(long, value_delimiter = ',', value_name = "STEP")]
    only: Vec<String>,
    /// Leave these steps out (comma-separated)
    #[arg(long, value_delimiter = ',', value_name = "STEP")]
    skip: Vec<String>,
    /// Print the names of the steps and stop
    #[arg(long)]
    list: bool,
}

struct Step {
    name: &'static str,
    /// The tool without which the step is left out, by name.
    optional: Option<Tool>,
    run: fn() -> Result<()>,
}

#[derive(Clone, Copy)]
enum Tool {
    Cargo(&'static str),
    Program(&'static str),
}

impl Tool {
    fn is_there(self) -> bool {
        match self {
            Self::Cargo(name) => shell::has_cargo(name),
            Self::Program(name) => shell::has(name, "--version"),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Cargo(name) => format!("cargo-{name}"),
            Self::Program(name) => name.to_owned(),
        }
    }
}

/// The README's second command: all tests and doctests, without any tool beside cargo.
pub(crate) const TEST_COMMAND: [&str; 2] = ["test", "--workspace"];

fn steps() -> Vec<Step> {
    let step = |name, run| Step { name, optional: None, run };
    vec![
        step("fmt", || shell::run(&mut shell::cargo(["fmt", "--all", "--check"]))),
        step("tidy", tidy::run),
        step("clippy", || {
            shell::run(&mut shell::cargo([
                "clippy",
                "--workspace",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ]))
        }),
        step("test", || shell::run(&mut shell::cargo(TEST_COMMAND))),
        step("doc", || {
            let mut doc = shell::cargo(["doc", "--workspace", "--all-features", "--no-deps"]);
            shell::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
        }),
        step("release", || shell::release_binaries(&generate::binaries()).map(drop)),
        step("gen", || generate::run(&generate::Arguments { check: true })),
        step("smoke", smoke::run),
        step("package", || package::run(&package::Arguments::default())),
        Step {
            name: "fuzz", // compiled, not run
            optional: Some(Tool::Program("c++")),
            run: || {
                let mut check = shell::cargo(["check", "--manifest-path", "fuzz/Cargo.toml"]);
                shell::run(check.arg("--target-dir").arg(shell::target()?))
            },
        },
        Step {
            name: "deny",
            optional: Some(Tool::Cargo("deny")),
            // Advisories are left out: their database has to be fetched.
            run: || shell::run(&mut shell::cargo(["deny", "check", "licenses", "bans", "sources"])),
        },
        Step {
            name: "book",
            optional: Some(Tool::Program("mdbook")),
            run: || shell::run(shell::command("mdbook").args(["build", "docs"])),
        },
    ]
}

/// Runs the chosen steps in order and stops at the first failure.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let steps = steps();
    for name in arguments.only.iter().chain(&arguments.skip) {
        if !steps.iter().any(|step| step.name == name) {
            bail!("no step is called `{name}`; `cargo xtask ci --list` names them");
        }
    }
    let chosen = steps.iter().filter(|step| {
        let named = |names: &[String]| names.iter().any(|name| name == step.name);
        (arguments.only.is_empty() || named(&arguments.only)) && !named(&arguments.skip)
    });
    if arguments.list {
        chosen.for_each(|step| println!("{}", step.name));
        return Ok(());
    }
    let begin = Instant::now();
    let mut summary = Vec::new();
    for step in chosen {
        if let Some(tool) = step.optional.filter(|tool| !tool.is_there()) {
            println!("--- {}: skipped, {} is not installed", step.name, tool.name());
            summary.push(format!("{:8} skipped ({} is not installed)", step.name, tool.name()));
            continue;
        }
        println!("--- {}", step.name);
        let start = Instant::now();
        (step.run)().with_context(|| format!("ci step `{}` failed", step.name))?;
        let seconds = start.elapsed().as_secs_f64();
        println!("--- {}: ok in {seconds:.1} s", step.name);
        summary.push(format!("{:8} ok {seconds:8.1} s", step.name));
    }
    println!("\n{}\nci passed in {:.0} s", summary.join("\n"), begin.elapsed().as_secs_f64());
    Ok(())
}
