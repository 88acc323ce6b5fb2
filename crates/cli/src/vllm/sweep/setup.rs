//! What the flags of a sweep come to, checked before anything is started.

use super::args::ServeSweepArgs;
use super::params::Overrides;
use super::server::Between;
use super::words::split;
use super::workload::WorkloadVariable;
use crate::exit::OrCode;
use crate::{Code, Environment, Failure};
use servebench_report::vllm::check_folder;
use std::fs;
use std::path::{Path, PathBuf};

/// What is run, and where its results go.
pub(super) struct Setup {
    /// The server's command.
    pub(super) serve: Vec<String>,
    /// The client's.
    pub(super) bench: Vec<String>,
    /// What is done between runs.
    pub(super) between: Between,
    /// What the server's command gets, once for each start.
    pub(super) serve_sets: Vec<Overrides>,
    /// What the client's gets.
    pub(super) bench_sets: Vec<Overrides>,
    /// Variables of the server and of the client that must be equal.
    pub(super) links: Vec<(String, String)>,
    /// The experiment's folder.
    pub(super) folder: PathBuf,
    /// Which load is varied, and how many are tried.
    pub(super) workload: Option<(WorkloadVariable, u32)>,
}

impl Setup {
    /// Reads commands and files, and makes the folder.
    pub(super) fn new(
        args: &ServeSweepArgs,
        workload: Option<(WorkloadVariable, u32)>,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let serve = split(&args.serve_cmd, "--serve-cmd")?;
        let bench = own(split(&args.bench_cmd, "--bench-cmd")?, environment)?;
        let after = args.after_bench_cmd.as_deref().map(|line| split(line, "--after-bench-cmd"));
        let between = Between::of(&serve, after.transpose()?)?;
        let serve_sets = sets(args.serve_params.as_deref())?;
        let bench_sets = sets(args.bench_params.as_deref())?;
        if let Some((variable, _)) = workload
            && bench_sets.iter().any(|set| set.has(variable.key()))
        {
            let text = format!("--bench-params: {} is what --workload-var varies", variable.key());
            return Err(Failure::usage(text));
        }
        let links = links(&args.link_vars)?;
        let folder = folder(args)?;
        Ok(Self { serve, bench, between, serve_sets, bench_sets, links, folder, workload })
    }
}

/// The experiment's folder, which exists and can be written to unless nothing is to be run.
fn folder(args: &ServeSweepArgs) -> Result<PathBuf, Failure> {
    let now = || jiff::ZonedDateTime::now().strftime("%Y%m%d_%H%M%S").to_string();
    let folder = args.output_dir.join(args.experiment_name.clone().unwrap_or_else(now));
    if args.dry_run {
        return Ok(folder);
    }
    if folder.exists() != args.resume {
        let there = if args.resume { "does not exist" } else { "exists already" };
        return Err(Failure::usage(format!("the experiment {} {there}", folder.display()))
            .hint("--resume goes on with one that exists"));
    }
    check_folder(&folder).or_code(Code::Output)?;
    Ok(folder)
}

/// `vllm bench` and `bench-vllm` are this program.
fn own(mut command: Vec<String>, environment: &Environment) -> Result<Vec<String>, Failure> {
    let words: Vec<&str> = command.iter().take(2).map(String::as_str).collect();
    let taken = match words[..] {
        ["vllm", "bench"] => 2,
        ["bench-vllm", ..] => 1,
        [] => return Err(Failure::usage("--bench-cmd is empty")),
        _ => 0,
    };
    if let Some(program) = environment.program.as_ref().and_then(|program| program.to_str())
        && taken > 0
    {
        command.splice(..taken, [program.to_owned()]);
    }
    Ok(command)
}

fn sets(file: Option<&Path>) -> Result<Vec<Overrides>, Failure> {
    let Some(file) = file else { return Ok(vec![Overrides::default()]) };
    let name = file.display().to_string();
    let bytes = fs::read(file).map_err(|error| {
        Failure::new(Code::Data, anyhow::Error::new(error).context(name.clone()))
    })?;
    Overrides::read(&bytes, &name)
}

fn links(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    let pair = |pair: &str| match pair.split_once('=') {
        Some((serve, bench)) => Ok((serve.trim().to_owned(), bench.trim().to_owned())),
        None => Err(Failure::usage(format!("--link-vars: `{pair}` is not SERVE_KEY=BENCH_KEY"))),
    };
    pairs.map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_of_ours_are_this_program() {
        let mut environment = Environment::default();
        environment.program = Some("/bin/ours".into());
        for (line, wanted) in [
            ("vllm bench serve --x", "/bin/ours serve --x"),
            ("bench-vllm serve", "/bin/ours serve"),
            ("vllm serve", "vllm serve"),
            ("/venv/bin/vllm bench serve", "/venv/bin/vllm bench serve"),
        ] {
            let words = |line: &str| split(line, "--bench-cmd").expect("words");
            assert_eq!(own(words(line), &environment).expect("a command"), words(wanted));
        }
        assert!(own(Vec::new(), &environment).is_err());
    }

    #[test]
    fn links_are_pairs() {
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(links(" a=b, c = d ,").expect("links"), [pair("a", "b"), pair("c", "d")]);
        assert!(links("a").is_err());
    }
}
