//! The loads.

/// How requests are sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Load {
    /// So many at once: the next one goes when one is done.
    Closed(u32),
    /// So many a second, at Poisson's times, without a limit.
    Open(f64),
}

/// One load and the timing of the server that takes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) load: Load,
    pub(crate) requests: u32,
    pub(crate) output_tokens: u32,
    pub(crate) ttft_ms: u32,
    pub(crate) itl_ms: u32,
    /// One write for each token even when several are due.
    pub(crate) flush_each: bool,
}

/// A load on a server that writes what is due together at once.
pub(crate) const fn scenario(
    name: &'static str,
    load: Load,
    requests: u32,
    output_tokens: u32,
    (ttft_ms, itl_ms): (u32, u32),
) -> Scenario {
    Scenario { name, load, requests, output_tokens, ttft_ms, itl_ms, flush_each: false }
}

impl Scenario {
    /// Requests under way on average in an open loop, and their number at once in a closed one.
    pub(crate) fn in_flight(&self) -> f64 {
        match self.load {
            Load::Closed(concurrency) => f64::from(concurrency),
            Load::Open(rate) => {
                let gaps = self.output_tokens.saturating_sub(1);
                rate * f64::from(self.ttft_ms + gaps * self.itl_ms) / 1e3
            }
        }
    }
}

use Load::{Closed, Open};

/// `m`: few requests, to look at memory and start. `z`: no delay. `y`: no delay, one write for each token. `t`: timed as a real server, everything
/// at once. `p`: timed, at Poisson's times. `a`: the same with short replies, to look at the
/// arrivals.
pub(crate) const SCENARIOS: [Scenario; 11] = [
    scenario("m64", Closed(64), 2_000, 128, (0, 0)),
    scenario("z64", Closed(64), 16_000, 128, (0, 0)),
    scenario("z1024", Closed(1024), 16_000, 128, (0, 0)),
    Scenario { flush_each: true, ..scenario("y64", Closed(64), 6_000, 128, (0, 0)) },
    scenario("t500", Closed(500), 2_000, 64, (50, 10)),
    scenario("t1000", Closed(1000), 4_000, 64, (50, 10)),
    scenario("t2000i20", Closed(2000), 6_000, 64, (50, 20)),
    scenario("p300", Open(300.0), 1_800, 64, (50, 10)),
    scenario("p1000", Open(1000.0), 6_000, 64, (50, 10)),
    scenario("a500", Open(500.0), 5_000, 4, (20, 10)),
    scenario("a2000", Open(2000.0), 10_000, 4, (20, 10)),
];
