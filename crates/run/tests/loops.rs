//! What the engine tells of its event loops, on real threads.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use servebench_core::{Backend, Clock, Reply, Request, Stamp};
use servebench_run::{Finished, Job, Stop, TokioClock, run_on_threads};
use std::sync::Arc;
use std::time::Duration;

/// Answers after 50 ms, of which the thread is kept busy for some.
struct Spinning {
    clock: TokioClock,
    busy: Duration,
}

impl Backend for Spinning {
    async fn send(&self, _request: &Request, reply: &mut Reply) {
        let start = self.clock.now();
        while self.clock.now().since(start) < self.busy {}
        self.clock.sleep_until(Stamp::from_millis(50)).await;
        let now = self.clock.now();
        reply.push_chunk(now, Some(1), 0, "t");
    }
}

fn run(busy_ms: u64, workers: usize) -> Finished {
    let requests = (0..4).map(|id| Request { id, ..Request::default() }).collect();
    let make = |clock| Spinning { clock, busy: Duration::from_millis(busy_ms) };
    let (progress, stop) = (Arc::default(), Stop::default());
    run_on_threads(&Job::burst(requests), workers, make, &progress, &stop).unwrap()
}

#[test]
fn a_worker_that_is_kept_busy_has_stalled() {
    let done = run(10, 1);
    let [health] = &done.loops[..] else { panic!("one worker: {:?}", done.loops) };
    assert!(health.stalls >= 1, "{health:?}");
    assert!(health.longest_stall >= Duration::from_millis(10), "{health:?}");
    assert!(health.stalled >= health.longest_stall, "{health:?}");
    assert!(health.cpu > Duration::ZERO && health.turns > 0, "{health:?}");
}

#[test]
fn an_idle_worker_comes_round_all_the_time() {
    let done = run(0, 1);
    let [health] = &done.loops[..] else { panic!("one worker: {:?}", done.loops) };
    // The heartbeat keeps it going, except in stalls, which are the machine's.
    let moving = Duration::from_millis(50).saturating_sub(health.stalled);
    // A wait may take 7 ms and a turn 5 without being called a stall.
    let least = (moving.as_millis() / 12).saturating_sub(1);
    assert!(u128::from(health.turns) >= least, "{health:?}");
}
