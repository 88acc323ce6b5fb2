//! Arrivals through the engine, on real threads: whatever the number of workers, every request has the
//! due time of the plan, and none leaves before.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use servebench_core::{Backend, Clock, Reply, Request, Stamp};
use servebench_run::{Job, Stop, TokioClock, run_on_threads};
use std::sync::Arc;

#[path = "../../arrival/tests/law/mod.rs"]
mod law;

/// Answers at once.
struct Echo(TokioClock);

impl Backend for Echo {
    async fn send(&self, _request: &Request, reply: &mut Reply) {
        reply.sent = Some(self.0.now());
        reply.push_chunk(self.0.now(), Some(1), 0, "t");
    }
}

#[test]
fn the_plan_is_kept_by_any_number_of_workers() {
    for (law, schedule) in law::samples(50_000.0, 4_000, 5) {
        for workers in [1, 2, 7, 64] {
            let requests =
                (0..schedule.len() as u64).map(|id| Request { id, ..Request::default() });
            let job = Job { schedule: schedule.clone().into(), ..Job::burst(requests.collect()) };
            let (progress, stop) = (Arc::default(), Stop::default());
            let done = run_on_threads(&job, workers, Echo, &progress, &stop).unwrap();
            let case = format!("{}, {workers} workers", law.name);

            let intended: Vec<Stamp> = done.records.iter().map(|record| record.intended).collect();
            assert_eq!(intended, schedule, "{case}");
            law.check(&intended);
            for record in &done.records {
                assert!(record.dispatched >= record.intended, "{case}: {record:?}");
                assert!(record.reply.sent >= Some(record.dispatched), "{case}: {record:?}");
                let late = record.dispatched.since(record.intended);
                assert_eq!(record.lateness, Some(late), "{case}: {record:?}");
            }
            assert_eq!(done.loops.len(), workers, "{case}");
        }
    }
}
