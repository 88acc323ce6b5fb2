//! From records to the table and the result file.

use super::VllmPlan;
use super::plan::RampPlan;
use super::plots;
use super::sent::{Learned, Sent};
use crate::exit::OrCode;
use crate::names::Names;
use crate::serve::{Checkup, MeasuredRun, report_steady, say_failures, steady_state};
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io, endings};
use serde_json::{Map, Value, json};
use servebench_core::Record;
use servebench_http::Stamps;
use servebench_journal::records::Counted;
use servebench_metrics::verdict::Verdict;
use servebench_metrics::{ItlRule, Measured, Options, aggregate};
use servebench_report::vllm::{
    RampInfo, VllmInfo, VllmReport, file_name, pytorch, result, table, write,
};
use servebench_report::{Report, RequestRate, RunInfo};
use servebench_run::EndedBy;
use servebench_tokens::Tokenizer;
use std::borrow::Cow;
use std::path::{Path, PathBuf};

/// A run that is over, and what it was.
pub(super) struct Outcome<'a> {
    pub(super) plan: &'a VllmPlan,
    pub(super) names: &'a Names,
    pub(super) sent: Sent,
    pub(super) measured: MeasuredRun,
    pub(super) workers: Option<u64>,
    /// Whether a signal, or worse, ended the run.
    pub(super) interrupted: bool,
    pub(super) learned: Learned,
    /// What was counted before; `None`: that is done now.
    pub(super) counts: Option<Vec<Counted>>,
    /// Seconds for which the requests went on, where they are not all those of the run.
    pub(super) window: Option<f64>,
    /// Further keys of the result; those of a report's own stand behind them.
    pub(super) extra: Map<String, Value>,
}

impl Outcome<'_> {
    /// Prints the table, writes the result, and says how the command ends.
    pub(super) fn report(
        self,
        tokenizer: Option<&Tokenizer>,
        environment: &Environment,
        interrupts: Option<&Interrupts>,
        io: &Io,
    ) -> Result<Code, Failure> {
        self.fold(tokenizer, interrupts, io, |report| {
            let printed = io.print(table(&report).trim_end());
            self.tell(io);
            let plan = self.plan;
            if let Some(state) = &report.base.info.steady_state {
                report_steady(&plan.run, state, io)?;
            }
            if plan.report.writes() {
                let path = self.path(&report.info);
                if plan.report.save {
                    self.save(&report, &path, environment, io)?;
                }
                self.draw(&report, &path, io)?;
            }
            printed.or_code(Code::Output)
        })
    }

    /// Says what failed, and why the run ended early if it did.
    pub(super) fn tell(&self, io: &Io) {
        let finished = &self.measured.finished;
        say_failures(&finished.records, io);
        self.plan.run.load.endings.tell(finished, io);
    }

    /// Gives what the requests come to to `show`, which prints and writes it, and says how the command ends.
    pub(super) fn fold(
        &self,
        tokenizer: Option<&Tokenizer>,
        interrupts: Option<&Interrupts>,
        io: &Io,
        show: impl FnOnce(VllmReport<'_>) -> Result<(), Failure>,
    ) -> Result<Code, Failure> {
        let records = &self.measured.finished.records;
        let now = || Cow::Owned(count_each(records, tokenizer, self.sent.tokenized));
        let counts = self.counts.as_deref().map_or_else(now, Cow::Borrowed);
        let measured = join(records, &counts);
        let plan = self.plan;
        let duration = self.duration();
        let options = Options {
            itl_rule: ItlRule::PerChunk,
            slos: plan.run.report.goodput.clone(),
            duration: Some(duration),
            upstream_duration: Some(duration),
        };
        let aggregates = aggregate(measured.iter().copied(), &options);
        let client = Checkup {
            plan: &plan.run,
            finished: &self.measured.finished,
            aggregates: &aggregates,
            used: &self.measured.used,
            descriptors: self.measured.descriptors,
            calibration: self.measured.calibration.as_ref(),
        }
        .health();
        let verdict = client.verdict;
        let completed = aggregates.completed;
        let run_info = RunInfo {
            client: Some(client),
            wants_steady_state: plan.run.report.steady_state_concurrency_ratio.is_some(),
            steady_state: steady_state(&plan.run, &measured, ItlRule::PerChunk, io),
            ..self.run_info()
        };
        show(VllmReport {
            info: self.info(),
            base: Report { info: run_info, aggregates, itl_rule: ItlRule::PerChunk, details: None },
            requests: &measured,
        })?;
        if let Some(code) = interrupts.and_then(Interrupts::code) {
            return Ok(code);
        }
        if let Some(code) = endings::code(&self.measured.finished) {
            return Ok(code);
        }
        let share = endings::success_rate(&self.measured.finished, completed);
        let enough = plan.run.report.min_success_rate.is_none_or(|least| share >= least);
        if completed == 0 || !enough {
            return Ok(Code::Requests);
        }
        if plan.run.client.fail_if_client_bound && verdict == Verdict::ClientBound {
            io.say("--fail-if-client-bound: the client was the limit");
            return Ok(Code::Gate);
        }
        Ok(Code::Done)
    }

    /// Seconds for which the requests that are reported went on.
    fn duration(&self) -> f64 {
        self.window.unwrap_or_else(|| self.measured.finished.end.as_secs_f64())
    }

    fn info(&self) -> VllmInfo {
        let plan = self.plan;
        let started = self.measured.started_at_unix;
        let name = || plan.run.tokenizer.clone().unwrap_or_else(|| self.names.model.clone());
        let mut own = match json!({
            "first_model_name": self.names.served,
            "seed": plan.dataset.seed,
            "dataset": plan.dataset.dataset.name(),
            "requests": self.sent.requests,
            "unsent": self.measured.finished.unsent,
            "ended_by": self.measured.finished.ended_by.map(EndedBy::name),
            "length_mismatch": self.sent.mismatch,
            "stamps": if self.measured.stamps == Stamps::Kernel { "kernel" } else { "user" },
            "dns_ms": self.measured.lookup.as_secs_f64() * 1e3,
            "plan": plan,
        }) {
            Value::Object(own) => own,
            _ => Map::new(),
        };
        own.extend(self.extra.clone());
        VllmInfo {
            date: jiff::ZonedDateTime::now().strftime("%Y%m%d-%H%M%S").to_string(),
            backend: plan.backend.name().to_owned(),
            label: plan.report.label.clone(),
            model_id: self.names.model.clone(),
            tokenizer_id: self.sent.tokenized.then(name),
            num_prompts: plan.num_prompts,
            metadata: plan.report.metadata.clone(),
            request_rate: plan.load.request_rate,
            burstiness: plan.load.burstiness,
            max_concurrency: plan.load.max_concurrency.map(|cap| cap as u64),
            ramp: plan.load.ramp.as_ref().map(|ramp| self.ramp(ramp, started)),
            pooling: plan.backend.info().pooling,
            metrics: plan.report.metrics.clone(),
            percentiles: plan.report.percentiles.clone(),
            detailed: plan.report.detailed,
            input_sequences: self.successes().map(|it| self.sent.sequences(it)).sum(),
            rtfx: self.rtfx(),
            probe: self.learned.probe,
            speculation: self.learned.speculation.clone(),
            diffusion: self.learned.diffusion,
            own,
        }
    }

    /// The requests that succeeded.
    fn successes(&self) -> impl Iterator<Item = &Record> {
        self.measured.finished.records.iter().filter(|record| record.is_success())
    }

    /// Seconds of recordings that were transcribed per second.
    fn rtfx(&self) -> f64 {
        let seconds: f64 = self.successes().map(|record| self.sent.audio_seconds(record)).sum();
        let duration = self.duration();
        if duration > 0.0 { seconds / duration } else { 0.0 }
    }

    /// The ramp, with the local time at which each whole rate was due.
    fn ramp(&self, ramp: &RampPlan, started: f64) -> RampInfo {
        let schedule = self.sent.due();
        let at = |index: usize| {
            let due = schedule.get(index).map_or(0.0, |due| due.as_secs_f64());
            local_time(started + due)
        };
        let steps = ramp.ramp().map(|ramp| ramp.steps(schedule.len())).unwrap_or_default();
        let reached = steps.into_iter().map(|(rate, index)| (rate as f64, at(index)));
        RampInfo {
            strategy: ramp.strategy.name().to_owned(),
            start: ramp.start,
            end: ramp.end,
            events: std::iter::once((ramp.start, local_time(started))).chain(reached).collect(),
        }
    }

    fn run_info(&self) -> RunInfo {
        let (plan, run) = (self.plan, &self.measured);
        RunInfo {
            backend: plan.backend.name().to_owned(),
            dataset_name: plan.dataset.dataset.name().to_owned(),
            request_rate: match plan.load.ramp {
                Some(_) => RequestRate::Trace,
                None if plan.load.self_timed => RequestRate::Trace,
                None => RequestRate::PerSecond(plan.load.request_rate),
            },
            max_concurrency: plan.load.max_concurrency.map(|cap| cap as u64),
            embeddings: plan.backend.info().pooling,
            version: env!("CARGO_PKG_VERSION").into(),
            simulated: plan.run.simulate,
            started_at_unix: Some(run.started_at_unix),
            plan_sha256: Some(self.sent.sha256.clone()),
            interrupted: self.interrupted,
            partial: endings::is_partial(&run.finished),
            warmup_prompts: Some(self.sent.warmup_prompts.clone()),
            workers: self.workers,
            ..RunInfo::default()
        }
    }

    /// Where the result is, or would be.
    fn path(&self, info: &VllmInfo) -> PathBuf {
        let plan = &self.plan.report;
        let name = plan.filename.clone().unwrap_or_else(|| file_name(info).into());
        match &plan.dir {
            Some(dir) => dir.join(name),
            None => name,
        }
    }

    /// Writes the pictures that were asked for, beside the result.
    fn draw(&self, report: &VllmReport<'_>, path: &Path, io: &Io) -> Result<(), Failure> {
        let plan = &self.plan.report;
        let save = |what: &str, path: PathBuf, text: &str| {
            write(&path, text, false).or_code(Code::Output)?;
            io.say(format_args!("{what} written to {}", path.display()));
            Ok(())
        };
        if let Some(thresholds) = plan.timeline_ms {
            match plots::timeline(report, thresholds) {
                Some(page) => save("timeline", path.with_extension("timeline.html"), &page)?,
                None => io.say("no requests: no timeline"),
            }
        }
        if plan.lengths {
            let path = path.with_extension("dataset_stats.svg");
            save("length statistics", path, &plots::lengths(report))?;
        }
        Ok(())
    }

    fn save(
        &self,
        report: &VllmReport<'_>,
        path: &Path,
        environment: &Environment,
        io: &Io,
    ) -> Result<(), Failure> {
        let plan = &self.plan.report;
        let result = result(report);
        let line = Value::Object(result.clone()).to_string();
        if let Err(error) = write(path, &line, plan.append) {
            // What was measured is not lost to a path problem.
            let hint = match io.deliver(&line) {
                Ok(()) => "the result went to standard output instead",
                Err(_) => "standard output could not be written either",
            };
            return Err(Failure::new(Code::Output, error).hint(hint));
        }
        io.say(format_args!("result written to {}", path.display()));
        if environment.get("SAVE_TO_PYTORCH_BENCHMARK_FORMAT").is_some() {
            let Some(Value::Object(arguments)) = report.info.own.get("plan") else { return Ok(()) };
            let records = pytorch(&result, arguments).to_string();
            write(&path.with_extension("pytorch.json"), &records, false).or_code(Code::Output)?;
        }
        Ok(())
    }
}

/// What the client's tokenizer adds to each record: the length of a reply that the server did not
/// count. In a run without a tokenizer such a reply counts as one token.
pub(super) fn count_each(
    records: &[Record],
    tokenizer: Option<&Tokenizer>,
    tokenized: bool,
) -> Vec<Counted> {
    let text = |record: &Record| {
        let counted = record.reply.completion_tokens.is_some_and(|tokens| tokens > 0);
        if counted || !record.is_success() {
            return None;
        }
        match tokenizer {
            Some(tokenizer) => tokenizer.count(&record.reply.text, false).ok(),
            None => (!tokenized).then_some(1),
        }
    };
    let count = |record: &Record| Counted {
        id: record.id,
        prompt_len: record.prompt_len,
        prompt: None,
        text: text(record),
        pieces: None,
    };
    records.iter().map(count).collect()
}

/// Records with what was counted of them.
pub(super) fn join<'a>(records: &'a [Record], counts: &[Counted]) -> Vec<Measured<'a>> {
    let join = |(record, counted): (&'a Record, &Counted)| Measured {
        retokenized: counted.text,
        ..Measured::from(record)
    };
    records.iter().zip(counts).map(join).collect()
}

/// Local time to the microsecond, as Python's `isoformat` has it.
fn local_time(unix_seconds: f64) -> String {
    let micros = (unix_seconds * 1e6).round() as i64;
    let zone = jiff::tz::TimeZone::system();
    match jiff::Timestamp::from_microsecond(micros) {
        Ok(at) => at.to_zoned_datetime(zone).strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string(),
        Err(_) => String::new(),
    }
}
