//! When a run ends before everything is sent and answered, and how that is told.

use crate::args::EndingArgs;
use crate::{Code, Io};
use serde::Serialize;
use servebench_core::{FailureKind, Record};
use servebench_run::{EndedBy, Endings, Finished, Job};
use std::time::Duration;

/// How long requests under way may take when a run's time is over.
const GRACE: f64 = 30.0;
/// How long a run may hang.
const PATIENCE: f64 = 1800.0;

/// When a run ends before everything is sent and answered.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EndingPlan {
    /// Nothing is sent after this time.
    pub duration_s: Option<f64>,
    /// How long requests under way may take then.
    pub grace_period_s: f64,
    /// How long nothing may come for any request; `None`: for ever.
    pub no_progress_timeout_s: Option<f64>,
}

impl EndingPlan {
    pub(crate) fn new(args: &EndingArgs) -> Self {
        Self {
            duration_s: args.duration,
            grace_period_s: args.grace_period.unwrap_or(GRACE),
            no_progress_timeout_s: Some(args.no_progress_timeout.unwrap_or(PATIENCE))
                .filter(|seconds| *seconds > 0.0),
        }
    }

    /// For the measured requests.
    pub(crate) fn measured(&self) -> Endings {
        Endings {
            duration: self.duration_s.map(Duration::from_secs_f64),
            grace: Duration::from_secs_f64(self.grace_period_s),
            no_progress: self.no_progress_timeout_s.map(Duration::from_secs_f64),
        }
    }

    /// For requests before those: they may take their time, but not hang.
    pub(crate) fn around(&self) -> Endings {
        Endings { duration: None, ..self.measured() }
    }

    /// Says before the run that it will not fill its time.
    pub(crate) fn foretell(&self, job: &Job, io: &Io) {
        let Some(duration) = self.duration_s else { return };
        let last = job.schedule.last().map_or(0.0, |due| due.as_secs_f64());
        if 0.0 < last && last < duration {
            io.say(format_args!(
                "warning: the last of {} requests is due after {last:.1} s of --duration {duration}: give \
                 more --num-prompts to fill it",
                job.requests.len()
            ));
        }
    }

    /// Says how the run ended.
    pub(crate) fn tell(&self, finished: &Finished, io: &Io) {
        let cut_off = finished.records.iter().filter(|record| is_cancelled(record)).count();
        let unsent = finished.unsent;
        match (finished.ended_by, self.duration_s) {
            (Some(EndedBy::NoProgress), _) => io.say(format_args!(
                "the run hung and was ended: nothing had come for {} s (--no-progress-timeout); {cut_off} \
                 requests were cut off, {unsent} not sent",
                self.no_progress_timeout_s.unwrap_or_default()
            )),
            (Some(EndedBy::Duration), Some(duration)) => io.say(format_args!(
                "--duration {duration} is over: {unsent} requests of the plan were not sent, {cut_off} cut \
                 off after the grace of {} s",
                self.grace_period_s
            )),
            (None, Some(duration)) if finished.end.as_secs_f64() < duration => io.say(format_args!(
                "all {} requests were over after {:.1} s, before --duration {duration}: give more \
                 --num-prompts to fill it",
                finished.records.len(),
                finished.end.as_secs_f64()
            )),
            _ => {}
        }
    }
}

/// Whether a run did less than it was to do. One that used up its time did what it was to do.
pub(crate) fn is_partial(finished: &Finished) -> bool {
    finished.ended_by != Some(EndedBy::Duration)
        && (finished.unsent > 0 || finished.records.iter().any(is_cancelled))
}

/// The code of a run that hung.
pub(crate) fn code(finished: &Finished) -> Option<Code> {
    (finished.ended_by == Some(EndedBy::NoProgress)).then_some(Code::Hung)
}

/// The share of successes among the requests that had their time: those that were cut off because the run's
/// time was over count as neither.
pub(crate) fn success_rate(finished: &Finished, completed: u64) -> f64 {
    let records = finished.records.iter();
    let in_time = finished.ended_by == Some(EndedBy::Duration);
    let counted = records.filter(|record| !(in_time && is_cancelled(record))).count();
    completed as f64 / (counted as f64).max(1.0)
}

fn is_cancelled(record: &Record) -> bool {
    record.reply.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Cancelled)
}
