//! What a raw log holds beside records: what a report needs to know of a run.

use crate::names::Names;
use crate::prepare::Prepared;
use crate::serve::{Descriptors, MeasuredRun, Used};
use crate::{Code, Failure, Plan};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use servebench_core::{Conversation, Pictures, Request, Sample, Stamp};
use servebench_http::Stamps;
use servebench_report::{Calibration, TcpCounts};
use servebench_run::{EndedBy, Finished, LoopHealth};
use servebench_tokens::Tokenizer;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// What all parts of a run have in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Metadata {
    /// Version of the program that began the log.
    pub(crate) version: String,
    /// The command line in plain form, without what may be secret and without the log itself.
    pub(crate) arguments: Vec<String>,
    /// The plan as results hold it.
    pub(crate) plan: Value,
    pub(crate) plan_sha256: String,
    pub(crate) model: String,
    pub(crate) served_model_name: String,
    /// Name of the tokenizer; `None` for the one that is built in.
    pub(crate) tokenizer: Option<String>,
    pub(crate) warmup_prompts: String,
    /// Requests of the plan; a conversation is one.
    pub(crate) requests: u64,
    /// Turns of each, where there are conversations.
    pub(crate) turns: Option<Vec<usize>>,
    /// Tokens of each one's pictures, where there are pictures.
    pub(crate) vision_tokens: Option<Vec<Option<u32>>>,
}

impl Metadata {
    pub(crate) fn new(
        plan: &Plan,
        names: &Names,
        tokenizer: &Tokenizer,
        prepared: &Prepared,
    ) -> Self {
        let requests = &prepared.job.requests;
        let talks = requests.iter().any(|request| request.conversation.is_some());
        let pictures = prepared.samples.iter().any(|sample| sample.pictures.is_some());
        let vision = |sample: &Sample| sample.pictures.as_ref().and_then(|it| it.tokens);
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            arguments: plan.log.arguments.clone(),
            plan: serde_json::to_value(plan).unwrap_or_default(),
            plan_sha256: prepared.sha256.clone(),
            model: names.model.clone(),
            served_model_name: names.served.clone(),
            tokenizer: (!tokenizer.is_built_in()).then(|| tokenizer.name().to_owned()),
            warmup_prompts: prepared.warmup_prompts.to_owned(),
            requests: requests.len() as u64,
            turns: talks.then(|| requests.iter().map(Request::turns).collect()),
            vision_tokens: pictures.then(|| prepared.samples.iter().map(vision).collect()),
        }
    }

    /// Reads it back from a log.
    pub(crate) fn read(value: &Value) -> Result<Self, Failure> {
        metadata(value)
    }

    pub(crate) fn names(&self) -> Names {
        Names { model: self.model.clone(), served: self.served_model_name.clone() }
    }

    /// The requests as far as a report asks for them: who they are, not what was sent.
    pub(crate) fn outline(&self) -> (Vec<Request>, Vec<Sample>) {
        let conversation = |turns: usize| {
            let turns = vec![bytes::Bytes::new(); turns];
            Arc::new(Conversation { turns, ..Conversation::default() })
        };
        let mut id = 0;
        let request = |at: usize| {
            let turns = self.turns.as_ref().and_then(|turns| turns.get(at)).copied();
            let request =
                Request { id, conversation: turns.map(conversation), ..Request::default() };
            id += request.turns() as u64;
            request
        };
        let sample = |tokens: &Option<u32>| Sample {
            pictures: Some(Box::new(Pictures { tokens: *tokens, ..Pictures::default() })),
            ..Sample::default()
        };
        let samples = self.vision_tokens.iter().flatten().map(sample).collect();
        ((0..self.requests as usize).map(request).collect(), samples)
    }
}

/// What is known of a part when it begins.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct PartFacts {
    pub(crate) started_at_unix_ms: u64,
}

impl PartFacts {
    pub(crate) fn read(value: &Value) -> Result<Self, Failure> {
        facts(value, "a part of the run")
    }
}

/// What is known of a part when it is over.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EndFacts {
    pub(crate) started_at_unix_ms: u64,
    pub(crate) workers: u64,
    /// When the last response ended.
    pub(crate) end_ns: u64,
    /// Whether a signal ended it.
    pub(crate) interrupted: bool,
    /// Who ended it early.
    pub(crate) ended_by: Option<String>,
    pub(crate) after_s: f64,
    pub(crate) server_info: Option<Value>,
    pub(crate) cache_flushed: bool,
    pub(crate) lookup_ns: u64,
    pub(crate) kernel_stamps: bool,
    pub(crate) profile_workers: Option<Value>,
    pub(crate) cpu_share: Option<f64>,
    pub(crate) tcp: Option<TcpCounts>,
    pub(crate) descriptors_needed: u64,
    pub(crate) descriptor_limit: Option<u64>,
    pub(crate) loops: Vec<LoopFacts>,
    pub(crate) calibration: Option<Calibration>,
    /// What the command learned beside its requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) beside: Option<Value>,
}

/// How one worker's event loop fared; all times in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct LoopFacts {
    cpu_ns: u64,
    turns: u64,
    stalls: u64,
    longest_stall_ns: u64,
    stalled_ns: u64,
}

impl EndFacts {
    pub(crate) fn new(run: &MeasuredRun, workers: u64, interrupted: bool) -> Self {
        let of_loop = |health: &LoopHealth| LoopFacts {
            cpu_ns: nanos(health.cpu),
            turns: health.turns,
            stalls: health.stalls,
            longest_stall_ns: nanos(health.longest_stall),
            stalled_ns: nanos(health.stalled),
        };
        Self {
            started_at_unix_ms: (run.started_at_unix * 1e3).round() as u64,
            workers,
            end_ns: run.finished.end.0,
            interrupted,
            ended_by: run.finished.ended_by.map(|by| by.name().to_owned()),
            after_s: run.after_seconds,
            server_info: run.server_info.clone(),
            cache_flushed: run.cache_flushed,
            lookup_ns: nanos(run.lookup),
            kernel_stamps: run.stamps == Stamps::Kernel,
            profile_workers: run.profile_workers.clone(),
            cpu_share: run.used.cpu_share,
            tcp: run.used.tcp,
            descriptors_needed: run.descriptors.needed,
            descriptor_limit: run.descriptors.limit,
            loops: run.finished.loops.iter().map(of_loop).collect(),
            calibration: run.calibration.clone(),
            beside: None,
        }
    }

    pub(crate) fn read(value: &Value) -> Result<Self, Failure> {
        facts(value, "the end of a part")
    }

    /// The run again, without its records.
    pub(crate) fn run(self) -> MeasuredRun {
        let health = |it: &LoopFacts| LoopHealth {
            cpu: Duration::from_nanos(it.cpu_ns),
            turns: it.turns,
            stalls: it.stalls,
            longest_stall: Duration::from_nanos(it.longest_stall_ns),
            stalled: Duration::from_nanos(it.stalled_ns),
        };
        let ended_by = [EndedBy::Interrupt, EndedBy::Duration, EndedBy::NoProgress]
            .into_iter()
            .find(|by| self.ended_by.as_deref() == Some(by.name()));
        let loops = self.loops.iter().map(health).collect();
        MeasuredRun {
            finished: Finished { end: Stamp(self.end_ns), ended_by, loops, ..Finished::default() },
            started_at_unix: self.started_at_unix_ms as f64 / 1e3,
            after_seconds: self.after_s,
            server_info: self.server_info,
            cache_flushed: self.cache_flushed,
            lookup: Duration::from_nanos(self.lookup_ns),
            stamps: if self.kernel_stamps { Stamps::Kernel } else { Stamps::User },
            profiler: None,
            profile_workers: self.profile_workers,
            used: Used { cpu_share: self.cpu_share, tcp: self.tcp },
            descriptors: Descriptors {
                needed: self.descriptors_needed,
                limit: self.descriptor_limit,
            },
            calibration: self.calibration,
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads back from a log what all parts of its run have in common.
pub(super) fn metadata<M: DeserializeOwned>(value: &Value) -> Result<M, Failure> {
    facts(value, "what it is of").map_err(|failure| match writer(value) {
        Some(program) => another("the log", program, "analyze"),
        None => failure,
    })
}

/// The program whose log this is, by what only its logs hold.
fn writer(metadata: &Value) -> Option<&'static str> {
    let keys = [("plan_sha256", "bench-serving"), ("sent", "bench-vllm")];
    keys.into_iter().find(|(key, _)| metadata.get(key).is_some()).map(|(_, program)| program)
}

/// `what` is of a run of another program, whose `command` reads it.
pub(crate) fn another(what: impl Display, program: &str, command: &str) -> Failure {
    let error = anyhow::anyhow!("{what} is of a run of {program}");
    Failure::new(Code::Data, error).hint(format!("{program} {command} makes its table"))
}

fn facts<T: for<'a> Deserialize<'a>>(value: &Value, what: &str) -> Result<T, Failure> {
    T::deserialize(value).map_err(|error| {
        let error = anyhow::anyhow!("the log does not tell {what}: {error}");
        Failure::new(Code::Data, error)
            .hint("it was written by another program, or by another version of this one")
    })
}
