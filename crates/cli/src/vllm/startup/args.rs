//! Flags of `startup`, and the options of the engine that stand among them.

use crate::{Failure, plain_arguments};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Every flag of `vllm bench startup` but those of its engine: what may be abbreviated.
pub const STARTUP_FLAGS: &[&str] =
    &["--help", "--num-iters-cold", "--num-iters-warm", "--num-iters-warmup", "--output-json"];

/// Flags that the Python tool does not have.
const OURS: [&str; 4] = ["--dry-run", "--serve-cmd", "--server-ready-timeout", "--version"];

/// Flags of `startup`.
#[derive(Args, Clone, Debug)]
pub struct StartupArgs {
    /// Starts with empty caches
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub num_iters_cold: u32,

    /// Starts before those with full caches, which fill them
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub num_iters_warmup: u32,

    /// Starts with full caches
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub num_iters_warm: u32,

    /// Write the result to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub output_json: Option<PathBuf>,

    /// Command that starts the server; its --host and --port say where it listens [default: vllm serve
    /// with the engine options given here]
    #[arg(long, value_name = "COMMAND")]
    pub serve_cmd: Option<String>,

    /// Longest wait for a server to be ready, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 1800)]
    pub server_ready_timeout: u32,

    /// Print the command that would be started, and start nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Parts a command line in plain form: what is ours, and what is the engine's.
pub(super) fn part(words: Vec<OsString>) -> Result<(Vec<OsString>, Vec<OsString>), Failure> {
    let words = plain_arguments(words, STARTUP_FLAGS, &OURS)?;
    let (mut ours, mut engine) = (Vec::new(), Vec::new());
    let mut is_ours = false;
    for word in words {
        if let Some(name) = word.to_str().and_then(flag) {
            is_ours = STARTUP_FLAGS.contains(&name) || OURS.contains(&name);
            is_ours |= ["-h", "-V"].contains(&name);
        }
        if is_ours { &mut ours } else { &mut engine }.push(word);
    }
    Ok((ours, engine))
}

/// The name of a flag; `None` for a value, negative numbers among them.
fn flag(word: &str) -> Option<&str> {
    let name = word.split('=').next().unwrap_or(word);
    let second = name.strip_prefix('-')?.chars().next()?;
    (second == '-' || second.is_alphabetic()).then_some(name)
}

/// The command that starts vLLM's server with options of the engine: the model goes first.
pub(super) fn vllm_serve(engine: &[String]) -> Result<Vec<String>, Failure> {
    let mut model = None;
    let mut options = Vec::new();
    let mut words = engine.iter();
    while let Some(word) = words.next() {
        match word.strip_prefix("--model=") {
            Some(name) => model = Some(name.to_owned()),
            None if word == "--model" => model = words.next().cloned(),
            None => options.push(word.clone()),
        }
    }
    let first = options.first().is_some_and(|word| flag(word).is_none());
    let model = model.or_else(|| first.then(|| options.remove(0))).ok_or_else(|| {
        Failure::usage("which server? give --model and options of the engine, or --serve-cmd")
            .hint("as in bench-vllm startup --model NAME --tensor-parallel-size 2")
    })?;
    Ok(["vllm", "serve", &model].map(str::to_owned).into_iter().chain(options).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parted(line: &str) -> (Vec<OsString>, Vec<OsString>) {
        part(line.split(' ').map(Into::into).collect()).unwrap()
    }

    #[test]
    fn options_of_the_engine_go_to_the_server() {
        let (ours, engine) = parted(
            "--model m --num-iters-c 1 -tp 2 --output-json=o.json --seed -1 --num-iters-warm 2 \
             --enforce-eager",
        );
        assert_eq!(
            ours,
            ["--num-iters-cold", "1", "--output-json=o.json", "--num-iters-warm", "2"]
        );
        assert_eq!(engine, ["--model", "m", "-tp", "2", "--seed", "-1", "--enforce-eager"]);
        let (ours, engine) = parted("-h m");
        assert_eq!((ours.len(), engine.len()), (2, 0));
    }

    #[test]
    fn the_model_goes_first() {
        let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        let serve = |line: &str| vllm_serve(&words(line)).map(|words| words.join(" "));
        let wanted = "vllm serve m --seed 1";
        for line in ["--seed 1 --model m", "--model=m --seed 1", "m --seed 1"] {
            assert_eq!(serve(line).unwrap(), wanted, "{line}");
        }
        let failure = serve("--seed 1").unwrap_err();
        assert!(failure.to_string().contains("--serve-cmd"), "{failure}");
    }
}
