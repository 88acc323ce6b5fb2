//! The arrival processes.

use crate::Rate;
use servebench_core::Stamp;
use servebench_core::random::NumpyLegacy;

/// All requests at the start of the run. Never ends.
#[derive(Clone, Debug, Default)]
pub struct Burst;

impl Iterator for Burst {
    type Item = Stamp;

    fn next(&mut self) -> Option<Stamp> {
        Some(Stamp(0))
    }
}

/// One request every `1 / rate` seconds, the first at the start of the run. Never ends.
#[derive(Clone, Debug)]
pub struct Constant {
    rate: Rate,
    count: u64,
}

impl Constant {
    /// Evenly spaced arrivals at `rate`.
    pub const fn new(rate: Rate) -> Self {
        Self { rate, count: 0 }
    }
}

impl Iterator for Constant {
    type Item = Stamp;

    fn next(&mut self) -> Option<Stamp> {
        // One division per arrival, not a running sum: no rounding error piles up.
        let at = Stamp::from_secs_f64(self.count as f64 / self.rate.get());
        self.count += 1;
        Some(at)
    }
}

/// The exponential gaps of a Poisson process, from NumPy's legacy generator.
///
/// For callers that draw other things between two gaps. The Python tool draws, for each request in
/// turn, first its adapter and then the gap to the next request, from the same generator:
///
/// ```
/// use servebench_arrival::{PoissonGaps, Rate, Timeline};
/// use servebench_core::random::NumpyLegacy;
///
/// let gaps = PoissonGaps::new(Rate::per_second(10.0)?);
/// let mut draws = NumpyLegacy::new(42);
/// let mut timeline = Timeline::default();
/// let mut plan = Vec::new();
/// for _request in 0..3 {
///     let adapter = draws.choice_weighted(&[0.6, 0.4]);
///     plan.push((timeline.now(), adapter));
///     timeline.advance(gaps.next_gap(&mut draws));
/// }
/// assert_eq!(plan.len(), 3);
/// # Ok::<(), servebench_arrival::ArrivalError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PoissonGaps {
    rate: Rate,
}

impl PoissonGaps {
    /// Gaps with mean `1 / rate`.
    pub const fn new(rate: Rate) -> Self {
        Self { rate }
    }

    /// The next gap in seconds. An infinite rate gives zero and draws nothing.
    pub fn next_gap(self, draws: &mut NumpyLegacy) -> f64 {
        if self.rate.is_infinite() { 0.0 } else { draws.exponential(self.rate.mean_gap()) }
    }
}

/// Sums gaps to absolute offsets, in double precision; only the sum is rounded to nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timeline {
    seconds: f64,
}

impl Timeline {
    /// The offset reached so far.
    pub fn now(&self) -> Stamp {
        Stamp::from_secs_f64(self.seconds)
    }

    /// Moves on by `gap` seconds. A negative or NaN gap does not move it back.
    pub fn advance(&mut self, gap: f64) {
        self.seconds += gap.max(0.0);
    }
}

/// A Poisson process: the first request at the start of the run, then exponential gaps. Never ends.
///
/// As in the Python tool a gap is drawn after every request, so `n` requests take `n` draws. The
/// schedule is not scaled to end at `n / rate`: the rate of one seed's `n` requests differs from the
/// one asked for by about one part in `√n`.
#[derive(Debug)]
pub struct Poisson<'a> {
    gaps: PoissonGaps,
    draws: &'a mut NumpyLegacy,
    timeline: Timeline,
}

impl<'a> Poisson<'a> {
    /// Poisson arrivals at `rate` with gaps from `draws`.
    pub fn new(rate: Rate, draws: &'a mut NumpyLegacy) -> Self {
        Self { gaps: PoissonGaps::new(rate), draws, timeline: Timeline::default() }
    }
}

impl Iterator for Poisson<'_> {
    type Item = Stamp;

    fn next(&mut self) -> Option<Stamp> {
        let at = self.timeline.now();
        self.timeline.advance(self.gaps.next_gap(self.draws));
        Some(at)
    }
}
