//! What the commands share that run an engine in the process in Python, and talk to a server here.

use super::result::measure_each;
use super::session::Session;
use crate::exit::OrCode;
use crate::prepare::Prepared;
use crate::serve::{Beside, Checkup, MeasuredRun, is_cancelled, say_failures};
use crate::{Code, Failure, Io, plain_arguments};
use clap::Args;
use serde::Serialize;
use serde_json::ser::PrettyFormatter;
use serde_json::{Value, json};
use servebench_metrics::verdict::Verdict;
use servebench_metrics::{ItlRule, Options, aggregate};
use servebench_report::vllm::{check_folder, write};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What is done around the measurement, and where its result goes.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Run")]
pub struct OfflineArgs {
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

/// A flag, or a value of `--backend`, that makes no sense without the engine.
pub(super) struct NeedsEngine {
    pub(super) names: &'static [&'static str],
    pub(super) why: &'static str,
    pub(super) instead: &'static str,
}

impl NeedsEngine {
    fn failure(&self, name: &str, tool: &str) -> Failure {
        let Self { why, instead, .. } = self;
        Failure::usage(format!("{name} of {tool} is not taken here: {why}")).hint(*instead)
    }
}

/// Writes abbreviations out, refuses what needs the engine, and puts `--backend` into our words.
pub(super) fn without_engine(
    words: Vec<OsString>,
    tool: &str,
    upstream: &[&str],
    refused: &[NeedsEngine],
) -> Result<Vec<OsString>, Failure> {
    let mut words = plain_arguments(words, upstream, &[])?;
    let refusal = |name: &str| {
        let found = refused.iter().find(|refused| refused.names.contains(&name));
        found.map_or(Ok(()), |refused| Err(refused.failure(name, tool)))
    };
    let mut of_backend = false;
    for word in &mut words {
        let Some(text) = word.to_str().map(str::to_owned) else { continue };
        let (flag, value) = match text.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (text.as_str(), None),
        };
        let backend = if of_backend { Some(text.as_str()) } else { value };
        if of_backend || (flag == "--backend" && value.is_some()) {
            let name = backend.unwrap_or_default();
            refusal(&format!("--backend {name}"))?;
            if name == "vllm-chat" {
                *word = if of_backend { "openai-chat" } else { "--backend=openai-chat" }.into();
            }
        } else {
            refusal(flag)?;
        }
        of_backend = flag == "--backend" && value.is_none();
    }
    Ok(words)
}

/// Said of every figure.
pub(super) const OVER_HTTP: &str =
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

/// A run that is over, and what it comes to.
pub(super) struct Pass {
    pub(super) measured: MeasuredRun,
    /// From the first request sent to the end of the last response.
    pub(super) seconds: f64,
    pub(super) completed: usize,
    pub(super) failed: usize,
    /// Of the requests that succeeded, by the server's count.
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    verdict: Verdict,
}

impl Pass {
    /// Sends the requests and says what failed.
    pub(super) fn run(
        session: &Session<'_>,
        prepared: &Prepared,
        beside: Option<&dyn Beside>,
    ) -> Result<Self, Failure> {
        let measured = session.measure(prepared, beside)?;
        let records = &measured.finished.records;
        say_failures(records, session.io);
        let requests = measure_each(records, session.tokenizer.as_ref());
        let seconds = measured.finished.end.as_secs_f64();
        let options = Options {
            itl_rule: ItlRule::PerChunk,
            duration: Some(seconds),
            upstream_duration: Some(seconds),
            ..Options::default()
        };
        let aggregates = aggregate(requests.iter().copied(), &options);
        let client = Checkup {
            plan: &session.plan.run,
            finished: &measured.finished,
            aggregates: &aggregates,
            used: &measured.used,
            descriptors: measured.descriptors,
            calibration: measured.calibration.as_ref(),
        }
        .health();
        let successes = || requests.iter().filter(|request| request.record.is_success());
        let completed = successes().count();
        Ok(Self {
            seconds,
            completed,
            failed: requests.len() - completed,
            prompt_tokens: successes().map(servebench_metrics::Measured::prompt_tokens).sum(),
            output_tokens: successes().map(|request| request.output_count().tokens).sum(),
            verdict: client.verdict,
            measured,
        })
    }

    /// `count` per second of the run.
    pub(super) fn per_second(&self, count: f64) -> f64 {
        if self.seconds > 0.0 { count / self.seconds } else { 0.0 }
    }

    /// What a result says beside the Python tool's keys.
    pub(super) fn own(&self, session: &Session<'_>) -> Value {
        let finished = &self.measured.finished;
        json!({
            "over_http": true,
            "version": env!("CARGO_PKG_VERSION"),
            "simulated": session.plan.run.simulate,
            "started_at_unix": self.measured.started_at_unix,
            "completed": self.completed,
            "failed": self.failed,
            "total_prompt_tokens": self.prompt_tokens,
            "total_output_tokens": self.output_tokens,
            "interrupted": session.interrupts.code().is_some(),
            "partial": finished.unsent > 0 || finished.records.iter().any(is_cancelled),
            "verdict": self.verdict.name(),
            "plan": session.plan,
        })
    }

    /// How the command ends.
    pub(super) fn code(&self, session: &Session<'_>) -> Code {
        if let Some(code) = session.interrupts.code() {
            return code;
        }
        let plan = &session.plan.run;
        let share = self.completed as f64 / ((self.completed + self.failed) as f64).max(1.0);
        let enough = plan.report.min_success_rate.is_none_or(|least| share >= least);
        if self.completed == 0 || !enough {
            return Code::Requests;
        }
        if plan.client.fail_if_client_bound && self.verdict == Verdict::ClientBound {
            session.io.say("--fail-if-client-bound: the client was the limit");
            return Code::Gate;
        }
        Code::Done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REFUSED: [NeedsEngine; 1] =
        [NeedsEngine { names: &["--backend hf", "--async-engine"], why: "so", instead: "that" }];

    fn words(typed: &[&str]) -> Result<Vec<String>, String> {
        let typed = typed.iter().map(OsString::from).collect();
        let upstream = ["--backend", "--async-engine", "--num-prompts"];
        without_engine(typed, "the tool", &upstream, &REFUSED)
            .map(|words| words.into_iter().map(|word| word.into_string().unwrap()).collect())
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_chat_backend_has_another_name_here() {
        assert_eq!(words(&["--back", "vllm-chat"]).unwrap(), ["--backend", "openai-chat"]);
        assert_eq!(words(&["--backend=vllm-chat"]).unwrap(), ["--backend=openai-chat"]);
        let same = ["--backend", "vllm", "--num-prompts", "5", "--unknown=vllm-chat"];
        assert_eq!(words(&same).unwrap(), same);
    }

    #[test]
    fn what_needs_the_engine_is_refused_with_the_reason() {
        for typed in [&["--async"][..], &["--backend", "hf"], &["--backend=hf"]] {
            let said = words(typed).unwrap_err();
            for part in ["of the tool is not taken here: so", "hint: that"] {
                assert!(said.contains(part), "{said}");
            }
        }
    }
}
