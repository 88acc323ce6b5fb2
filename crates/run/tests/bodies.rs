//! Bodies that are encoded as the run goes on are the bodies that would have been held.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use servebench_core::{Backend, Reply, Request, Stamp};
use servebench_run::{Encoder, Job, Stop, TokioClock, run_here, run_on_threads};
use std::sync::Arc;

/// Answers with the body it was sent.
struct Echo;

impl Backend for Echo {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        tokio::task::yield_now().await;
        let text = String::from_utf8_lossy(&request.body);
        reply.push_chunk(Stamp(64), Some(1), 0, &text);
    }
}

fn body(index: usize) -> String {
    format!("{{\"prompt\":\"{index}\"}}")
}

/// What went out and came back, request by request.
fn sent(job: &Job, workers: usize) -> Vec<(u64, u32, String)> {
    let finished =
        run_on_threads(job, workers, |_| Echo, &Arc::default(), &Stop::default()).unwrap();
    assert_eq!(finished.unsent, 0);
    let record =
        |record: servebench_core::Record| (record.id, record.output_len, record.reply.text);
    finished.records.into_iter().map(record).collect()
}

#[test]
fn a_tiny_budget_changes_nothing_but_memory() {
    const REQUESTS: usize = 700;
    let request = |index: usize| Request {
        id: index as u64,
        body: body(index).into(),
        output_len: index as u32 % 9,
        ..Request::default()
    };
    let held = Job::burst((0..REQUESTS).map(request).collect());
    let empty = |request: &Request| Request { body: Vec::new().into(), ..request.clone() };
    let bare: Arc<[Request]> = held.requests.iter().map(empty).collect();
    for max_concurrency in [None, Some(5)] {
        let held = Job { max_concurrency, ..held.clone() };
        let want = sent(&held, 1);
        assert_eq!(want[699].2, body(699));
        for (workers, budget) in [(1, 1), (1, 100), (3, 100), (3, 1 << 20)] {
            let encoder = Some(Encoder::new(budget, |index| body(index).into()));
            let ahead = Job { requests: Arc::clone(&bare), encoder, ..held.clone() };
            assert_eq!(sent(&ahead, workers), want, "{workers} workers, {budget} bytes");
            // A job can be run again.
            assert_eq!(sent(&ahead, workers), want);
        }
    }
}

#[test]
fn a_run_without_threads_encodes_for_itself() {
    let request = |id| Request { id, ..Request::default() };
    let encoder = Encoder::new(20, |index| body(index).into());
    let requests: Vec<Request> = (0..50).map(request).collect();
    let job = Job { encoder: Some(encoder.cycled(10)), ..Job::burst(requests) };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let (progress, stop) = (Arc::default(), Stop::default());
    let run = run_here(&job, Echo, TokioClock::default(), &progress, &stop);
    let finished = runtime.block_on(run).unwrap();
    let texts: Vec<String> = finished.records.into_iter().map(|record| record.reply.text).collect();
    assert_eq!(texts, (0..50).map(|index| body(index % 10)).collect::<Vec<_>>());
}

#[test]
fn a_run_that_is_stopped_ends() {
    let encoder = Encoder::new(1, |index| body(index).into());
    let requests = (0..50).map(|id| Request { id, ..Request::default() }).collect();
    let job = Job { encoder: Some(encoder), ..Job::burst(requests) };
    let stop = Stop::default();
    stop.drain();
    let finished = run_on_threads(&job, 2, |_| Echo, &Arc::default(), &stop).unwrap();
    assert_eq!(finished.unsent, 50);
}
