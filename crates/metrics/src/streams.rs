//! What the token streams of all successes say together.

use crate::counted::Counted;
use crate::gaps::{Gap, Step, steps};
use crate::peaks::{Buckets, FullestSecond};
use crate::{Bounds, Distribution, ItlRule, Measured};
use servebench_core::{Chunk, Chunks, Reply, Stamp};

/// Everything that takes a look at each token. Every stream is read once.
#[derive(Debug)]
pub(crate) struct Streams {
    rule: ItlRule,
    itl: Counted,
    /// What makes the family per token of that by the route's rule.
    token_itl: Change,
    /// What makes the least and the most that the samples may be of the samples.
    low: Counted,
    high: Counted,
    between: Counted,
    exact_itls: u64,
    bounded_chunks: u64,
    /// By how much of the stamps' unit each last token may have come earlier; the largest number
    /// stands for any longer time.
    slacks: Vec<u32>,
    second: FullestSecond,
    /// The stream being read.
    chunks: Vec<Chunk>,
}

/// A family of samples as a change of another one: mostly there is none.
#[derive(Debug, Default)]
struct Change {
    less: Counted,
    more: Counted,
}

/// What the streams say.
#[derive(Debug)]
pub(crate) struct Streamed {
    pub(crate) itl: Option<Distribution>,
    pub(crate) token_itl: Option<Distribution>,
    pub(crate) bounds: Option<Bounds>,
    slacks: Vec<u32>,
    pub(crate) exact_share: Option<f64>,
    pub(crate) bounded_chunks: u64,
}

impl Streams {
    pub(crate) fn new(rule: ItlRule, requests: &[Measured<'_>]) -> Self {
        let replies = || requests.iter().map(|request| &request.record.reply);
        let first = replies().filter_map(Reply::first_token).min().unwrap_or_default();
        let last = replies().filter_map(Reply::last_token).max().unwrap_or_default();
        Self {
            rule,
            itl: Counted::default(),
            token_itl: Change::default(),
            low: Counted::default(),
            high: Counted::default(),
            between: Counted::default(),
            exact_itls: 0,
            bounded_chunks: 0,
            slacks: Vec::with_capacity(requests.len()),
            second: FullestSecond::new(first, last),
            chunks: Vec::new(),
        }
    }

    /// Reads one stream; `buckets` are the Python tool's, counted from `origin`.
    pub(crate) fn add(&mut self, request: &Measured<'_>, origin: Stamp, buckets: &mut Buckets) {
        let mut chunks = std::mem::take(&mut self.chunks);
        chunks.clear();
        chunks.extend(request.record.reply.chunks.iter());
        self.add_gaps(request, &chunks);
        let slack = chunks.last().map_or(0, |last| last.at.0.saturating_sub(last.after.0));
        self.slacks.push(u32::try_from(slack / Chunks::RESOLUTION).unwrap_or(u32::MAX));
        for (at, tokens) in request.token_stamps(&chunks) {
            self.second.count(at, tokens);
        }
        if let Some(ttft) = request.ttft() {
            let mut at = request.record.dispatched.secs_since(origin) + ttft;
            let gaps = steps(&chunks, self.rule.weights()).map(Step::gap);
            buckets.add_tokens(std::iter::once(at).chain(gaps.flat_map(Gap::samples).map(|gap| {
                at += gap;
                at
            })));
        }
        self.chunks = chunks;
    }

    fn add_gaps(&mut self, request: &Measured<'_>, chunks: &[Chunk]) {
        let weights = request.itl_weights(self.rule);
        let steps_by = |weights| steps(chunks, weights);
        let stamped = request.record.reply.read_lag.is_some();
        for step in steps_by(weights) {
            let tokens = u64::from(step.tokens);
            self.itl.add(step.nanos(), step.tokens);
            if stamped && step.is_between_exact() {
                self.exact_itls += tokens;
            } else if stamped {
                let (low, high) = step.bounds();
                self.between.add(step.nanos(), step.tokens);
                self.low.add(low, step.tokens);
                self.high.add(high, step.tokens);
                self.exact_itls += if step.is_exact() { tokens } else { 0 };
            }
        }
        if stamped {
            self.bounded_chunks += chunks.iter().filter(|chunk| !chunk.is_exact()).count() as u64;
        }
        let per_token = request.token_weights(chunks.iter().copied());
        if per_token.is_none_or(|per_token| !weights.agree(per_token, chunks)) {
            steps_by(weights).for_each(|step| self.token_itl.less.add(step.nanos(), step.tokens));
            let more = per_token.into_iter().flat_map(steps_by);
            more.for_each(|step| self.token_itl.more.add(step.nanos(), step.tokens));
        }
    }

    /// What the streams say, and where their fullest second is to be found.
    pub(crate) fn finish(self) -> (Streamed, FullestSecond) {
        let changed = |less: &Counted, more: &Counted| {
            Distribution::of_ascending(&self.itl.changed(less, more))
        };
        let none = Counted::default();
        let itl = changed(&none, &none);
        let changed = |less: &Counted, more: &Counted| {
            if less.is_empty() && more.is_empty() { itl } else { changed(less, more) }
        };
        let token_itl = changed(&self.token_itl.less, &self.token_itl.more);
        let low = changed(&self.between, &self.low);
        let high = changed(&self.between, &self.high);
        let streamed = Streamed {
            itl,
            token_itl,
            bounds: low.zip(high).map(|(low, high)| Bounds { low, high }),
            slacks: self.slacks,
            exact_share: itl.map(|itl| self.exact_itls as f64 / itl.count as f64),
            bounded_chunks: self.bounded_chunks,
        };
        (streamed, self.second)
    }
}

impl Streamed {
    /// How far E2E latency may be off. `requests` are those whose streams were read.
    pub(crate) fn e2e_bounds(&self, requests: &[Measured<'_>]) -> Option<Bounds> {
        let nanos = |slack: u32| match slack {
            u32::MAX => u64::MAX,
            slack => u64::from(slack) * Chunks::RESOLUTION,
        };
        let slacks = self.slacks.iter().copied().map(nanos);
        let bounds = requests.iter().zip(slacks);
        Bounds::of(bounds.filter_map(|(request, slack)| request.latency_bounds(slack)))
    }
}
