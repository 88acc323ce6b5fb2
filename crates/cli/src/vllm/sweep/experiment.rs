//! The whole of a sweep: every combination, several times, into files.

use super::args::ServeSweepArgs;
use super::combination::Combination;
use super::csv::table;
use super::files::{Run, write, write_failure};
use super::ladder::Ladder;
use super::live::{Machine, Running};
use super::params::{Overrides, folder, linked, sanitized};
use super::setup::Setup;
use super::words::{list_repr, python_repr};
use super::workload::WorkloadVariable;
use crate::exit::OrCode;
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io};
use serde_json::Value;
use servebench_run::Stop;
use std::path::PathBuf;
use std::time::Duration;

/// A sweep that is under way.
pub(super) struct Experiment<'a> {
    pub(super) args: &'a ServeSweepArgs,
    pub(super) setup: &'a Setup,
    machine: &'a Machine<'a>,
    pub(super) io: &'a Io,
}

/// Runs every combination and writes the summaries.
pub(super) fn run(
    args: &ServeSweepArgs,
    workload: Option<(WorkloadVariable, u32)>,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let setup = Setup::new(args, workload, environment)?;
    let stop = Stop::default();
    let said = "interrupted: client and server are stopped; what is done is kept";
    let interrupts = Interrupts::listen_saying(&stop, io, said).or_code(Code::Bug)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_code(Code::Bug)?;
    if !args.dry_run {
        interrupts.begin_measuring();
    }
    let machine = Machine {
        runtime: &runtime,
        interrupts: &interrupts,
        io,
        show_stdout: args.show_stdout,
        ready_timeout: Duration::from_secs(args.server_ready_timeout.into()),
        between: &setup.between,
    };
    let resume = |failure: Failure| match failure.hint {
        None => failure.hint("with --resume and the same --experiment-name it goes on from here"),
        Some(_) => failure,
    };
    Experiment { args, setup: &setup, machine: &machine, io }.all().map_err(resume)?;
    Ok(interrupts.code().unwrap_or(Code::Done))
}

impl Experiment<'_> {
    pub(super) fn print(&self, text: impl std::fmt::Display) -> Result<(), Failure> {
        self.io.print(text).or_code(Code::Output)
    }

    /// Whether the sweep goes on after this failure.
    pub(super) fn goes_on_after(&self, failure: &Failure) -> bool {
        let interrupted = matches!(failure.code, Code::Interrupted | Code::Terminated);
        self.args.continue_on_error && !interrupted
    }

    /// Where the results of a combination go.
    pub(super) fn folder(
        &self,
        serve: &Overrides,
        bench: &Overrides,
        workload: Option<&str>,
    ) -> PathBuf {
        self.setup.folder.join(folder(serve, bench, workload))
    }

    fn all(&self) -> Result<(), Failure> {
        let mut all = Vec::new();
        for serve in &self.setup.serve_sets {
            match self.server(serve, &mut all) {
                Err(failure) if self.goes_on_after(&failure) => self.failed(serve, &failure)?,
                done => done?,
            }
        }
        let folder = &self.setup.folder;
        if self.args.dry_run {
            let text = format!("Experiment will be saved at: {}", folder.display());
            return self.print(text);
        }
        write(&folder.join("summary.csv"), &table(&all))?;
        self.print(format_args!("Experiment has been saved at: {}", folder.display()))
    }

    /// Writes down why a server could not be measured.
    fn failed(&self, serve: &Overrides, failure: &Failure) -> Result<(), Failure> {
        let name = serve.name();
        let (file, shown) =
            if name.is_empty() { ("default", "(default)") } else { (&*name, &*name) };
        let file = self.setup.folder.join(sanitized(&format!("SERVE-{file}-failure.json")));
        write_failure(&file, failure, serve, None)?;
        self.print(format_args!(
            "[FAILED SERVER COMBINATION] {shown}: {:#}\nFailure details: {}",
            failure.error,
            file.display()
        ))
    }

    /// Every run of one server, which is started if any of them is still to be made.
    fn server(&self, serve: &Overrides, all: &mut Vec<Run>) -> Result<(), Failure> {
        let sets = &self.setup.bench_sets;
        let loads = sets.iter().filter(|bench| linked(serve, bench, &self.setup.links));
        let loads: Vec<Load<'_>> =
            loads.map(|bench| self.load(serve, bench)).collect::<Result<_, _>>()?;
        let needed = !loads.iter().all(Load::is_finished);
        let mut running = None;
        if needed {
            let command = serve.apply(&self.setup.serve);
            self.print(format_args!(
                "[BEGIN SERVER]\nServer overrides: {}\nServer command: {}",
                python_repr(&Value::Object(serve.0.clone())),
                list_repr(&command)
            ))?;
            if !self.args.dry_run {
                running = Some(self.machine.start(&command)?);
            }
        }
        for load in &loads {
            all.extend(load.runs(running.as_ref())?);
        }
        drop(running);
        if needed {
            self.print("[END SERVER]")?;
        }
        Ok(())
    }

    fn load<'a>(&'a self, serve: &'a Overrides, bench: &'a Overrides) -> Result<Load<'a>, Failure> {
        Ok(match self.setup.workload {
            Some(workload) => Load::Varied(Ladder::new(self, serve, bench, workload)?),
            None => Load::Given(Combination {
                experiment: self,
                serve,
                bench: bench.clone(),
                folder: self.folder(serve, bench, None),
            }),
        })
    }
}

/// What one server is to answer with one set of the client's settings.
enum Load<'a> {
    Given(Combination<'a>),
    Varied(Ladder<'a>),
}

impl Load<'_> {
    fn is_finished(&self) -> bool {
        match self {
            Self::Given(combination) => combination.finished().is_some(),
            Self::Varied(ladder) => ladder.is_finished(),
        }
    }

    fn runs(&self, server: Option<&Running<'_>>) -> Result<Vec<Run>, Failure> {
        match self {
            Self::Given(combination) => combination.runs(server),
            Self::Varied(ladder) => ladder.runs(server),
        }
    }
}
