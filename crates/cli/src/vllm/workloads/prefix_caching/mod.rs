//! `prefix-caching`: prompts that share a beginning or come again.

mod args;
mod prompts;

pub use args::{PREFIX_CACHING_FLAGS, PrefixCachingArgs};

use crate::exit::OrCode;
use crate::vllm::beside::Around;
use crate::vllm::counters::LookedUp;
use crate::vllm::offline::{Kind, Pass};
use crate::vllm::plain;
use crate::vllm::prepare::prepare;
use crate::vllm::session::Session;
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{CommandFactory, Parser};
use serde_json::json;
use servebench_core::random::Draws;
use servebench_core::{Record, Sample};
use servebench_datasets::vllm::{VllmDataset, VllmLoaded};
use servebench_metrics::Measured;
use servebench_report::python_float;
use std::collections::HashSet;
use std::ffi::OsString;
use std::sync::PoisonError;

const TOOL: &str = "benchmark_prefix_caching.py";

/// Reads arguments (without program and subcommand) the way the Python script does.
///
/// # Errors
///
/// A usage failure whose message names the flag: also for flags of the engine, which the server has.
pub fn parse_prefix_caching<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    parse_as(plain(arguments, PREFIX_CACHING_FLAGS, io)?, TOOL, PREFIX_CACHING_FLAGS, io)
}

/// Sends prompts as often as is asked for, all at once, and prints how long it took and what of them was
/// in the server's cache.
///
/// # Errors
///
/// What kept the run from being made or its result from being written.
pub fn prefix_caching(
    args: &PrefixCachingArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let count = u64::from(args.num_prompts) * u64::from(args.repeat_count);
    if count > 10_000_000 {
        let text = format!("--num-prompts, --repeat-count: {count} requests are too many");
        return Err(Failure::usage(text));
    }
    let (prefix, max) = (args.prefix_len, *args.input_length_range.end());
    if prefix > max {
        let text = format!("--prefix-len {prefix} is longer than a prompt of {max} tokens");
        return Err(Failure::usage(text).hint("--input-length-range counts the prefix, too"));
    }
    let outcome = args.offline.outcome();
    let mut plan = args.offline.clone().plan(args.workload(), environment)?;
    // Unlike for random data, a reply may end by itself.
    plan.ignore_eos = false;
    if let VllmDataset::ShareGpt(own) = &mut plan.dataset.dataset {
        own.prompt_lens = Some(args.input_length_range.clone());
    }
    let Some(session) = outcome.begin(&plan, environment, io)? else { return Ok(Code::Done) };
    let whence = match &args.dataset_path {
        Some(path) => path.display().to_string(),
        None => "random".to_owned(),
    };
    io.print(format_args!("Start to sample {} prompts from {whence}", args.num_prompts))
        .or_code(Code::Output)?;
    let mut draws = Draws::new(plan.dataset.seed);
    let samples = sample(args, &session, &mut draws)?;
    let lengths = Lengths::of(&samples);
    io.print(format_args!("{}\nTesting filtered requests", lengths.lines()))
        .or_code(Code::Output)?;
    let order = prompts::order(&samples, args.repeat_count, args.sort, &mut draws.python);
    let loaded = VllmLoaded {
        samples: order.iter().map(|prompt| samples[*prompt].clone()).collect(),
        request_ids: true,
        ..VllmLoaded::default()
    };
    let (names, tokenizer) = (&session.names, session.tokenizer.as_ref());
    let prepared = prepare(&plan, &names.served, loaded, tokenizer, &mut draws)?;
    io.print("------start generating------").or_code(Code::Output)?;
    let around = Around::new(&session, &prepared);
    let pass = Pass::run(&session, &prepared, Some(&around))?;

    let state = around.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let records = &pass.measured.finished.records;
    let cached = Cached::of(records, state.prefix_cache);
    let kinds = first_and_again(&order, records);
    let lines = format!(
        "cost time {}\n{}\n{}",
        python_float(pass.seconds),
        Kind::table("Latency (ms)", &kinds),
        cached.as_ref().map_or_else(not_told, Cached::line),
    );
    let [first, again] = &kinds;
    let range = &args.input_length_range;
    let result = json!({
        "model_id": names.model,
        "num_prompts": samples.len(),
        "repeat_count": args.repeat_count,
        "sort": args.sort,
        "input_length_range": [range.start(), range.end()],
        "prefix_len": args.prefix_len,
        "output_len": args.output_len,
        "average_input_length": lengths.average,
        "p50_input_length": lengths.median,
        "min_input_length": lengths.min,
        "max_input_length": lengths.max,
        "elapsed_time": pass.seconds,
        "requests_per_second": pass.per_second(pass.completed as f64),
        "cached_tokens": cached.as_ref().map(|cached| cached.tokens.found),
        "looked_up_tokens": cached.as_ref().map(|cached| cached.tokens.tokens),
        "cached_share": cached.as_ref().map(Cached::share),
        "cached_tokens_from": cached.as_ref().map(|cached| cached.from),
        "first": first.json(),
        "again": again.json(),
    });
    outcome.end(&session, &pass, lines, result)
}

/// The different prompts.
fn sample(
    args: &PrefixCachingArgs,
    session: &Session<'_>,
    draws: &mut Draws,
) -> Result<Vec<Sample>, Failure> {
    let Some(tokenizer) = &session.tokenizer else {
        let text = "--skip-tokenizer-init: prompts are made of tokens, and there is no tokenizer";
        return Err(Failure::usage(text));
    };
    let ticker = session.preparing();
    let samples = if args.dataset_path.is_some() {
        let mut samples = session.load(draws)?.samples;
        prompts::retokenize(&mut samples, tokenizer)?;
        samples
    } else {
        prompts::random(args, tokenizer, &mut draws.python)?
    };
    drop(ticker);
    Ok(samples)
}

/// Lengths of the different prompts, in tokens.
#[derive(Debug, PartialEq)]
struct Lengths {
    count: usize,
    average: f64,
    /// The upper one of the two in the middle.
    median: u32,
    min: u32,
    max: u32,
}

impl Lengths {
    /// Of at least one prompt.
    fn of(samples: &[Sample]) -> Self {
        let mut lengths: Vec<u32> = samples.iter().map(|sample| sample.prompt_len).collect();
        lengths.sort_unstable();
        let sum: u64 = lengths.iter().copied().map(u64::from).sum();
        let at = |place: usize| lengths.get(place).copied().unwrap_or(0);
        let count = lengths.len();
        Self {
            count,
            average: sum as f64 / count.max(1) as f64,
            median: at(count / 2),
            min: at(0),
            max: at(count.saturating_sub(1)),
        }
    }

    fn lines(&self) -> String {
        let Self { count, average, median, min, max } = self;
        format!(
            "Sampled {count} requests.\n\
             Average input length: {}\n\
             P50 input length: {median}\n\
             Min Prompt Length: {min}\n\
             Max Prompt Length: {max}",
            python_float(*average)
        )
    }
}

/// Requests that sent their prompt first, and those that sent it again.
fn first_and_again(order: &[usize], records: &[Record]) -> [Kind; 2] {
    let mut seen = HashSet::new();
    let is_first: Vec<bool> = order.iter().map(|prompt| seen.insert(*prompt)).collect();
    let kind = |name: &str, first: bool| {
        let is = |record: &&Record| {
            usize::try_from(record.id).is_ok_and(|id| is_first.get(id) == Some(&first))
        };
        Kind::of(name, records.iter().filter(is))
    };
    [kind("sent first", true), kind("sent again", false)]
}

/// Prompt tokens that were in the server's cache.
#[derive(Debug, PartialEq)]
struct Cached {
    tokens: LookedUp,
    /// Who tells.
    from: &'static str,
}

impl Cached {
    /// By the replies where they tell, else by the server's counters, which also count what others send.
    fn of(records: &[Record], counted: Option<LookedUp>) -> Option<Self> {
        let mut told: Option<LookedUp> = None;
        for record in records.iter().filter(|record| record.is_success()) {
            if let Some(found) = record.reply.cached_tokens {
                let sum = told.get_or_insert_default();
                sum.tokens += Measured::from(record).prompt_tokens();
                sum.found = sum.found.saturating_add(found);
            }
        }
        let told = told.map(|tokens| Self { tokens, from: "usage" });
        told.or(counted.map(|tokens| Self { tokens, from: "metrics" }))
    }

    fn share(&self) -> f64 {
        self.tokens.found as f64 / self.tokens.tokens.max(1) as f64
    }

    fn line(&self) -> String {
        let LookedUp { tokens, found } = self.tokens;
        let from = match self.from {
            "usage" => "by the replies",
            _ => "by the server's /metrics",
        };
        let percent = self.share() * 100.0;
        format!("Prompt tokens found in the cache: {found} of {tokens} ({percent:.1} %), {from}")
    }
}

fn not_told() -> String {
    "Prompt tokens found in the cache: not told (vllm serve --enable-prompt-tokens-details tells)"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_the_python_scripts() {
        let sample = |prompt_len| Sample { prompt_len, ..Sample::default() };
        let lengths = Lengths::of(&[sample(9), sample(4), sample(5), sample(7)]);
        let wanted = "\
Sampled 4 requests.
Average input length: 6.25
P50 input length: 7
Min Prompt Length: 4
Max Prompt Length: 9";
        assert_eq!(lengths.lines(), wanted);
    }

    fn record(id: u64, prompt_len: u32, cached: Option<u64>) -> Record {
        let mut record = Record { id, prompt_len, output_len: 1, ..Record::default() };
        record.reply.push_chunk(servebench_core::Stamp::from_millis(1), Some(1), 0, "a");
        record.reply.finish_reason = Some("length".into());
        record.reply.cached_tokens = cached;
        record
    }

    #[test]
    fn replies_tell_before_counters_do() {
        let counted = Some(LookedUp { tokens: 100, found: 10 });
        let told = [record(0, 16, Some(0)), record(1, 16, Some(8)), record(2, 16, None)];
        let cached = Cached::of(&told, counted).unwrap();
        assert_eq!(
            cached.line(),
            "Prompt tokens found in the cache: 8 of 32 (25.0 %), by the replies"
        );
        let silent = [record(0, 16, None)];
        assert_eq!(Cached::of(&silent, counted).unwrap().from, "metrics");
        assert_eq!(Cached::of(&silent, None), None);
    }

    #[test]
    fn a_prompt_is_first_once() {
        let records: Vec<Record> = (0..4).map(|id| record(id, 1, None)).collect();
        let [first, again] = first_and_again(&[1, 0, 1, 1], &records);
        assert_eq!(first.json()["completed"], 2);
        assert_eq!(again.json()["completed"], 2);
    }
}
