//! What a report needs to know of a run beside its records: what was sent, and what was learned meanwhile.

use super::VllmPlan;
use super::beside::State;
use crate::names::Names;
use crate::prepare::Prepared;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use servebench_core::{Record, Sample, Stamp};
use servebench_report::vllm::{Diffusion, ProbeStats, Speculation};
use servebench_tokens::Tokenizer;

/// What was to be sent, as far as a report asks for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) requests: usize,
    pub(super) sha256: String,
    pub(super) warmup_prompts: String,
    /// Rows whose length is not the one asked for.
    pub(super) mismatch: u64,
    /// Whether there is a tokenizer.
    pub(super) tokenized: bool,
    /// Prompts in each request, where some have not one.
    sequences: Option<Vec<u64>>,
    /// Seconds of recordings in each request, where some have any.
    audio_s: Option<Vec<f64>>,
    /// When each request was due, in nanoseconds, where the rate rises.
    due_ns: Option<Vec<u64>>,
}

impl Sent {
    pub(super) fn of(
        plan: &VllmPlan,
        prepared: &Prepared,
        mismatch: u64,
        tokenizer: Option<&Tokenizer>,
    ) -> Self {
        let samples = prepared.samples.iter();
        let sequences: Vec<u64> =
            samples.clone().map(|sample| plan.backend.input_sequences(sample)).collect();
        let audio = |sample: &Sample| sample.audio.as_ref().map_or(0.0, |audio| audio.seconds);
        let has_audio = samples.clone().any(|sample| sample.audio.is_some());
        let due = || prepared.job.schedule.iter().map(|due| due.0).collect();
        Self {
            requests: prepared.job.requests.len(),
            sha256: prepared.sha256.clone(),
            warmup_prompts: prepared.warmup_prompts.to_owned(),
            mismatch,
            tokenized: tokenizer.is_some(),
            sequences: sequences.iter().any(|count| *count != 1).then_some(sequences),
            audio_s: has_audio.then(|| samples.map(audio).collect()),
            due_ns: plan.load.ramp.is_some().then(due),
        }
    }

    /// Prompts in the request of a record.
    pub(super) fn sequences(&self, record: &Record) -> u64 {
        let place = usize::try_from(record.id).unwrap_or(usize::MAX);
        match &self.sequences {
            Some(sequences) => sequences.get(place).copied().unwrap_or(0),
            None => u64::from(place < self.requests),
        }
    }

    /// Seconds of recordings in the request of a record.
    pub(super) fn audio_seconds(&self, record: &Record) -> f64 {
        let place = usize::try_from(record.id).unwrap_or(usize::MAX);
        self.audio_s.as_ref().and_then(|seconds| seconds.get(place)).copied().unwrap_or(0.0)
    }

    /// When each request was due, where the rate rises.
    pub(super) fn due(&self) -> Vec<Stamp> {
        self.due_ns.iter().flatten().copied().map(Stamp).collect()
    }
}

/// What was learned around the requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Learned {
    pub(super) speculation: Option<Speculation>,
    pub(super) diffusion: Option<Diffusion>,
    pub(super) probe: Option<ProbeStats>,
}

impl From<State> for Learned {
    fn from(state: State) -> Self {
        let State { speculation, diffusion, probe, .. } = state;
        Self { speculation, diffusion, probe }
    }
}

/// What a raw log says of its run when it begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct VllmMetadata {
    /// Version of the program that began the log.
    version: String,
    /// The command line in plain form, without what may be secret and without the log itself.
    pub(super) arguments: Vec<String>,
    /// The plan as results hold it.
    pub(super) plan: Value,
    model: String,
    served_model_name: String,
    /// Name of the tokenizer; `None` for the one that is built in.
    pub(super) tokenizer: Option<String>,
    pub(super) sent: Sent,
}

impl VllmMetadata {
    pub(super) fn new(
        plan: &VllmPlan,
        names: &Names,
        tokenizer: Option<&Tokenizer>,
        sent: Sent,
    ) -> Self {
        let named = tokenizer.filter(|tokenizer| !tokenizer.is_built_in());
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            arguments: plan.run.log.arguments.clone(),
            plan: json!(plan),
            model: names.model.clone(),
            served_model_name: names.served.clone(),
            tokenizer: named.map(|tokenizer| tokenizer.name().to_owned()),
            sent,
        }
    }

    pub(super) fn names(&self) -> Names {
        Names { model: self.model.clone(), served: self.served_model_name.clone() }
    }
}
