//! From records to the table and the result line.

use super::conversations;
use super::health::Checkup;
use super::measure::Measured as MeasuredRun;
use super::percentiles::Percentiles;
use super::shape;
use super::targets;
use crate::exit::OrCode;
use crate::names::Names;
use crate::prepare::Prepared;
use crate::raw_log::{EndFacts, RawLog};
use crate::record::Recording;
use crate::signals::Interrupts;
use crate::{Code, Failure, Io, Plan, endings};
use serde_json::{Map, Value, json};
use servebench_backends::{Family, ItlRule as BackendItl};
use servebench_control::accept_length;
use servebench_core::{FailureKind, Record, Sample};
use servebench_datasets::count_true_lengths;
use servebench_http::Stamps;
use servebench_journal::records::Counted;
use servebench_metrics::verdict::Verdict;
use servebench_metrics::{ItlRule, Measured, Options, aggregate};
use servebench_report::{Report, RequestRate, RunInfo, append_line, json_line, table};
use servebench_run::{EndedBy, Finished};
use servebench_tokens::Tokenizer;
use std::collections::BTreeMap;
use std::path::Path;

/// A run that is over, and what it was.
pub(crate) struct Outcome<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) model: &'a Names,
    pub(crate) prepared: &'a Prepared,
    pub(crate) measured: MeasuredRun,
    pub(crate) workers: Option<u64>,
    /// Whether a signal, or worse, ended the run.
    pub(crate) interrupted: bool,
    /// What was counted before; `None`: that is done now.
    pub(crate) counts: Option<Vec<Counted>>,
    /// Seconds for which the requests went on, where they are not all those of the run.
    pub(crate) window: Option<f64>,
    /// Further percentiles to be reported.
    pub(crate) percentiles: &'a [f64],
    /// Further keys of the result; those of a report's own stand behind them.
    pub(crate) extra: Map<String, Value>,
    /// The raw log of the run, and how the part of the run ended that was written to it last.
    pub(crate) log: Option<(RawLog, EndFacts)>,
    /// The recording of the run, and how it ended.
    pub(crate) recording: Option<(Recording, EndFacts)>,
}

impl Outcome<'_> {
    /// Prints the table, writes the result line, and says how the command ends.
    pub(crate) fn report(
        mut self,
        tokenizer: Option<&Tokenizer>,
        output: Option<&Path>,
        interrupts: Option<&Interrupts>,
        io: &Io,
    ) -> Result<Code, Failure> {
        let profiler = self.measured.profiler.take();
        let counted = self.counts.take();
        let records = &mut self.measured.finished.records;
        if let (Some(tokenizer), None) = (tokenizer, &counted)
            && let Err(error) = conversations::count_prompts(self.prepared, records, tokenizer)
        {
            io.say(format_args!("warning: prompts cannot be counted: {error}"));
        }
        let counts = counted.unwrap_or_else(|| count(&self, tokenizer));
        let run = &self.measured;
        let records = &run.finished.records;
        if let Some((log, facts)) = self.log.take() {
            log.end(records, &counts, &facts);
            self.extra.insert("raw_log".into(), log.report());
        }
        if let Some((recording, facts)) = self.recording.take() {
            recording.finish(records, &counts, &facts, io);
        }
        let mut info = self.info();
        let duration = self.window.unwrap_or_else(|| run.finished.end.as_secs_f64());
        let itl_rule = match self.plan.backend.info().itl {
            BackendItl::PerToken => ItlRule::SpreadOverTokens,
            _ => ItlRule::PerChunk,
        };
        let options = Options {
            itl_rule,
            slos: self.plan.report.goodput.clone(),
            duration: Some(duration),
            upstream_duration: Some(duration + run.after_seconds),
        };
        let aggregates = aggregate(join(records, &counts), &options);
        let measured: Vec<Measured<'_>> = join(records, &counts).collect();
        let checkup = Checkup {
            plan: self.plan,
            finished: &run.finished,
            aggregates: &aggregates,
            used: &run.used,
            descriptors: run.descriptors,
            calibration: run.calibration.as_ref(),
        };
        let client = checkup.health();
        let verdict = client.verdict;
        let percentiles = Percentiles::of(&measured, itl_rule, self.percentiles);
        if let Some(found) = &percentiles {
            info.extra.insert("percentiles".into(), found.json());
        }
        let steady_state = shape::steady_state(self.plan, &measured, itl_rule, io);
        let info = RunInfo {
            client: Some(client),
            routed_experts: self.plan.sampling.return_routed_experts,
            wants_steady_state: self.plan.report.steady_state_concurrency_ratio.is_some(),
            steady_state,
            ..info
        };
        let report = Report {
            info,
            aggregates,
            itl_rule,
            details: self.plan.report.output_details.then_some(&measured),
        };
        let printed = io.print(table(&report).trim_end());
        if let Some(found) = percentiles {
            io.print(found.block().trim_end()).or_code(Code::Output)?;
        }
        say_failures(records, io);
        self.plan.load.endings.tell(&run.finished, io);
        write_line(&json_line(&report), output, io)?;
        printed.or_code(Code::Output)?;
        if let Some(state) = &report.info.steady_state {
            shape::report_steady(self.plan, state, io)?;
        }
        if self.plan.report.plot_throughput {
            shape::print_plot(&measured, !report.info.embeddings, io)?;
        }
        if let Some(interrupts) = interrupts {
            interrupts.end_measuring();
        }
        if let Some(profiler) = profiler {
            profiler.wait(io).map_err(|failure| {
                failure.hint("the result was written; the server may still be profiling")
            })?;
        }
        if let Some(code) = interrupts.and_then(Interrupts::code) {
            return Ok(code);
        }
        if let Some(code) = endings::code(&run.finished) {
            return Ok(code);
        }
        let code = success_code(self.plan, &run.finished, report.aggregates.completed);
        if code == Code::Done
            && self.plan.client.fail_if_client_bound
            && verdict == Verdict::ClientBound
        {
            io.say("--fail-if-client-bound: the client was the limit");
            return Ok(Code::Gate);
        }
        Ok(code)
    }

    fn info(&self) -> RunInfo {
        let run = &self.measured;
        let mut extra = match json!({
            "model": self.model.model,
            "served_model_name": self.model.served,
            // What there was to send: a file may have held fewer rows than were asked for.
            "num_prompts": self.prepared.job.requests.len(),
            "seed": self.plan.seed,
            "cache_flushed": run.cache_flushed,
            "stamps": if run.stamps == Stamps::Kernel { "kernel" } else { "user" },
            "dns_ms": run.lookup.as_secs_f64() * 1e3,
            "unsent": run.finished.unsent,
            "ended_by": run.finished.ended_by.map(EndedBy::name),
            "plan": self.plan,
        }) {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let details = self.plan.report.output_details;
        conversations::report(self.prepared, &run.finished.records, details, &mut extra);
        targets::report(self.plan, &run.finished.records, &mut extra);
        if let Some(workers) = &run.profile_workers {
            extra.insert("profile_workers".into(), workers.clone());
        }
        extra.extend(self.extra.clone());
        let server_info = run.server_info.clone();
        RunInfo {
            server_accept_length: server_info.as_ref().and_then(accept_length),
            server_info: server_info.unwrap_or(Value::Null),
            version: env!("CARGO_PKG_VERSION").into(),
            simulated: self.plan.simulate,
            started_at_unix: Some(run.started_at_unix),
            plan_sha256: Some(self.prepared.sha256.clone()),
            interrupted: self.interrupted,
            partial: endings::is_partial(&run.finished),
            warmup_prompts: Some(self.prepared.warmup_prompts.into()),
            workers: self.workers,
            vision_input_tokens: vision_tokens(&self.prepared.samples, &run.finished.records),
            extra,
            ..flags(self.plan)
        }
    }
}

/// Appends a result line to its file, if it has one.
fn write_line(line: &str, output: Option<&Path>, io: &Io) -> Result<(), Failure> {
    let Some(output) = output else { return Ok(()) };
    if let Err(error) = append_line(output, line) {
        // What was measured is not lost to a path problem.
        let hint = match io.deliver(line) {
            Ok(()) => "the result line went to standard output instead",
            Err(_) => "standard output could not be written either",
        };
        return Err(Failure::new(Code::Output, error).hint(hint));
    }
    io.say(format_args!("result appended to {}", output.display()));
    Ok(())
}

/// Most lines that are said about failures.
const FAILURE_LINES: usize = 10;

/// Says what failed, the same words once, the most frequent first.
pub(crate) fn say_failures(records: &[Record], io: &Io) {
    let mut groups: BTreeMap<(FailureKind, &str), (usize, u64)> = BTreeMap::new();
    for record in records {
        if let Some(failure) = &record.reply.failure {
            groups.entry((failure.kind, &failure.detail)).or_insert((0, record.id)).0 += 1;
        }
    }
    if groups.is_empty() {
        return;
    }
    let failed: usize = groups.values().map(|(count, _)| count).sum();
    io.say(format_args!("{failed} of {} requests failed:", records.len()));
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for ((kind, detail), (count, first)) in groups.iter().take(FAILURE_LINES) {
        // Some words begin with the kind, since they also stand alone in results.
        let detail = detail
            .strip_prefix(kind.name())
            .and_then(|rest| rest.strip_prefix(": "))
            .unwrap_or(detail);
        io.say(format_args!("  {count} x {kind}, the first is request {first}: {detail}"));
    }
    if let Some(more) = groups.len().checked_sub(FAILURE_LINES).filter(|more| *more > 0) {
        io.say(format_args!("  and {more} other messages; --output-details has them all"));
    }
}

/// What a result repeats of the command line.
pub(crate) fn flags(plan: &Plan) -> RunInfo {
    let dataset = &plan.dataset;
    RunInfo {
        tag: plan.report.tag.clone(),
        backend: plan.backend.name().into(),
        dataset_name: dataset.name.name().into(),
        request_rate: if plan.load.use_trace_timestamps {
            RequestRate::Trace
        } else {
            RequestRate::PerSecond(plan.load.request_rate.get())
        },
        max_concurrency: plan.load.max_concurrency.map(|cap| cap as u64),
        sharegpt_output_len: dataset.sharegpt_output_len.map(u64::from),
        random_input_len: Some(dataset.random_input_len.into()),
        random_output_len: Some(dataset.random_output_len.into()),
        random_range_ratio: Some(dataset.random_range_ratio),
        cache_report: plan.report.cache_report,
        embeddings: plan.backend.info().family == Family::Embeddings,
        has_images: dataset.name.has_pictures(),
        ..RunInfo::default()
    }
}

/// The tokens that the pictures of the successful requests are; `None` without pictures, or where it is not
/// known.
fn vision_tokens(samples: &[Sample], records: &[Record]) -> Option<u64> {
    // Without pictures no sample has the answer, and the sum would be that of nothing.
    samples.first()?.pictures.as_ref()?;
    let sent = records.iter().filter(|record| record.is_success());
    sent.map(|record| samples.get(record.id as usize)?.pictures.as_ref()?.tokens.map(u64::from))
        .sum()
}

fn success_code(plan: &Plan, finished: &Finished, completed: u64) -> Code {
    let rate = endings::success_rate(finished, completed);
    let enough = plan.report.min_success_rate.is_none_or(|least| rate >= least);
    if completed > 0 && enough { Code::Done } else { Code::Requests }
}

/// What the client's tokenizer makes of prompts and replies, record by record: tokens of the prompt as a
/// server sees it, where no server counted a text that may not have the length asked for; of the reply's
/// text; and of each chunk's text, where they are needed.
fn count(run: &Outcome<'_>, tokenizer: Option<&Tokenizer>) -> Vec<Counted> {
    let records = &run.measured.finished.records;
    let uncounted = |record: &Record| record.is_success() && record.reply.prompt_tokens.is_none();
    // A chat server adds what only its template knows; others add their special tokens.
    let special = run.plan.backend.info().family != Family::Chat;
    // The prompts of conversations are counted already.
    let whole = run.prepared.job.requests.iter().all(|request| request.conversation.is_none());
    let samples = (whole && records.iter().any(uncounted)).then_some(&run.prepared.samples);
    let prompts = samples
        .zip(tokenizer)
        .and_then(|(samples, tokenizer)| count_true_lengths(samples, tokenizer, special).ok());
    let texts: Vec<&str> = records.iter().map(|record| record.reply.text.as_str()).collect();
    let texts = tokenizer.and_then(|tokenizer| tokenizer.count_batch(&texts, false).ok());
    let accepted = run.measured.server_info.as_ref().and_then(accept_length);
    let speculative = accepted.is_some_and(|length| length > 0.0);
    let pieces = |record: &Record| {
        let tokenizer = tokenizer.filter(|_| speculative && record.reply.keep_pieces)?;
        tokenizer.count_batch(&pieces(record), false).ok()
    };
    let at = |counts: &Option<Vec<u32>>, place: usize| {
        counts.as_ref().and_then(|counts| counts.get(place)).copied()
    };
    let counted = |(place, record): (usize, &Record)| Counted {
        id: record.id,
        prompt_len: record.prompt_len,
        prompt: at(&prompts, record.id as usize),
        text: at(&texts, place),
        pieces: pieces(record),
    };
    records.iter().enumerate().map(counted).collect()
}

fn join<'a>(records: &'a [Record], counts: &'a [Counted]) -> impl Iterator<Item = Measured<'a>> {
    let join = |(record, counted): (&'a Record, &'a Counted)| Measured {
        record,
        prompt: counted.prompt,
        retokenized: counted.text,
        piece_tokens: counted.pieces.as_deref(),
    };
    records.iter().zip(counts).map(join)
}

/// The text of each chunk.
fn pieces(record: &Record) -> Vec<&str> {
    let (text, mut start) = (&record.reply.text, 0);
    let cut = |end: &u32| {
        let end = *end as usize;
        let piece = text.get(start..end).unwrap_or_default();
        start = end;
        piece
    };
    record.reply.pieces.iter().map(cut).collect()
}
