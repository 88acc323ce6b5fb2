//! The engine's steps on a time axis.

use super::{CostModel, Engine, Job, JobId, StepReport, TooLarge};
use std::collections::HashMap;

/// How far a job is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Tokens generated.
    pub generated: u32,
    /// Prompt tokens that were cached; known from the first token on.
    pub cached_tokens: u32,
    /// Decoding steps (verifications, with speculative decoding).
    pub decode_steps: u32,
    /// Draft tokens proposed.
    pub drafted: u32,
    /// Draft tokens accepted.
    pub accepted: u32,
    /// Whether all is done.
    pub finished: bool,
}

/// Runs an [`Engine`] along a time axis, in nanoseconds.
///
/// It is lazy: whoever asks says what time it is, and the steps that ended by then are done. So
/// many waiting streams can share it without a task of its own; each sleeps until
/// [`Timeline::step_end`] and asks again. A step begins the moment the one before it ends, or on
/// arrival if the engine was idle; a job that arrives during a step joins the next one. How late
/// the callers ask never changes the model's times.
#[derive(Debug)]
pub struct Timeline {
    engine: Engine,
    /// The step being done, with its end.
    current: Option<(u64, StepReport)>,
    jobs: HashMap<JobId, Progress>,
    /// The steps done since [`Timeline::record`].
    recorded: Option<Vec<StepSpan>>,
}

/// A step that was recorded, in nanoseconds on the time axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepSpan {
    /// When it began.
    pub begin: u64,
    /// When it ended.
    pub end: u64,
    /// Jobs that it advanced.
    pub batch: u32,
    /// Prompt tokens computed.
    pub prefill_tokens: u64,
    /// Positions decoded.
    pub decode_tokens: u64,
}

/// Most steps that are recorded; later ones are left out.
const RECORDED: usize = 100_000;

impl Timeline {
    /// An idle engine.
    pub fn new(cost: CostModel) -> Self {
        Self { engine: Engine::new(cost), current: None, jobs: HashMap::new(), recorded: None }
    }

    /// The engine, as it will be when the current step ends.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The step being done.
    pub fn current(&self) -> Option<&StepReport> {
        self.current.as_ref().map(|(_, report)| report)
    }

    /// When the current step ends; `None` when idle.
    pub fn step_end(&self) -> Option<u64> {
        self.current.as_ref().map(|(end, _)| *end)
    }

    /// Adds a job that arrives `now`.
    pub fn submit(&mut self, now: u64, job: Job) -> Result<(), TooLarge> {
        self.advance(now);
        let id = job.id;
        self.engine.submit(job)?;
        self.jobs.insert(id, Progress::default());
        if self.current.is_none() {
            self.begin(now);
        }
        Ok(())
    }

    /// Does all steps that end by `now`.
    pub fn advance(&mut self, now: u64) {
        while let Some((end, report)) = self.current.take_if(|(end, _)| *end <= now) {
            if let Some(spans) = self.recorded.as_mut().filter(|spans| spans.len() < RECORDED) {
                let took = u64::try_from(report.took.as_nanos()).unwrap_or(u64::MAX);
                spans.push(StepSpan {
                    begin: end.saturating_sub(took),
                    end,
                    batch: u32::try_from(report.advanced.len()).unwrap_or(u32::MAX),
                    prefill_tokens: report.prefill_tokens,
                    decode_tokens: report.decode_tokens,
                });
            }
            for advance in report.advanced {
                if let Some(progress) = self.jobs.get_mut(&advance.job) {
                    progress.generated += advance.tokens;
                    progress.cached_tokens = advance.cached_tokens;
                    progress.decode_steps += u32::from(progress.generated > advance.tokens);
                    progress.drafted += advance.drafted;
                    progress.accepted += advance.accepted;
                    progress.finished = advance.finished;
                }
            }
            self.begin(end);
        }
    }

    /// How far a job is, as of the last [`Timeline::advance`]; `None` for a job not known.
    pub fn progress(&self, id: JobId) -> Option<Progress> {
        self.jobs.get(&id).copied()
    }

    /// Forgets a job, finished or not. An unfinished one leaves the engine, though the step being
    /// done takes as long as planned.
    pub fn forget(&mut self, now: u64, id: JobId) {
        self.advance(now);
        if self.jobs.remove(&id).is_some_and(|progress| !progress.finished) {
            self.engine.abort(id);
        }
    }

    /// Records the steps that end from now on.
    pub fn record(&mut self) {
        self.recorded = Some(Vec::new());
    }

    /// Ends the recording and returns it.
    pub fn recorded(&mut self) -> Vec<StepSpan> {
        self.recorded.take().unwrap_or_default()
    }

    /// Empties the prefix cache of what no running job uses.
    pub fn flush_cache(&mut self) {
        self.engine.flush_cache();
    }

    /// Sets the engine's counts to zero.
    pub fn reset_totals(&mut self) {
        self.engine.reset_totals();
    }

    fn begin(&mut self, at: u64) {
        self.current = self.engine.step().map(|report| {
            let took = u64::try_from(report.took.as_nanos()).unwrap_or(u64::MAX);
            (at.saturating_add(took), report)
        });
    }
}

#[cfg(test)]
#[path = "timeline_tests.rs"]
mod tests;
