//! The load engine in virtual time: exact due times, exact caps, exact lateness.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use proptest::prelude::*;
use servebench_core::{Backend, Clock, Failure, FailureKind, Record, Reply, Request, Stamp};
use servebench_run::{Finished, Job, Progress, Stop, TokioClock, run_here};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Answers after `service` with one token; panics on request 13.
#[derive(Clone)]
struct Server {
    clock: TokioClock,
    service: Duration,
    under_way: Rc<Cell<usize>>,
    peak: Rc<Cell<usize>>,
}

impl Server {
    fn new(service_ms: u64) -> Self {
        Self {
            clock: TokioClock::default(),
            service: Duration::from_millis(service_ms),
            under_way: Rc::default(),
            peak: Rc::default(),
        }
    }
}

impl Backend for Server {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        assert_ne!(request.id, 13, "unlucky");
        self.under_way.set(self.under_way.get() + 1);
        self.peak.set(self.peak.get().max(self.under_way.get()));
        reply.sent = Some(self.clock.now());
        let due = self.clock.now().offset() + self.service;
        self.clock.sleep_until(Stamp::from(due)).await;
        reply.push_chunk(self.clock.now(), Some(1), 0, "t");
        self.under_way.set(self.under_way.get() - 1);
    }
}

fn job(due_ms: &[u64], max_concurrency: Option<usize>) -> Job {
    let requests = (0..due_ms.len() as u64).map(|id| Request { id, ..Request::default() });
    let schedule = due_ms.iter().copied().map(Stamp::from_millis).collect();
    Job { schedule, max_concurrency, ..Job::burst(requests.collect()) }
}

fn run(job: &Job, server: &Server, stop: &Stop) -> Finished {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let progress = Arc::<Progress>::default();
    let clock = server.clock.clone();
    runtime.unwrap().block_on(run_here(job, server.clone(), clock, &progress, stop)).unwrap()
}

fn millis(finished: &Finished, of: impl Fn(&Record) -> Stamp) -> Vec<u64> {
    finished.records.iter().map(|record| of(record).0 / 1_000_000).collect()
}

#[test]
fn open_loop_requests_leave_when_due_whatever_the_server_does() {
    let server = Server::new(500);
    let finished = run(&job(&[0, 100, 200, 300], None), &server, &Stop::default());
    assert_eq!(millis(&finished, |r| r.dispatched), [0, 100, 200, 300]);
    assert_eq!(server.peak.get(), 4);
    assert!(finished.records.iter().all(|r| r.lateness == Some(Duration::ZERO)));
    assert_eq!(finished.end, Stamp::from_millis(800));
}

#[test]
fn a_cap_makes_requests_wait_and_the_wait_is_visible() {
    // Eight arrivals 100 ms apart, one at a time, 500 ms each: request i waits 0.4 i seconds.
    let due: Vec<u64> = (0..8).map(|i| 100 * i).collect();
    let finished = run(&job(&due, Some(1)), &Server::new(500), &Stop::default());
    let sent: Vec<u64> = (0..8).map(|i| 500 * i).collect();
    assert_eq!(millis(&finished, |r| r.intended), due);
    assert_eq!(millis(&finished, |r| r.dispatched), sent);
    // Only request 0 had a free slot in time: the others' wait is not the timer's.
    let timed: Vec<_> = finished.records.iter().map(|r| r.lateness.is_some()).collect();
    assert_eq!(timed, [true, false, false, false, false, false, false, false]);
}

#[test]
fn a_burst_fills_the_cap_in_plan_order() {
    let server = Server::new(10);
    let finished = run(&job(&[0; 10], Some(4)), &server, &Stop::default());
    assert_eq!(server.peak.get(), 4);
    assert_eq!(millis(&finished, |r| r.dispatched), [0, 0, 0, 0, 10, 10, 10, 10, 20, 20]);
}

#[test]
fn a_panic_is_one_failed_request() {
    let finished = run(&job(&[0; 20], Some(3)), &Server::new(1), &Stop::default());
    let failed: Vec<_> = finished.records.iter().filter(|r| !r.is_success()).collect();
    assert_eq!(finished.records.len(), 20);
    assert_eq!(failed.len(), 1);
    let failure = failed[0].reply.failure.as_ref().unwrap();
    assert_eq!((failed[0].id, failure.kind), (13, FailureKind::Client));
    assert!(failure.detail.contains("unlucky"));
}

/// Orders a stop after `after_ms`, from inside the run.
struct StopAfter {
    server: Server,
    after_ms: u64,
    stop: Stop,
    abort: bool,
}

impl Backend for StopAfter {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        if self.server.clock.now() >= Stamp::from_millis(self.after_ms) {
            if self.abort { self.stop.abort() } else { self.stop.drain() }
        }
        self.server.send(request, reply).await;
    }
}

fn stopped(abort: bool) -> Finished {
    let (server, stop) = (Server::new(50), Stop::default());
    let clock = server.clock.clone();
    let backend = StopAfter { server, after_ms: 200, stop: stop.clone(), abort };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let job = job(&[0, 100, 200, 300, 400], None);
    let progress = Arc::default();
    let run = run_here(&job, backend, clock, &progress, &stop);
    runtime.unwrap().block_on(run).unwrap()
}

#[test]
fn draining_finishes_what_is_under_way_and_sends_no_more() {
    let finished = stopped(false);
    assert_eq!((finished.records.len(), finished.unsent), (3, 2));
    assert!(finished.records.iter().all(Record::is_success));
}

#[test]
fn aborting_cuts_off_what_is_under_way_and_keeps_the_rest() {
    let finished = stopped(true);
    assert_eq!((finished.records.len(), finished.unsent), (3, 2));
    let kinds: Vec<_> =
        finished.records.iter().map(|r| r.reply.failure.as_ref().map(|f| f.kind)).collect();
    assert_eq!(kinds, [None, None, Some(FailureKind::Cancelled)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_request_is_sent_once_never_early_and_never_over_the_cap(
        mut due in prop::collection::vec(0..500u64, 1..40),
        cap in prop::option::of(1..8usize),
        service in 1..60u64,
    ) {
        due.truncate(13); // the unlucky one is tested above
        due.sort_unstable();
        let server = Server::new(service);
        let finished = run(&job(&due, cap), &server, &Stop::default());
        let ids: Vec<u64> = finished.records.iter().map(|r| r.id).collect();
        prop_assert_eq!(ids, (0..due.len() as u64).collect::<Vec<_>>());
        prop_assert!(finished.records.iter().all(|r| r.dispatched >= r.intended));
        prop_assert!(finished.records.windows(2).all(|w| w[0].dispatched <= w[1].dispatched));
        prop_assert!(server.peak.get() <= cap.unwrap_or(usize::MAX));
    }
}

#[test]
fn a_slot_that_goes_on_at_once_has_no_turnaround_to_speak_of() {
    let finished = run(&job(&[0; 6], Some(2)), &Server::new(10), &Stop::default());
    let turnarounds: Vec<_> = finished.records.iter().map(|r| r.turnaround).collect();
    let none = Some(Duration::ZERO);
    assert_eq!(turnarounds, [None, None, none, none, none, none]);
    // Where due times are waited for, there is no turn to speak of.
    let finished = run(&job(&[0, 5, 10], Some(1)), &Server::new(10), &Stop::default());
    assert!(finished.records.iter().all(|record| record.turnaround.is_none()));
}

/// Takes 2 ms to write a request and 3 ms to tidy up behind a reply.
struct Slow(Server);

impl Backend for Slow {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        let clock = &self.0.clock;
        let after = |ms| Stamp::from(clock.now().offset() + Duration::from_millis(ms));
        clock.sleep_until(after(2)).await;
        self.0.send(request, reply).await;
        clock.sleep_until(after(1)).await;
        reply.last_line = Some(clock.now());
        if request.id == 2 {
            reply.fail(Failure::new(FailureKind::Reset, "by the server"));
        }
        clock.sleep_until(after(3)).await;
    }
}

#[test]
fn turnaround_is_from_the_last_byte_of_a_reply_to_the_first_of_the_next_request() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let server = Server::new(10);
    let (clock, progress, stop) = (server.clock.clone(), Arc::default(), Stop::default());
    let job = job(&[0; 5], Some(1));
    let run = run_here(&job, Slow(server), clock, &progress, &stop);
    let finished = runtime.unwrap().block_on(run).unwrap();
    let millis = |turnaround: Duration| turnaround.as_millis();
    let turnarounds: Vec<_> = finished.records.iter().map(|r| r.turnaround.map(millis)).collect();
    // Of a failed reply nobody knows the last byte: it ended when the slot was free.
    assert_eq!(turnarounds, [None, Some(5), Some(5), Some(2), Some(5)]);
}

#[test]
fn what_is_sent_does_not_depend_on_the_number_of_workers() {
    for cap in [None, Some(70)] {
        for workers in [1, 2, 7, 64] {
            let job = job(&[0; 130], cap);
            let (progress, stop) = (Arc::default(), Stop::default());
            let echo = |clock| Server { clock, ..Server::new(0) };
            let job = Job {
                requests: job.requests.iter().filter(|r| r.id != 13).cloned().collect(),
                schedule: job.schedule[1..].into(),
                ..job
            };
            let done = servebench_run::run_on_threads(&job, workers, echo, &progress, &stop);
            let sent: Vec<u64> = done.unwrap().records.iter().map(|record| record.id).collect();
            let planned: Vec<u64> = job.requests.iter().map(|request| request.id).collect();
            assert_eq!(sent, planned, "{workers} workers, cap {cap:?}");
        }
    }
}
