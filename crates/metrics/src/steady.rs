//! The steady state: the part of a run in which the load had built up and had not yet died down.

use crate::gaps::{Step, steps};
use crate::{ItlRule, Measured};
use serde::{Deserialize, Serialize};
use servebench_core::{Chunk, Stamp};

const SECOND_NS: u64 = 1_000_000_000;

/// Why a run has no steady state.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SteadyError {
    /// The share of the peak is not one.
    #[error("a concurrency ratio lies above 0 and is at most 1, not {0}")]
    Ratio(f64),
    /// Nothing succeeded that took any time.
    #[error("no request succeeded, so that there is no time to call steady")]
    NoSuccess,
}

/// The longest time without a break in which enough requests were under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyWindow {
    /// When it began.
    pub start: Stamp,
    /// When it ended.
    pub end: Stamp,
    /// What was enough: `max(1, ⌈peak · ratio⌉)`.
    pub threshold: u64,
    /// Most requests that were under way at once, over the whole run.
    pub peak: u64,
}

impl SteadyWindow {
    /// Of requests that were under way from the one stamp to the other: the longest time with at least
    /// `max(1, ⌈peak · ratio⌉)` of them, the earliest of several that are equally long.
    ///
    /// A request that begins when another ends takes its place; those that take no time are left out.
    ///
    /// # Errors
    ///
    /// Without a request, or with a ratio outside of (0, 1].
    ///
    /// ```
    /// use servebench_core::Stamp;
    /// use servebench_metrics::SteadyWindow;
    ///
    /// let ms = |start, end| (Stamp::from_millis(start), Stamp::from_millis(end));
    /// let window = SteadyWindow::find([ms(0, 400), ms(100, 300), ms(500, 600)], 1.0)?;
    /// assert_eq!((window.start, window.end), ms(100, 300));
    /// assert_eq!((window.threshold, window.peak), (2, 2));
    /// # Ok::<(), servebench_metrics::SteadyError>(())
    /// ```
    pub fn find(
        requests: impl IntoIterator<Item = (Stamp, Stamp)>,
        ratio: f64,
    ) -> Result<Self, SteadyError> {
        if !(ratio > 0.0 && ratio <= 1.0) {
            return Err(SteadyError::Ratio(ratio));
        }
        let lasting = requests.into_iter().filter(|(start, end)| end > start);
        let mut steps: Vec<(Stamp, i64)> =
            lasting.flat_map(|(start, end)| [(start, 1), (end, -1)]).collect();
        steps.sort_unstable();
        let levels = || levels(&steps);
        let peak = levels().map(|(_, level)| level).max().ok_or(SteadyError::NoSuccess)?;
        let threshold = ((peak as f64 * ratio).ceil() as u64).max(1);
        let mut best: Option<(Stamp, Stamp)> = None;
        let mut began = None;
        for (at, level) in levels() {
            if level >= threshold {
                began = began.or(Some(at));
            } else if let Some(start) = began.take() {
                let longer = best.is_none_or(|(from, to)| at.since(start) > to.since(from));
                best = if longer { Some((start, at)) } else { best };
            }
        }
        let (start, end) = best.ok_or(SteadyError::NoSuccess)?;
        Ok(Self { start, end, threshold, peak })
    }

    /// Seconds from its start to its end.
    pub fn seconds(&self) -> f64 {
        self.end.secs_since(self.start)
    }

    /// Whether `at` is one of its moments, both ends included.
    fn holds(&self, at: Stamp) -> bool {
        (self.start..=self.end).contains(&at)
    }

    /// Whole seconds since its start: the first one holds both of its ends, each later one its second
    /// end alone.
    fn second_of(&self, at: Stamp) -> usize {
        let elapsed = at.0.saturating_sub(self.start.0);
        let last = (self.end.0 - self.start.0).div_ceil(SECOND_NS).max(1) - 1;
        elapsed.div_ceil(SECOND_NS).saturating_sub(1).min(last) as usize
    }
}

/// From which moment on how many requests were under way. `steps` are sorted; they sum to 0.
fn levels(steps: &[(Stamp, i64)]) -> impl Iterator<Item = (Stamp, u64)> {
    let mut level = 0;
    steps.chunk_by(|one, next| one.0 == next.0).map(move |now| {
        level += now.iter().map(|(_, step)| step).sum::<i64>();
        // More never end than began.
        (now[0].0, u64::try_from(level).unwrap_or(0))
    })
}

/// What was measured in the steady state. The names are those of the result's keys.
///
/// Output tokens are dealt to the moments at which they came: a reply of `n` tokens of which the
/// stream shows `m` arrivals adds `n/m` for each arrival within the window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// Share of the peak that counts as steady.
    pub concurrency_ratio: f64,
    /// Start of the window, in seconds since the start of the run.
    pub window_start: f64,
    /// Its end.
    pub window_end: f64,
    /// Seconds between them.
    pub duration: f64,
    /// Fewest requests under way within it: `max(1, ⌈peak · ratio⌉)`.
    pub concurrency_threshold: u64,
    /// Requests that ended within it.
    pub completed: u64,
    /// Prompt tokens of the requests that began within it, the window's own end left out.
    pub total_input: u64,
    /// `total_input / duration`.
    pub input_throughput: f64,
    /// Output tokens that came within it.
    pub total_output: f64,
    /// The same by the client's tokenizer; `None` when it counted nothing.
    pub total_output_retokenized: Option<f64>,
    /// `total_output / duration`.
    pub output_throughput: f64,
    /// `total_output_retokenized / duration`.
    pub output_throughput_retokenized: Option<f64>,
    /// Mean number of requests under way within it.
    pub average_concurrency: f64,
    /// Most requests under way at once, over the whole run.
    pub peak_concurrency: u64,
    /// Most output tokens in one of its seconds.
    pub peak_output_throughput: f64,
}

impl SteadyState {
    /// The steady state of a run: of its successes, the time with at least `max(1, ⌈peak · ratio⌉)` of
    /// them under way.
    ///
    /// A request is under way from its dispatch to its last token. `rule` says when the tokens of a
    /// chunk came, as it does for the ITL.
    ///
    /// # Errors
    ///
    /// Without a success, or with a ratio outside of (0, 1].
    pub fn of(requests: &[Measured<'_>], ratio: f64, rule: ItlRule) -> Result<Self, SteadyError> {
        let mut stays: Vec<Stay<'_>> = requests.iter().filter_map(Stay::of).collect();
        let window = SteadyWindow::find(stays.iter().map(|stay| (stay.start, stay.end)), ratio)?;
        // Sums of fractions depend on their order, numbers of a run must not.
        stays.sort_by_key(|stay| stay.request.record.id);
        let seconds = vec![0.0; window.second_of(window.end) + 1];
        let began = requests.iter().filter(|request| {
            let start = request.record.dispatched;
            request.record.is_success() && window.holds(start) && start < window.end
        });
        let input = began.map(|request| u64::from(request.record.prompt_len)).sum();
        let mut totals = Totals { input, seconds, ..Totals::default() };
        let mut chunks = Vec::new();
        for stay in &stays {
            totals.add(stay, &window, rule, &mut chunks);
        }
        let duration = window.seconds();
        Ok(Self {
            concurrency_ratio: ratio,
            window_start: window.start.as_secs_f64(),
            window_end: window.end.as_secs_f64(),
            duration,
            concurrency_threshold: window.threshold,
            completed: totals.completed,
            total_input: totals.input,
            input_throughput: totals.input as f64 / duration,
            total_output: totals.output,
            total_output_retokenized: totals.retokenized,
            output_throughput: totals.output / duration,
            output_throughput_retokenized: totals.retokenized.map(|tokens| tokens / duration),
            average_concurrency: totals.overlap as f64 / 1e9 / duration,
            peak_concurrency: window.peak,
            peak_output_throughput: totals.seconds.into_iter().fold(0.0, f64::max),
        })
    }
}

/// A success, and when it was under way.
struct Stay<'a> {
    request: &'a Measured<'a>,
    start: Stamp,
    end: Stamp,
}

impl<'a> Stay<'a> {
    fn of(request: &'a Measured<'a>) -> Option<Self> {
        let (start, end) = (request.record.dispatched, request.end()?);
        (request.record.is_success() && end > start).then_some(Self { request, start, end })
    }
}

#[derive(Default)]
struct Totals {
    completed: u64,
    input: u64,
    output: f64,
    retokenized: Option<f64>,
    /// Nanoseconds that requests were under way within the window, added up.
    overlap: u128,
    /// Output tokens of each second.
    seconds: Vec<f64>,
}

impl Totals {
    fn add(
        &mut self,
        stay: &Stay<'_>,
        window: &SteadyWindow,
        rule: ItlRule,
        chunks: &mut Vec<Chunk>,
    ) {
        let record = stay.request.record;
        self.completed += u64::from(window.holds(stay.end));
        let (from, to) = (stay.start.max(window.start), stay.end.min(window.end));
        self.overlap += u128::from(to.0.saturating_sub(from.0));
        chunks.clear();
        chunks.extend(record.reply.chunks.iter());
        let arrivals = || {
            let later = steps(chunks, rule.weights()).flat_map(Step::arrivals);
            chunks.first().map(|chunk| chunk.at).into_iter().chain(later)
        };
        let all = arrivals().count();
        if all == 0 {
            return;
        }
        let tokens = stay.request.output_count().tokens as f64;
        let each = tokens / all as f64;
        let mut within = 0;
        for at in arrivals().filter(|at| window.holds(*at)) {
            within += 1;
            self.seconds[window.second_of(at)] += each;
        }
        let share = within as f64 / all as f64;
        self.output += tokens * share;
        if let Some(tokens) = stay.request.retokenized {
            *self.retokenized.get_or_insert(0.0) += f64::from(tokens) * share;
        }
    }
}
