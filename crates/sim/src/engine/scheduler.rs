//! The engine: admits requests, steps, and says what each step gave.

use super::CostModel;
use super::prefix::PrefixCache;
use crate::random;
use std::collections::VecDeque;
use std::time::Duration;

/// Names a job within its engine.
pub type JobId = u64;

/// One sequence to generate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Job {
    /// Its name, chosen by the caller and used once.
    pub id: JobId,
    /// Prompt tokens; 0 counts as 1.
    pub prompt_tokens: u32,
    /// Tokens to generate; 0 ends the job with its prefill.
    pub output_tokens: u32,
    /// From [`block_hashes`](super::block_hashes); empty to bypass the prefix cache.
    pub blocks: Vec<u64>,
}

/// A job that can never fit into the KV memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("prompt and output need {needed} tokens of KV memory and there are {capacity}")]
pub struct TooLarge {
    /// Tokens it needs.
    pub needed: u64,
    /// Tokens there are.
    pub capacity: u64,
}

/// What one step gave to one job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advance {
    /// The job.
    pub job: JobId,
    /// New tokens.
    pub tokens: u32,
    /// Prompt tokens that were found in the prefix cache when the job was admitted.
    pub cached_tokens: u32,
    /// Draft tokens proposed in this step.
    pub drafted: u32,
    /// Draft tokens accepted in this step.
    pub accepted: u32,
    /// Whether it was the job's last step.
    pub finished: bool,
}

/// The work of one step and the time it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepReport {
    /// How long it takes.
    pub took: Duration,
    /// Prompt tokens computed.
    pub prefill_tokens: u64,
    /// Positions decoded.
    pub decode_tokens: u64,
    /// Tokens attended to while decoding.
    pub context_tokens: u64,
    /// What became of the jobs, in order of admission.
    pub advanced: Vec<Advance>,
}

/// Counts since the engine was made or reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EngineTotals {
    /// Steps taken.
    pub steps: u64,
    /// Prompt tokens of the jobs admitted.
    pub prompt_tokens: u64,
    /// Of those, found in the prefix cache.
    pub cached_tokens: u64,
    /// Drafts proposed.
    pub drafts: u64,
    /// Tokens in them.
    pub drafted: u64,
    /// Of those, accepted.
    pub accepted: u64,
}

#[derive(Debug)]
struct Running {
    job: Job,
    cached_tokens: u32,
    prefill_left: u32,
    generated: u32,
    /// Blocks of `job.blocks` held in the cache, counted from the first.
    blocks_held: usize,
    /// KV tokens held outside the cache.
    private: u64,
}

/// See the [module](super).
#[derive(Debug)]
pub struct Engine {
    cost: CostModel,
    waiting: VecDeque<Job>,
    running: Vec<Running>,
    cache: PrefixCache,
    private: u64,
    totals: EngineTotals,
    /// Counts draws; never reset, so that a flush does not repeat them.
    draws: u64,
}

impl Engine {
    /// An idle engine with an empty cache. Sizes of 0 count as 1, so that it always makes
    /// progress.
    pub fn new(mut cost: CostModel) -> Self {
        cost.chunk_tokens = cost.chunk_tokens.max(1);
        cost.max_running = cost.max_running.max(1);
        cost.kv_tokens = cost.kv_tokens.max(1);
        Self {
            cost,
            waiting: VecDeque::new(),
            running: Vec::new(),
            cache: PrefixCache::default(),
            private: 0,
            totals: EngineTotals::default(),
            draws: 0,
        }
    }

    /// Its cost model.
    pub fn cost(&self) -> &CostModel {
        &self.cost
    }

    /// Jobs waiting for a place.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Jobs being worked on.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// Counts so far.
    pub fn totals(&self) -> EngineTotals {
        self.totals
    }

    /// KV tokens held by running jobs, with the blocks they share counted once.
    pub fn kv_used(&self) -> u64 {
        self.private + self.cache.used() * u64::from(self.cost.block_tokens)
    }

    /// Puts a job at the end of the queue.
    pub fn submit(&mut self, mut job: Job) -> Result<(), TooLarge> {
        job.prompt_tokens = job.prompt_tokens.max(1);
        let needed = u64::from(job.prompt_tokens) + u64::from(job.output_tokens);
        if needed > self.cost.kv_tokens {
            return Err(TooLarge { needed, capacity: self.cost.kv_tokens });
        }
        let blocks = job.prompt_tokens.checked_div(self.cost.block_tokens).unwrap_or(0);
        job.blocks.truncate(blocks as usize);
        self.waiting.push_back(job);
        Ok(())
    }

    /// Forgets a job and frees its memory. Unknown jobs are ignored.
    pub fn abort(&mut self, id: JobId) {
        self.waiting.retain(|job| job.id != id);
        if let Some(place) = self.running.iter().position(|running| running.job.id == id) {
            let running = self.running.remove(place);
            self.free(&running);
        }
    }

    /// Empties the cache of what no running job uses.
    pub fn flush_cache(&mut self) {
        self.cache.shrink(0);
    }

    /// Sets the counts to zero.
    pub fn reset_totals(&mut self) {
        self.totals = EngineTotals::default();
    }

    /// Does one step; `None` when there is nothing to do.
    pub fn step(&mut self) -> Option<StepReport> {
        self.admit();
        if self.running.is_empty() {
            return None;
        }
        let mut report = StepReport::default();
        let mut budget = self.cost.chunk_tokens;
        let mut running = std::mem::take(&mut self.running);
        for sequence in &mut running {
            let advance = if sequence.prefill_left > 0 {
                self.prefill(sequence, &mut budget, &mut report)
            } else {
                Some(self.decode(sequence, &mut report))
            };
            report.advanced.extend(advance);
        }
        running.retain(|sequence| {
            let finished =
                sequence.prefill_left == 0 && sequence.generated >= sequence.job.output_tokens;
            if finished {
                self.free(sequence);
            }
            !finished
        });
        self.running = running;
        self.totals.steps += 1;
        report.took =
            self.cost.step_time(report.prefill_tokens, report.decode_tokens, report.context_tokens);
        Some(report)
    }

    /// Moves jobs from the queue into the batch, in order, while they fit.
    fn admit(&mut self) {
        let block = u64::from(self.cost.block_tokens);
        while self.running.len() < self.cost.max_running as usize {
            let Some(job) = self.waiting.front() else { return };
            // The last prompt token is always computed: its output is the first new token.
            let usable = (u64::from(job.prompt_tokens) - 1).checked_div(block).unwrap_or(0);
            let candidates = job.blocks.get(..usable as usize).unwrap_or(&job.blocks);
            let (hits, idle_hits) = self.cache.lookup(candidates);
            let cached = hits as u64 * block;
            let private = u64::from(job.prompt_tokens) - cached + u64::from(job.output_tokens);
            let held = self.kv_used() + idle_hits * block;
            if held + private > self.cost.kv_tokens {
                return;
            }
            let Some(job) = self.waiting.pop_front() else { return };
            for hash in job.blocks.iter().take(hits) {
                self.cache.acquire(*hash);
            }
            self.private += private;
            if let Some(limit) = (self.cost.kv_tokens - self.private).checked_div(block) {
                self.cache.shrink(limit);
            }
            self.totals.prompt_tokens += u64::from(job.prompt_tokens);
            self.totals.cached_tokens += cached;
            self.running.push(Running {
                cached_tokens: cached as u32,
                prefill_left: job.prompt_tokens - cached as u32,
                generated: 0,
                blocks_held: hits,
                private,
                job,
            });
        }
    }

    fn prefill(
        &mut self,
        sequence: &mut Running,
        budget: &mut u32,
        report: &mut StepReport,
    ) -> Option<Advance> {
        let now = sequence.prefill_left.min(*budget);
        *budget -= now;
        sequence.prefill_left -= now;
        report.prefill_tokens += u64::from(now);
        if sequence.prefill_left > 0 {
            return None;
        }
        self.share_prompt(sequence);
        sequence.generated = sequence.job.output_tokens.min(1);
        Some(Advance {
            job: sequence.job.id,
            tokens: sequence.generated,
            cached_tokens: sequence.cached_tokens,
            finished: sequence.generated == sequence.job.output_tokens,
            ..Advance::default()
        })
    }

    fn decode(&mut self, sequence: &mut Running, report: &mut StepReport) -> Advance {
        let left = sequence.job.output_tokens - sequence.generated;
        let (drafted, accepted) = self.draft();
        let tokens = left.min(1 + accepted);
        report.decode_tokens += u64::from(1 + drafted);
        report.context_tokens +=
            u64::from(sequence.job.prompt_tokens) + u64::from(sequence.generated);
        sequence.generated += tokens;
        Advance {
            job: sequence.job.id,
            tokens,
            cached_tokens: sequence.cached_tokens,
            drafted,
            accepted,
            finished: tokens == left,
        }
    }

    /// Proposes a draft; returns its length and how much of it is accepted.
    fn draft(&mut self) -> (u32, u32) {
        let Some(speculative) = self.cost.speculative else { return (0, 0) };
        let draw = self.draws;
        self.draws += 1;
        let accepted = (0..speculative.draft_tokens)
            .take_while(|place| {
                random::unit(self.cost.seed, draw, u64::from(*place)) < speculative.acceptance
            })
            .count() as u32;
        self.totals.drafts += 1;
        self.totals.drafted += u64::from(speculative.draft_tokens);
        self.totals.accepted += u64::from(accepted);
        (speculative.draft_tokens, accepted)
    }

    /// Makes the blocks of a computed prompt known to the cache.
    fn share_prompt(&mut self, sequence: &mut Running) {
        let block = u64::from(self.cost.block_tokens);
        for hash in sequence.job.blocks.iter().skip(sequence.blocks_held) {
            self.cache.acquire(*hash);
            sequence.private -= block;
            self.private -= block;
        }
        sequence.blocks_held = sequence.job.blocks.len();
    }

    fn free(&mut self, sequence: &Running) {
        self.private -= sequence.private;
        self.cache.release(sequence.job.blocks.get(..sequence.blocks_held).unwrap_or_default());
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
