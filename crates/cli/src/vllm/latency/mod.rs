//! `latency`: whole batches, one after the other.

mod args;

pub use args::{LATENCY_FLAGS, LatencyArgs};

use super::beside::Around;
use super::offline::{Figures, Pass};
use super::plain;
use super::prepare::{prepare, request};
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{CommandFactory, Parser};
use serde_json::{Map, Value, json};
use servebench_backends::vllm::Form;
use servebench_core::random::{Draws, NumpyLegacy};
use servebench_core::{Prompt, Sample};
use servebench_datasets::vllm::VllmLoaded;
use servebench_metrics::{Measured, percentile};
use servebench_report::python_float;
use servebench_run::Job;
use std::ffi::OsString;
use std::fmt::Write as _;

const TOOL: &str = "vllm bench latency";
const FIGURES: Figures =
    Figures { metrics: &[("latency", "latencies")], further: &["avg_latency", "percentiles"] };
/// Token ids lie below this, whatever the model.
const IDS: u32 = 10_000;
/// Which percentiles are shown.
const PERCENTILES: [u32; 6] = [10, 25, 50, 75, 90, 99];

/// Reads arguments (without program and subcommand) the way `vllm bench latency` does.
///
/// # Errors
///
/// A usage failure whose message names the flag: also for flags of the engine, which the server has.
pub fn parse_latency<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    parse_as(plain(arguments, LATENCY_FLAGS, io)?, TOOL, LATENCY_FLAGS, io)
}

/// Sends batches one after the other and prints how long they took.
///
/// # Errors
///
/// What kept the run from being made or its result from being written.
pub fn latency(args: LatencyArgs, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    let (warmups, iterations) = (args.num_iters_warmup as usize, args.num_iters as usize);
    let batch = Batch { size: args.batch_size, input: args.input_len, output: args.output_len };
    let (workload, outcome) = (args.workload(), args.offline.outcome());
    let outcome = outcome.recorded(FIGURES, environment);
    // Prompts are token ids.
    let plan = args.offline.without_tokenizer().plan(workload, environment)?;
    if plan.backend.info().form != Form::Completions {
        let text = format!("--backend {}: batches of token ids need completions", plan.backend);
        return Err(Failure::usage(text).hint("use --backend openai"));
    }
    let Some(session) = outcome.begin(&plan, environment, io)? else { return Ok(Code::Done) };
    let mut draws = Draws::new(plan.dataset.seed);
    let loaded = VllmLoaded {
        samples: (0..iterations).map(|_| batch.draw(&mut draws.numpy)).collect(),
        ..VllmLoaded::default()
    };
    let names = &session.names;
    let mut prepared = prepare(&plan, &names.served, loaded, None, &mut draws)?;
    // Whole batches, as those that are measured.
    let protocol = prepared.protocol.as_ref();
    let warm = (0..warmups).map(|id| request(id, protocol, &batch.draw(&mut draws.numpy), None));
    prepared.warmup = Job { max_concurrency: Some(1), ..Job::burst(warm.collect()) };
    if warmups > 0 {
        prepared.warmup_prompts = "separate";
        io.say("Warming up...");
    }
    let around = Around::new(&session, &prepared);
    let pass = Pass::run(&session, &prepared, Some(&around))?;

    let records = pass.measured.finished.records.iter().filter(|record| record.is_success());
    let latencies: Vec<f64> =
        records.filter_map(|record| Measured::from(record).latency()).collect();
    let summary = Summary::of(latencies);
    let result = Value::Object(summary.json(&names.model));
    outcome.end(&session, &pass, summary.lines().trim_end(), result)
}

/// What one request asks for.
#[derive(Clone, Copy, Debug)]
struct Batch {
    size: u32,
    input: u32,
    output: u32,
}

impl Batch {
    /// Prompts of uniform token ids.
    fn draw(self, draws: &mut NumpyLegacy) -> Sample {
        let prompts: Vec<Vec<u32>> =
            (0..self.size).map(|_| draws.randint(0..=IDS - 1, self.input as usize)).collect();
        Sample {
            // One prompt alone is sent as it is; a list of them takes its place.
            prompt: Prompt::Ids(prompts.first().cloned().unwrap_or_default()),
            prompt_len: self.size.saturating_mul(self.input),
            output_len: self.output,
            extra_body: Map::from_iter([("prompt".to_owned(), json!(prompts))]),
            ..Sample::default()
        }
    }
}

/// What the batches took, in seconds.
struct Summary {
    /// In the order in which they were sent.
    latencies: Vec<f64>,
    average: Option<f64>,
    percentiles: [(u32, Option<f64>); PERCENTILES.len()],
}

impl Summary {
    fn of(latencies: Vec<f64>) -> Self {
        let mut sorted = latencies.clone();
        sorted.sort_by(f64::total_cmp);
        let count = latencies.len() as f64;
        let average = (count > 0.0).then(|| latencies.iter().sum::<f64>() / count);
        let percentiles = PERCENTILES.map(|q| (q, percentile(&sorted, q.into())));
        Self { latencies, average, percentiles }
    }

    fn lines(&self) -> String {
        let number = |value: Option<f64>| value.map_or("nan".to_owned(), python_float);
        let mut text = format!("Avg latency: {} seconds\n", number(self.average));
        for (q, value) in self.percentiles {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{q}% percentile latency: {} seconds", number(value));
        }
        text
    }

    fn json(&self, model: &str) -> Map<String, Value> {
        let percentiles = self.percentiles.iter();
        let percentiles: Map<String, Value> =
            percentiles.map(|(q, value)| (q.to_string(), json!(value))).collect();
        Map::from_iter(
            [
                ("model_id", json!(model)),
                ("avg_latency", json!(self.average)),
                ("latencies", json!(self.latencies)),
                ("percentiles", Value::Object(percentiles)),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_keys_are_the_python_tools() {
        let summary = Summary::of(vec![0.5, 0.25, 1.0]);
        let wanted = "\
Avg latency: 0.5833333333333334 seconds
10% percentile latency: 0.3 seconds
25% percentile latency: 0.375 seconds
50% percentile latency: 0.5 seconds
75% percentile latency: 0.75 seconds
90% percentile latency: 0.9 seconds
99% percentile latency: 0.99 seconds
";
        assert_eq!(summary.lines(), wanted);
        let result = summary.json("m");
        let keys: Vec<&String> = result.keys().collect();
        assert_eq!(keys, ["model_id", "avg_latency", "latencies", "percentiles"]);
        assert_eq!(result["latencies"], json!([0.5, 0.25, 1.0]));
        assert_eq!(result["percentiles"]["75"], 0.75);
    }

    #[test]
    fn nothing_measured_is_not_zero() {
        let summary = Summary::of(Vec::new());
        assert!(summary.lines().starts_with("Avg latency: nan seconds\n"));
        assert_eq!(summary.json("m")["avg_latency"], Value::Null);
    }

    #[test]
    fn each_batch_has_prompts_of_its_own() {
        let mut draws = NumpyLegacy::new(0);
        let batch = Batch { size: 3, input: 4, output: 5 };
        let (first, second) = (batch.draw(&mut draws), batch.draw(&mut draws));
        let prompts = |sample: &Sample| -> Vec<Vec<u32>> {
            serde_json::from_value(sample.extra_body["prompt"].clone()).unwrap()
        };
        // numpy.random.seed(0); numpy.random.randint(10000, size=(3, 4))
        let wanted = [[2732, 9845, 3264, 4859], [9225, 7891, 4373, 5874], [6744, 3468, 705, 2599]];
        assert_eq!(prompts(&first), wanted);
        assert_eq!((first.prompt_len, first.output_len), (12, 5));
        assert_ne!(prompts(&first), prompts(&second));
    }
}
