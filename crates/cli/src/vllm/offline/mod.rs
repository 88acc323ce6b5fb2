//! What the commands share that run an engine in the process in Python, and talk to a server here.

mod backend;
mod kinds;
mod pass;

pub(super) use backend::of_a_server;
pub(super) use kinds::Kind;
pub(super) use pass::Pass;

use super::args::{
    ContentArgs, TransportArgs, VllmDatasetArgs, VllmLoadArgs, VllmReportArgs, VllmTargetArgs,
};
use super::session::Session;
use super::{VllmPlan, VllmServeArgs};
use crate::args::OwnArgs;
use crate::exit::OrCode;
use crate::{Code, Environment, Failure, Io};
use clap::Args;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Map, Value, json};
use servebench_report::vllm::{check_folder, pytorch_record, write};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// What these commands have around their own flags.
#[derive(Args, Clone, Debug, Default)]
pub struct OfflineArgs {
    /// The server and the model.
    #[command(flatten)]
    pub target: VllmTargetArgs,
    /// What is done around the measurement.
    #[command(flatten)]
    pub around: AroundArgs,
    /// How requests are carried.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// The simulated server and the client.
    #[command(flatten)]
    pub own: OwnArgs,
}

/// What is done around the measurement, and where its result goes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Run")]
pub struct AroundArgs {
    /// Write the result to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub output_json: Option<PathBuf>,

    /// Profile the server during the run
    #[arg(long)]
    pub profile: bool,

    /// Seed of all draws: the same seed gives the same requests [default: 0]
    #[arg(long, value_name = "N")]
    pub seed: Option<u32>,

    /// Seconds to wait for the server, and for one request to succeed; 0 skips both [default: 0]
    #[arg(long, value_name = "SECONDS")]
    pub ready_check_timeout_sec: Option<i64>,

    /// Show no progress
    #[arg(long)]
    pub disable_tqdm: bool,
}

/// What a command of its own says of a run of `serve`.
#[derive(Default)]
pub(super) struct Workload {
    pub(super) load: VllmLoadArgs,
    pub(super) content: ContentArgs,
    pub(super) dataset: VllmDatasetArgs,
}

/// What a request says of `--n`.
pub(super) fn replies(n: u32) -> Option<Map<String, Value>> {
    (n > 1).then(|| Map::from_iter([("n".to_owned(), json!(n))]))
}

impl OfflineArgs {
    /// The run of `serve` that sends a command's requests.
    pub(super) fn plan(
        self,
        workload: Workload,
        environment: &Environment,
    ) -> Result<VllmPlan, Failure> {
        let Self { target, around, transport, own } = self;
        let load = VllmLoadArgs {
            seed: around.seed,
            ready_check_timeout_sec: around.ready_check_timeout_sec,
            disable_tqdm: around.disable_tqdm,
            profile: around.profile,
            ..workload.load
        };
        let Workload { content, dataset, .. } = workload;
        let report = VllmReportArgs::default();
        let args = VllmServeArgs { target, load, content, dataset, report, transport, own };
        let plan = VllmPlan::new(args, environment)?;
        if plan.backend.info().pooling {
            let text = format!("--backend {} makes no tokens: use serve", plan.backend);
            return Err(Failure::usage(text));
        }
        Ok(plan)
    }

    /// The same without a tokenizer: for prompts that are ids or whose length is nominal.
    pub(super) fn without_tokenizer(mut self) -> Self {
        self.target.skip_tokenizer_init = true;
        self
    }

    /// What becomes of the run.
    pub(super) fn outcome(&self) -> Outcome {
        let (dry_run, path) = (self.own.dry_run, self.around.output_json.clone());
        Outcome { dry_run, path, figures: None }
    }
}

/// What of a result is written once more, in the format of PyTorch's benchmark database.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    /// The metrics: their names there, and their keys in the result.
    pub(super) metrics: &'static [(&'static str, &'static str)],
    /// Keys that are said with each of them.
    pub(super) further: &'static [&'static str],
}

/// What becomes of a run.
pub(super) struct Outcome {
    dry_run: bool,
    path: Option<PathBuf>,
    figures: Option<Figures>,
}

impl Outcome {
    /// Has these figures written for PyTorch's benchmark database, where the environment asks for that.
    #[must_use]
    pub(super) fn recorded(self, figures: Figures, environment: &Environment) -> Self {
        let asked = environment.get("SAVE_TO_PYTORCH_BENCHMARK_FORMAT").is_some();
        Self { figures: asked.then_some(figures), ..self }
    }

    /// Opens the session of a plan that is to be carried out; `None` when it is only to be shown, and
    /// has been. A result that cannot be written is noticed here, before it is measured.
    pub(super) fn begin<'a>(
        &self,
        plan: &'a VllmPlan,
        environment: &Environment,
        io: &'a Io,
    ) -> Result<Option<Session<'a>>, Failure> {
        if self.dry_run {
            plan.print(io)?;
            return Ok(None);
        }
        check(self.path.as_deref())?;
        Session::open(plan, environment, io).map(Some)
    }

    /// Prints what was measured, writes the result with what we say beside the Python tool's keys (and
    /// what `result` has of it), and says how the command ends.
    pub(super) fn end(
        &self,
        session: &Session<'_>,
        pass: &Pass,
        lines: impl Display,
        mut result: Value,
    ) -> Result<Code, Failure> {
        let io = session.io;
        let printed = io.print(format_args!("{lines}\n{OVER_HTTP}"));
        let mut own = pass.own(session);
        if let Some(Value::Object(more)) = result.get_mut("servebench").map(Value::take)
            && let Value::Object(own) = &mut own
        {
            own.extend(more);
        }
        result["servebench"] = own;
        save(self.path.as_deref(), &result, io)?;
        if let (Some(path), Some(figures)) = (&self.path, self.figures) {
            let records = figures.records(&result).to_string();
            write(&path.with_extension("pytorch.json"), &records, false).or_code(Code::Output)?;
        }
        printed.or_code(Code::Output)?;
        Ok(pass.code(session))
    }
}

impl Figures {
    fn records(self, result: &Value) -> Value {
        let plan = result["servebench"]["plan"].as_object().cloned().unwrap_or_default();
        let further = self.further.iter().map(|key| ((*key).to_owned(), result[*key].clone()));
        let further: Map<String, Value> = further.collect();
        let record = |(name, key): &(&str, &str)| {
            pytorch_record(&result["model_id"], &plan, name, &result[*key], &further)
        };
        self.metrics.iter().map(record).collect()
    }
}

/// Said of every figure.
const OVER_HTTP: &str =
    "Measured over HTTP: in these figures are the server's front end and its own scheduling.";

/// Makes sure, before a run, that its result can be written after it.
pub(super) fn check(path: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    check_folder(folder.unwrap_or(Path::new("."))).or_code(Code::Output)
}

/// Writes a result as Python's `json.dump(..., indent=4)` does.
pub(super) fn save(path: Option<&Path>, result: &Value, io: &Io) -> Result<(), Failure> {
    let Some(path) = path else { return Ok(()) };
    let mut text = Vec::new();
    let pretty = PrettyFormatter::with_indent(b"    ");
    let mut to = serde_json::Serializer::with_formatter(&mut text, pretty);
    result.serialize(&mut to).or_code(Code::Bug)?;
    write(path, &String::from_utf8_lossy(&text), false).or_code(Code::Output)?;
    io.say(format_args!("result written to {}", path.display()));
    Ok(())
}
