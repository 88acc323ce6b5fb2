//! `prioritization`: requests of two priorities, all at once.

use crate::vllm::args::{ContentArgs, DatasetName, VllmDatasetArgs, VllmLoadArgs};
use crate::vllm::beside::Around;
use crate::vllm::offline::{Kind, OfflineArgs, Pass, Workload, of_a_server, replies};
use crate::vllm::plain;
use crate::vllm::prepare::prepare;
use crate::vllm::session::Session;
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{Args, CommandFactory, Parser};
use serde_json::{Map, Value, json};
use servebench_core::random::{Draws, PythonRandom};
use servebench_core::{Prompt, Record, Sample};
use servebench_datasets::vllm::VllmLoaded;
use std::ffi::OsString;
use std::path::PathBuf;

const TOOL: &str = "benchmark_prioritization.py";
/// The key of a request's body.
const PRIORITY: &str = "priority";

/// Every flag of vLLM's `benchmark_prioritization.py` but those of its engine: what may be abbreviated.
pub const PRIORITIZATION_FLAGS: &[&str] = &[
    "--backend",
    "--dataset",
    "--disable-detokenize",
    "--help",
    "--input-len",
    "--n",
    "--num-prompts",
    "--output-json",
    "--output-len",
];

/// Flags of `prioritization`.
#[derive(Args, Clone, Debug)]
pub struct PrioritizationArgs {
    /// Take prompts from this ShareGPT file
    #[arg(long, value_name = "FILE", conflicts_with = "input_len")]
    pub dataset: Option<PathBuf>,

    /// Tokens of each prompt, about; needed without --dataset
    #[arg(long, value_name = "TOKENS", required_unless_present = "dataset",
        value_parser = clap::value_parser!(u32).range(2..=16_777_216))]
    pub input_len: Option<u32>,

    /// Tokens of each reply; needed without --dataset [default: those of the file's reply]
    #[arg(long, value_name = "TOKENS", required_unless_present = "dataset",
        value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub output_len: Option<u32>,

    /// Replies to each prompt
    #[arg(long, value_name = "N", default_value_t = 1,
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub n: u32,

    /// Requests to send
    #[arg(long, value_name = "N", default_value_t = 200,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub num_prompts: u32,

    /// The server, and what is done around it.
    #[command(flatten)]
    pub offline: OfflineArgs,
}

impl PrioritizationArgs {
    /// All requests at once, sampled as the Python script does.
    fn workload(&self) -> Workload {
        let name = if self.dataset.is_some() { DatasetName::ShareGpt } else { DatasetName::Random };
        let output_len = self.output_len.map(i64::from);
        Workload {
            load: VllmLoadArgs {
                num_prompts: Some(self.num_prompts.into()),
                ..VllmLoadArgs::default()
            },
            content: ContentArgs {
                ignore_eos: true,
                temperature: Some(1.0),
                top_p: Some(1.0),
                extra_body: replies(self.n),
                ..ContentArgs::default()
            },
            dataset: VllmDatasetArgs {
                dataset_name: Some(name),
                dataset_path: self.dataset.clone(),
                no_oversample: true,
                input_len: self.input_len,
                output_len,
                ..VllmDatasetArgs::default()
            },
        }
    }
}

/// Reads arguments (without program and subcommand) the way the Python script does.
///
/// # Errors
///
/// A usage failure whose message names the flag: also for flags of the engine, which the server has.
pub fn parse_prioritization<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    let words =
        of_a_server(plain(arguments, PRIORITIZATION_FLAGS, io)?, TOOL, PRIORITIZATION_FLAGS)?;
    parse_as(words, TOOL, PRIORITIZATION_FLAGS, io)
}

/// Sends all requests at once, each of priority 0 or 1, and prints how fast they were and what each
/// priority waited.
///
/// # Errors
///
/// What kept the run from being made or its result from being written.
pub fn prioritization(
    args: &PrioritizationArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let outcome = args.offline.outcome();
    let offline = args.offline.clone();
    // The script's own prompts have no more than a nominal length.
    let offline = if args.dataset.is_some() { offline } else { offline.without_tokenizer() };
    let plan = offline.plan(args.workload(), environment)?;
    let Some(session) = outcome.begin(&plan, environment, io)? else { return Ok(Code::Done) };
    let mut draws = Draws::new(plan.dataset.seed);
    let mut samples = match args.input_len {
        Some(length) => {
            vec![synthetic(length, args.output_len.unwrap_or(0)); args.num_prompts as usize]
        }
        None => from_file(&session, &mut draws)?,
    };
    let priorities = priorities(&mut samples, &mut draws.python);
    let loaded = VllmLoaded { samples, request_ids: true, ..VllmLoaded::default() };
    let (names, tokenizer) = (&session.names, session.tokenizer.as_ref());
    let prepared = prepare(&plan, &names.served, loaded, tokenizer, &mut draws)?;
    let around = Around::new(&session, &prepared);
    let pass = Pass::run(&session, &prepared, Some(&around))?;

    let kinds = [0, 1].map(|priority| {
        let is = |record: &&Record| {
            usize::try_from(record.id).is_ok_and(|id| priorities.get(id) == Some(&priority))
        };
        let records = pass.measured.finished.records.iter();
        Kind::of(format!("priority {priority}"), records.filter(is))
    });
    let total = pass.prompt_tokens + pass.output_tokens;
    let requests = pass.per_second(pass.completed as f64);
    let tokens = pass.per_second(total as f64);
    let lines = format!(
        "Throughput: {requests:.2} requests/s, {tokens:.2} tokens/s\n{}",
        Kind::table("Latency (ms)", &kinds)
    );
    let by_priority: Map<String, Value> = kinds
        .iter()
        .enumerate()
        .map(|(priority, kind)| (priority.to_string(), kind.json()))
        .collect();
    let result = json!({
        "elapsed_time": pass.seconds,
        "num_requests": pass.completed,
        "total_num_tokens": total,
        "requests_per_second": requests,
        "tokens_per_second": tokens,
        "servebench": {"model_id": names.model, "priorities": by_priority},
    });
    outcome.end(&session, &pass, lines, result)
}

/// One syllable again and again, without spaces. How many tokens that makes is up to the tokenizer.
fn synthetic(input_len: u32, output_len: u32) -> Sample {
    Sample {
        prompt: Prompt::Text("hi".repeat(input_len.saturating_sub(1) as usize)),
        prompt_len: input_len,
        output_len,
        ..Sample::default()
    }
}

fn from_file(session: &Session<'_>, draws: &mut Draws) -> Result<Vec<Sample>, Failure> {
    let ticker = session.preparing();
    let loaded = session.load(draws)?;
    drop(ticker);
    Ok(loaded.samples)
}

/// Gives each request one of two priorities, and says which.
fn priorities(samples: &mut [Sample], random: &mut PythonRandom) -> Vec<u8> {
    samples
        .iter_mut()
        .map(|sample| {
            let priority = u8::from(random.random() >= 0.5);
            sample.extra_body.insert(PRIORITY.to_owned(), json!(priority));
            priority
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_are_the_python_scripts() {
        let mut samples = vec![synthetic(3, 5); 12];
        let drawn = priorities(&mut samples, &mut PythonRandom::new(0));
        // random.seed(0); [0 if random.random() < 0.5 else 1 for _ in range(12)]
        assert_eq!(drawn, [1, 1, 0, 0, 1, 0, 1, 0, 0, 1, 1, 1]);
        assert_eq!(samples[2].extra_body["priority"], 0);
        assert_eq!(samples[11].extra_body["priority"], 1);
        assert_eq!(samples[0].prompt, Prompt::Text("hihi".to_owned()));
    }
}
