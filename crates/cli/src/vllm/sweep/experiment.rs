//! The whole of a sweep: every combination, several times, into files.

use super::args::ServeSweepArgs;
use super::csv::table;
use super::live::{Machine, Running};
use super::params::{Overrides, folder, linked, sanitized};
use super::server::Between;
use super::words::{list_repr, python_repr, split};
use super::workload::{WorkloadVariable, between, ends};
use crate::exit::OrCode;
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io};
use serde_json::{Map, Value, json};
use servebench_run::Stop;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prompts of the client when nothing says how many.
const NUM_PROMPTS: i64 = 1000;

/// The results of one combination.
type Runs = Vec<Map<String, Value>>;

struct Experiment<'a> {
    args: &'a ServeSweepArgs,
    serve: Vec<String>,
    bench: Vec<String>,
    links: Vec<(String, String)>,
    folder: PathBuf,
    workload: Option<(WorkloadVariable, u32)>,
    io: &'a Io,
}

/// Runs every combination and writes the summaries.
pub(super) fn run(
    args: &ServeSweepArgs,
    workload: Option<(WorkloadVariable, u32)>,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let serve = split(&args.serve_cmd, "--serve-cmd")?;
    let bench = own(split(&args.bench_cmd, "--bench-cmd")?, environment)?;
    let after = args.after_bench_cmd.as_deref().map(|line| split(line, "--after-bench-cmd"));
    let after = Between::of(&serve, after.transpose()?)?;
    let serve_sets = sets(args.serve_params.as_deref())?;
    let bench_sets = sets(args.bench_params.as_deref())?;
    if let Some((variable, _)) = workload
        && bench_sets.iter().any(|set| set.has(variable.key()))
    {
        let key = variable.key();
        return Err(Failure::usage(format!("--bench-params: {key} is what --workload-var varies")));
    }
    let name = args.experiment_name.clone();
    let name =
        name.unwrap_or_else(|| jiff::ZonedDateTime::now().strftime("%Y%m%d_%H%M%S").to_string());
    let folder = args.output_dir.join(name);
    if folder.exists() != args.resume && !args.dry_run {
        let there = if args.resume { "does not exist" } else { "exists already" };
        return Err(Failure::usage(format!("the experiment {} {there}", folder.display()))
            .hint("--resume goes on with one that exists"));
    }
    let links = links(&args.link_vars)?;
    let experiment = Experiment { args, serve, bench, links, folder, workload, io };
    let stop = Stop::default();
    let said = "interrupted: client and server are stopped; what is done is kept";
    let interrupts = Interrupts::listen_saying(&stop, io, said).or_code(Code::Bug)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_code(Code::Bug)?;
    if !args.dry_run {
        interrupts.begin_measuring();
        fs::create_dir_all(&experiment.folder).or_code(Code::Output)?;
    }
    let machine = Machine {
        runtime: &runtime,
        interrupts: &interrupts,
        io,
        show_stdout: args.show_stdout,
        ready_timeout: Duration::from_secs(args.server_ready_timeout.into()),
        between: &after,
    };
    let resume = |failure: Failure| match failure.hint {
        None => failure.hint("with --resume and the same --experiment-name it goes on from here"),
        Some(_) => failure,
    };
    experiment.all(&machine, &serve_sets, &bench_sets).map_err(resume)?;
    Ok(interrupts.code().unwrap_or(Code::Done))
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

/// Writes a file whole or not at all.
fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let context = |error: std::io::Error| {
        Failure::new(Code::Output, anyhow::Error::new(error).context(file.display().to_string()))
    };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(context)?;
    }
    let part = file.with_extension("part");
    fs::write(&part, text).map_err(context)?;
    fs::rename(&part, file).map_err(context)
}

fn pretty(value: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).or_code(Code::Bug)
}

/// A result, with what it was measured with; the client's overrides win over the server's.
fn read(
    file: &Path,
    serve: &Overrides,
    bench: &Overrides,
    number: i64,
) -> Result<Map<String, Value>, Failure> {
    let parse = || -> Result<Map<String, Value>, anyhow::Error> {
        Ok(serde_json::from_slice(&fs::read(file)?)?)
    };
    let run = parse().map_err(|error| error.context(file.display().to_string()));
    let mut run = run.or_code(Code::Data)?;
    run.insert("run_number".to_owned(), number.into());
    run.extend(serve.0.clone());
    run.extend(bench.0.clone());
    Ok(run)
}

fn is_interrupt(failure: &Failure) -> bool {
    matches!(failure.code, Code::Interrupted | Code::Terminated)
}

impl Experiment<'_> {
    fn print(&self, text: impl std::fmt::Display) -> Result<(), Failure> {
        self.io.print(text).or_code(Code::Output)
    }

    fn all(
        &self,
        machine: &Machine<'_>,
        serve_sets: &[Overrides],
        bench_sets: &[Overrides],
    ) -> Result<(), Failure> {
        let mut all = Runs::new();
        for serve in serve_sets {
            let done = self.server(machine, serve, bench_sets, &mut all);
            let Err(failure) = done else { continue };
            if !self.args.continue_on_error || is_interrupt(&failure) {
                return Err(failure);
            }
            let name = serve.name();
            let name = if name.is_empty() { "default" } else { &name };
            let file = self.folder.join(sanitized(&format!("SERVE-{name}-failure.json")));
            let text = pretty(&json!({
                "error_type": format!("{:?}", failure.code),
                "error": format!("{:#}", failure.error),
                "serve_overrides": serve.0,
            }))?;
            write(&file, &text)?;
            self.print(format_args!("[FAILED SERVER COMBINATION] {name}: {:#}", failure.error))?;
        }
        if self.args.dry_run {
            return Ok(());
        }
        write(&self.folder.join("summary.csv"), &table(&all))
    }

    /// Every run of one server.
    fn server(
        &self,
        machine: &Machine<'_>,
        serve: &Overrides,
        bench_sets: &[Overrides],
        all: &mut Runs,
    ) -> Result<(), Failure> {
        let valid: Vec<&Overrides> =
            bench_sets.iter().filter(|bench| linked(serve, bench, &self.links)).collect();
        let unfinished = |bench: &&Overrides| {
            self.workload.is_some() || !self.place(serve, bench, None).join("summary.json").exists()
        };
        let needed = valid.iter().any(unfinished);
        let mut running = None;
        if needed {
            let command = serve.apply(&self.serve);
            self.print(format_args!(
                "[BEGIN SERVER]\nServer overrides: {}\nServer command: {}",
                python_repr(&Value::Object(serve.0.clone())),
                list_repr(&command)
            ))?;
            if !self.args.dry_run {
                running = Some(machine.start(&command)?);
            }
        }
        for bench in valid {
            let runs = if let Some((variable, count)) = self.workload {
                self.ladder(running.as_ref(), serve, bench, variable, count)?
            } else {
                let place = self.place(serve, bench, None);
                self.combination(running.as_ref(), serve, bench, &place)?
            };
            all.extend(runs);
        }
        drop(running);
        if needed {
            self.print("[END SERVER]")?;
        }
        Ok(())
    }

    fn place(&self, serve: &Overrides, bench: &Overrides, workload: Option<&str>) -> PathBuf {
        self.folder.join(folder(serve, bench, workload))
    }

    /// Every run of one combination.
    fn combination(
        &self,
        server: Option<&Running<'_>>,
        serve: &Overrides,
        bench: &Overrides,
        place: &Path,
    ) -> Result<Runs, Failure> {
        if self.args.warmup_num_prompts > 0 {
            let warmup = bench.with("num_prompts", self.args.warmup_num_prompts);
            self.tolerant(server, serve, &warmup, -1, &place.join("warmup.json"))?;
        }
        let mut runs = Runs::new();
        for number in 0..self.args.num_runs {
            let file = place.join(format!("run={number}.json"));
            runs.extend(self.tolerant(server, serve, bench, number.into(), &file)?);
        }
        if self.args.dry_run {
            return Ok(Runs::new());
        }
        if runs.is_empty() {
            self.print("[NO SUCCESSFUL MEASURED RUNS] leaving combination retryable")?;
        } else {
            write(&place.join("summary.json"), &pretty(&runs)?)?;
        }
        Ok(runs)
    }

    /// One run, whose failure is written down where the sweep is to go on.
    fn tolerant(
        &self,
        server: Option<&Running<'_>>,
        serve: &Overrides,
        bench: &Overrides,
        number: i64,
        file: &Path,
    ) -> Result<Option<Map<String, Value>>, Failure> {
        let failure = match self.one(server, serve, bench, number, file) {
            Err(failure) if self.args.continue_on_error && !is_interrupt(&failure) => failure,
            done => return done,
        };
        let text = pretty(&json!({
            "run_number": number,
            "error_type": format!("{:?}", failure.code),
            "error": format!("{:#}", failure.error),
            "serve_overrides": serve.0,
            "bench_overrides": bench.0,
        }))?;
        write(&file.with_extension("failure.json"), &text)?;
        self.print(format_args!("[FAILED BENCHMARK] run={number}: {:#}", failure.error))?;
        if let Some(Err(failure)) = server.map(Running::after) {
            self.io.say(format_args!("warning: {:#}", failure.error));
        }
        Ok(None)
    }

    fn one(
        &self,
        server: Option<&Running<'_>>,
        serve: &Overrides,
        bench: &Overrides,
        number: i64,
        file: &Path,
    ) -> Result<Option<Map<String, Value>>, Failure> {
        // The client writes elsewhere: what is at `file` is complete.
        let folder = file.parent().unwrap_or(Path::new(".")).join("unfinished");
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = bench.apply(&self.bench);
        let last = ["--percentile-metrics", "ttft,tpot,itl,e2el", "--save-result", "--result-dir"];
        command.extend(last.map(str::to_owned));
        command.push(folder.display().to_string());
        command.extend(["--result-filename".to_owned(), name.clone()]);
        self.print(format_args!(
            "[BEGIN BENCHMARK]\nBenchmark overrides: {}\nRun Number: {number}\n\
             Benchmark command: {}\nOutput file: {}",
            python_repr(&Value::Object(bench.0.clone())),
            list_repr(&command),
            file.display()
        ))?;
        if file.exists() {
            self.print("Found existing results.\n[SKIPPED BENCHMARK]")?;
            return read(file, serve, bench, number).map(Some);
        }
        let Some(server) = server else {
            if self.args.dry_run {
                self.print("[END BENCHMARK]")?;
                return Ok(None);
            }
            let error = anyhow::anyhow!("there is no result at {}", file.display());
            return Err(Failure::new(Code::Data, error)
                .hint("delete the summary.json beside it to have it measured"));
        };
        if folder.exists() {
            fs::remove_dir_all(&folder).or_code(Code::Output)?;
        }
        fs::create_dir_all(&folder).or_code(Code::Output)?;
        server.benchmark(&command)?;
        server.after()?;
        let run = read(&folder.join(&name), serve, bench, number)?;
        write(file, &pretty(&run)?)?;
        fs::remove_dir_all(&folder).or_code(Code::Output)?;
        self.print("[END BENCHMARK]")?;
        Ok(Some(run))
    }

    /// The loads of one combination: both ends, then those between.
    fn ladder(
        &self,
        server: Option<&Running<'_>>,
        serve: &Overrides,
        bench: &Overrides,
        variable: WorkloadVariable,
        count: u32,
    ) -> Result<Runs, Failure> {
        let key = variable.key();
        let none = |text: String| if text.is_empty() { "(None)".to_owned() } else { text };
        let size = self.dataset_size(bench)?;
        self.print(format_args!(
            "[WL START]\nServe parameters: {}\nBench parameters: {}\n\
             Number of workload iterations: {count}\nDataset size: {size}",
            none(serve.text(", ")),
            none(bench.text(", "))
        ))?;
        let at = |bench: &Overrides, value: i64| {
            let place = self.place(serve, bench, Some(&format!("{key}={value}")));
            self.combination(server, serve, &bench.with(key, value), &place)
        };
        let serial = at(&bench.with("max_concurrency", 1), 1)?;
        let batch = at(&bench.with("max_concurrency", size), size)?;
        let estimates = variable.estimate(&serial).zip(variable.estimate(&batch));
        let Some((low, high)) = estimates else {
            self.print(if self.args.dry_run {
                "Omitting intermediate Workload iterations.\n[WL END]"
            } else {
                "Unable to establish both ends of the workload; nothing between is run.\n[WL END]"
            })?;
            return Ok(serial.into_iter().chain(batch).collect());
        };
        let (low, high) = ends(low, high);
        self.print(format_args!("Serial inference: {key}={low}\nBatch inference: {key}={high}"))?;
        let mut runs = serial;
        for value in between(low, high, count) {
            self.print(format_args!("Exploring: {key}={value}"))?;
            runs.extend(at(bench, value)?);
        }
        runs.extend(batch);
        self.print("[WL END]")?;
        Ok(runs)
    }

    fn dataset_size(&self, bench: &Overrides) -> Result<i64, Failure> {
        let mut flags = self.bench.iter().enumerate();
        let given = flags.find_map(|(place, word)| match word.split_once('=') {
            Some(("--num-prompts", value)) => Some(value.to_owned()),
            None if word == "--num-prompts" => self.bench.get(place + 1).cloned(),
            _ => None,
        });
        let value = match bench.0.get("num_prompts").or_else(|| bench.0.get("num-prompts")) {
            Some(value) => Some(super::words::python_text(value)),
            None => given,
        };
        let Some(value) = value else { return Ok(NUM_PROMPTS) };
        value
            .parse()
            .map_err(|_| Failure::usage(format!("num_prompts is `{value}`, not a whole number")))
    }
}
