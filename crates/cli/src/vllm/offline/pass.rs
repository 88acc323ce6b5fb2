//! The requests of a command, sent once, and what they come to.

use crate::prepare::Prepared;
use crate::serve::{Beside, Checkup, MeasuredRun, say_failures};
use crate::vllm::result::{count_each, join};
use crate::vllm::session::Session;
use crate::{Code, Failure, endings};
use serde_json::{Value, json};
use servebench_metrics::verdict::Verdict;
use servebench_metrics::{ItlRule, Options, aggregate};
use servebench_run::EndedBy;

/// A run that is over, and what it comes to.
pub(in crate::vllm) struct Pass {
    pub(in crate::vllm) measured: MeasuredRun,
    /// From the first request sent to the end of the last response.
    pub(in crate::vllm) seconds: f64,
    pub(in crate::vllm) completed: usize,
    pub(in crate::vllm) failed: usize,
    /// Of the requests that succeeded, by the server's count.
    pub(in crate::vllm) prompt_tokens: u64,
    pub(in crate::vllm) output_tokens: u64,
    /// Whose limit these figures show, and why, in one line.
    pub(in crate::vllm) client: String,
    verdict: Verdict,
}

impl Pass {
    /// Sends the requests and says what failed.
    pub(in crate::vllm) fn run(
        session: &Session<'_>,
        prepared: &Prepared,
        beside: Option<&dyn Beside>,
    ) -> Result<Self, Failure> {
        let measured = session.measure(prepared, beside)?;
        let records = &measured.finished.records;
        say_failures(records, session.io);
        session.plan.run.load.endings.tell(&measured.finished, session.io);
        let tokenizer = session.tokenizer.as_ref();
        let counts = count_each(records, tokenizer, tokenizer.is_some());
        let requests = join(records, &counts);
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
            client: client.line(),
            measured,
        })
    }

    /// `count` per second of the run.
    pub(in crate::vllm) fn per_second(&self, count: f64) -> f64 {
        if self.seconds > 0.0 { count / self.seconds } else { 0.0 }
    }

    /// What a result says beside the Python tool's keys.
    pub(in crate::vllm) fn own(&self, session: &Session<'_>) -> Value {
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
            "ended_by": finished.ended_by.map(EndedBy::name),
            "partial": endings::is_partial(finished),
            "verdict": self.verdict.name(),
            "plan": session.plan,
        })
    }

    /// How the command ends.
    pub(in crate::vllm) fn code(&self, session: &Session<'_>) -> Code {
        if let Some(code) = session.interrupts.code() {
            return code;
        }
        let plan = &session.plan.run;
        if let Some(code) = endings::code(&self.measured.finished) {
            return code;
        }
        let share = endings::success_rate(&self.measured.finished, self.completed as u64);
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
