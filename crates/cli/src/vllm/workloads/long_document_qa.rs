//! `long-document-qa`: the same long prompts again and again.

use super::super::args::{ContentArgs, VllmDatasetArgs, VllmLoadArgs};
use super::super::offline::{OfflineArgs, Pass, Workload};
use super::super::prepare::prepare;
use super::super::session::Session;
use super::super::{VllmPlan, beside::Around, plain};
use crate::exit::OrCode;
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{Args, CommandFactory, Parser, ValueEnum};
use serde::Serialize;
use serde_json::json;
use servebench_core::random::{Draws, PythonRandom};
use servebench_core::{Prompt, Sample};
use servebench_datasets::vllm::VllmLoaded;
use servebench_run::Job;
use std::ffi::OsString;

const TOOL: &str = "benchmark_long_document_qa_throughput.py";

/// Every flag of vLLM's `benchmark_long_document_qa_throughput.py` but those of its engine: what may be
/// abbreviated.
pub const LONG_DOCUMENT_QA_FLAGS: &[&str] = &[
    "--document-length",
    "--help",
    "--num-documents",
    "--output-len",
    "--repeat-count",
    "--repeat-mode",
    "--shuffle-seed",
];

/// Flags of `long-document-qa`.
#[derive(Args, Clone, Debug)]
pub struct LongDocumentQaArgs {
    /// Words of each document, which are about as many tokens
    #[arg(long, value_name = "WORDS", default_value_t = 20_000,
        value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub document_length: u32,

    /// Documents
    #[arg(long, value_name = "N", default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub num_documents: u32,

    /// Most tokens of each reply
    #[arg(long, value_name = "TOKENS", default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    pub output_len: u32,

    /// How often each document is sent
    #[arg(long, value_name = "N", default_value_t = 2,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub repeat_count: u32,

    /// In which order
    #[arg(long, value_name = "MODE", default_value = "random")]
    pub repeat_mode: RepeatMode,

    /// Seed of the random order
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub shuffle_seed: u32,

    /// The server, and what is done around it.
    #[command(flatten)]
    pub offline: OfflineArgs,
}

/// In which order documents are repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RepeatMode {
    /// All of them as often as is asked for, shuffled.
    Random,
    /// The whole list, and again.
    Tile,
    /// Each one as often as is asked for, then the next.
    Interleave,
}

impl RepeatMode {
    /// Which document each request sends.
    fn order(self, documents: u32, count: u32, seed: u32) -> Vec<u32> {
        let tiled = || (0..count).flat_map(|_| 0..documents);
        match self {
            Self::Tile => tiled().collect(),
            Self::Interleave => {
                (0..documents).flat_map(|it| std::iter::repeat_n(it, count as usize)).collect()
            }
            Self::Random => {
                let mut order: Vec<u32> = tiled().collect();
                PythonRandom::new(seed).shuffle(&mut order);
                order
            }
        }
    }
}

/// Reads arguments (without program and subcommand) the way the Python script does.
///
/// # Errors
///
/// A usage failure whose message names the flag: also for flags of the engine, which the server has.
pub fn parse_long_document_qa<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    let words = plain(arguments, LONG_DOCUMENT_QA_FLAGS, io)?;
    parse_as(words, TOOL, LONG_DOCUMENT_QA_FLAGS, io)
}

/// Sends other documents of the same length, then the documents, all at once, and prints how long both
/// took.
///
/// # Errors
///
/// What kept the run from being made or its result from being written.
pub fn long_document_qa(
    args: &LongDocumentQaArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let count = u64::from(args.num_documents) * u64::from(args.repeat_count);
    if count > 10_000_000 {
        let text = format!("--num-documents, --repeat-count: {count} requests are too many");
        return Err(Failure::usage(text));
    }
    let (plan, outcome) = (plan(args, environment)?, args.offline.outcome());
    let Some(session) = outcome.begin(&plan, environment, io)? else { return Ok(Code::Done) };
    let mode = args.repeat_mode.to_possible_value();
    let mode = mode.as_ref().map_or("", |mode| mode.get_name());
    io.print(format_args!("Repeat mode:  {mode}\n------warm up------")).or_code(Code::Output)?;
    let order: Vec<u32> = (0..args.num_documents).collect();
    let warm = send(&session, args, &order, false)?;
    io.print(time_line(&warm)).or_code(Code::Output)?;
    if warm.completed == 0 {
        return Ok(warm.code(&session));
    }
    io.print("------start generating------").or_code(Code::Output)?;
    let order = args.repeat_mode.order(args.num_documents, args.repeat_count, args.shuffle_seed);
    let pass = send(&session, args, &order, true)?;
    let result = json!({
        "model_id": session.names.model,
        "repeat_mode": args.repeat_mode,
        "repeat_count": args.repeat_count,
        "num_documents": args.num_documents,
        "document_length": args.document_length,
        "output_len": args.output_len,
        "warmup_time": warm.seconds,
        "elapsed_time": pass.seconds,
    });
    outcome.end(&session, &pass, time_line(&pass), result)
}

fn plan(args: &LongDocumentQaArgs, environment: &Environment) -> Result<VllmPlan, Failure> {
    let count = args.num_documents.saturating_mul(args.repeat_count);
    let workload = Workload {
        load: VllmLoadArgs { num_prompts: Some(count.into()), ..VllmLoadArgs::default() },
        content: ContentArgs { temperature: Some(0.0), ..ContentArgs::default() },
        dataset: VllmDatasetArgs {
            input_len: Some(args.document_length),
            output_len: Some(args.output_len.into()),
            ..VllmDatasetArgs::default()
        },
    };
    let mut plan = args.offline.clone().without_tokenizer().plan(workload, environment)?;
    // Unlike for random data, a reply may end by itself.
    plan.ignore_eos = false;
    Ok(plan)
}

fn send(
    session: &Session<'_>,
    args: &LongDocumentQaArgs,
    order: &[u32],
    measured: bool,
) -> Result<Pass, Failure> {
    let lead = if measured { "" } else { "Warm-up, document " };
    let sample = |number: &u32| Sample {
        prompt: Prompt::Text(document(lead, *number, args.document_length)),
        prompt_len: args.document_length,
        output_len: args.output_len,
        ..Sample::default()
    };
    let loaded =
        VllmLoaded { samples: order.iter().map(sample).collect(), ..VllmLoaded::default() };
    let mut draws = Draws::new(session.plan.dataset.seed);
    let served = &session.names.served;
    let mut prepared = prepare(session.plan, served, loaded, None, &mut draws)?;
    if !measured {
        return Pass::run(session, &prepared, None);
    }
    // Nothing that is measured may be known to the server.
    prepared.warmup = Job::burst(Vec::new());
    prepared.warmup_prompts = "separate";
    let around = Around::new(session, &prepared);
    Pass::run(session, &prepared, Some(&around))
}

fn time_line(pass: &Pass) -> String {
    format!("Time to execute all requests: {:.4} secs", pass.seconds)
}

/// A number, and a word again and again: documents differ in their first token.
fn document(lead: &str, number: u32, words: u32) -> String {
    let mut text = format!("{lead}{number}hi");
    text.push_str(&" hi".repeat(words.saturating_sub(1) as usize));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_the_python_scripts() {
        assert_eq!(document("", 12, 3), "12hi hi hi");
        assert_eq!(document("", 0, 1), "0hi");
    }

    #[test]
    fn each_mode_has_its_order() {
        assert_eq!(RepeatMode::Tile.order(3, 2, 0), [0, 1, 2, 0, 1, 2]);
        assert_eq!(RepeatMode::Interleave.order(3, 2, 0), [0, 0, 1, 1, 2, 2]);
        // random.seed(s); order = [0, 1, 2, 3] * 2; random.shuffle(order)
        assert_eq!(RepeatMode::Random.order(4, 2, 0), [0, 1, 1, 2, 0, 3, 3, 2]);
        assert_eq!(RepeatMode::Random.order(4, 2, 7), [2, 3, 2, 0, 0, 3, 1, 1]);
    }
}
