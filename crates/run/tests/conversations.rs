//! Conversations in virtual time: each turn follows from the reply to the last one.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use proptest::prelude::*;
use servebench_core::{
    Backend, Clock, Conversation, Failure, FailureKind, Record, Reply, Request, Session, Stamp,
};
use servebench_run::{Finished, Job, Progress, Stop, TokioClock, run_here};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Answers each request after 10 ms with its id; fails one of them.
#[derive(Clone)]
struct Server {
    clock: TokioClock,
    fails: Option<u64>,
    drains: Option<(u64, Stop)>,
    bodies: Rc<RefCell<Vec<String>>>,
    under_way: Rc<Cell<usize>>,
    peak: Rc<Cell<usize>>,
}

impl Server {
    fn new() -> Self {
        Self {
            clock: TokioClock::default(),
            fails: None,
            drains: None,
            bodies: Rc::default(),
            under_way: Rc::default(),
            peak: Rc::default(),
        }
    }
}

impl Backend for Server {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        self.bodies.borrow_mut().push(String::from_utf8(request.body.to_vec()).unwrap());
        self.under_way.set(self.under_way.get() + 1);
        self.peak.set(self.peak.get().max(self.under_way.get()));
        reply.sent = Some(self.clock.now());
        if let Some((id, stop)) = &self.drains
            && *id == request.id
        {
            stop.drain();
        }
        let due = self.clock.now().offset() + Duration::from_millis(10);
        self.clock.sleep_until(Stamp::from(due)).await;
        reply.push_chunk(self.clock.now(), Some(1), 0, &format!("<{}>", request.id));
        if self.fails == Some(request.id) {
            reply.fail(Failure::new(FailureKind::Server, "no"));
        }
        self.under_way.set(self.under_way.get() - 1);
    }
}

/// Conversations with that many turns each; 1 makes a plain request.
fn job(turns: &[usize], max_concurrency: Option<usize>) -> Job {
    let mut id = 0;
    let mut request = |(at, &count): (usize, &usize)| {
        let say = |turn| format!("\"{at}.{turn}\"").into();
        let conversation = Arc::new(Conversation {
            head: "[".into(),
            turns: (0..count).map(say).collect(),
            tail: "]".into(),
            ..Conversation::default()
        });
        let body = Session::start(&conversation).1;
        let headers = vec![("key".to_owned(), at.to_string())];
        let conversation = (count > 1).then_some(conversation);
        let request =
            Request { id, body, headers, output_len: 7, conversation, ..Request::default() };
        id += count as u64;
        request
    };
    let requests = turns.iter().enumerate().map(&mut request).collect();
    Job { max_concurrency, ..Job::burst(requests) }
}

fn run(job: &Job, server: &Server, stop: &Stop) -> Finished {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let progress = Arc::<Progress>::default();
    let clock = server.clock.clone();
    runtime.unwrap().block_on(run_here(job, server.clone(), clock, &progress, stop)).unwrap()
}

#[test]
fn each_turn_holds_the_replies_before_it() {
    let server = Server::new();
    let finished = run(&job(&[3, 1, 2], Some(1)), &server, &Stop::default());
    let said = |id: u64| format!(r#"{{"role":"assistant","content":"<{id}>"}}"#);
    let bodies = [
        r#"["0.0"]"#.to_owned(),
        format!(r#"["0.0",{},"0.1"]"#, said(0)),
        format!(r#"["0.0",{},"0.1",{},"0.2"]"#, said(0), said(1)),
        r#"["1.0"]"#.to_owned(),
        r#"["2.0"]"#.to_owned(),
        format!(r#"["2.0",{},"2.1"]"#, said(4)),
    ];
    assert_eq!(*server.bodies.borrow(), bodies);
    let ids: Vec<u64> = finished.records.iter().map(|record| record.id).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5]);
    assert_eq!(finished.unsent, 0);
    assert!(finished.records.iter().all(|record| record.output_len == 7));
    // A later turn was due when the reply before it was there, and left at once.
    let times: Vec<(u64, u64)> = finished
        .records
        .iter()
        .map(|record| (record.intended.0 / 1_000_000, record.dispatched.0 / 1_000_000))
        .collect();
    assert_eq!(times, [(0, 0), (10, 10), (20, 20), (0, 30), (0, 40), (50, 50)]);
    assert_eq!(finished.records[1].turnaround, Some(Duration::ZERO));
}

#[test]
fn a_failed_turn_leaves_an_empty_reply_and_the_conversation_goes_on() {
    let server = Server { fails: Some(0), ..Server::new() };
    let finished = run(&job(&[2], None), &server, &Stop::default());
    let second = r#"["0.0",{"role":"assistant","content":""},"0.1"]"#;
    assert_eq!(server.bodies.borrow()[1], second);
    let failed: Vec<bool> = finished.records.iter().map(|record| !record.is_success()).collect();
    assert_eq!(failed, [true, false]);
}

#[test]
fn a_conversation_that_is_stopped_leaves_turns_unsent() {
    let stop = Stop::default();
    let server = Server { drains: Some((1, stop.clone())), ..Server::new() };
    let finished = run(&job(&[4, 3], Some(1)), &server, &stop);
    assert_eq!(finished.records.len(), 2);
    assert_eq!(finished.unsent, 5);
    assert!(finished.records.iter().all(Record::is_success));
}

/// When each request was to leave and when it left, in milliseconds, by id.
fn times(finished: &Finished) -> Vec<(u64, u64)> {
    let times = |record: &Record| (record.intended.0 / 1_000_000, record.dispatched.0 / 1_000_000);
    finished.records.iter().map(times).collect()
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[test]
fn while_a_user_thinks_a_kept_place_is_idle_and_a_released_one_is_not() {
    let job = Job { think: ms(30), ..job(&[2, 1], Some(1)) };
    let kept = run(&job, &Server::new(), &Stop::default());
    assert_eq!(times(&kept), [(0, 0), (40, 40), (0, 50)]);
    let job = Job { release_slot: true, ..job };
    let released = run(&job, &Server::new(), &Stop::default());
    assert_eq!(times(&released), [(0, 0), (40, 40), (0, 10)]);
    assert_eq!(released.end, Stamp::from_millis(50));
    // The wait of the last one is the cap's doing, not the client's.
    let late: Vec<_> = released.records.iter().map(|record| record.lateness).collect();
    assert_eq!(late, [Some(ms(0)), Some(ms(0)), None]);
}

#[test]
fn the_next_turn_waits_behind_all_that_were_due_before_it() {
    let job = Job { release_slot: true, ..job(&[2, 2], Some(1)) };
    let finished = run(&job, &Server::new(), &Stop::default());
    // First turns at 0 and 10; the second turns, due at 10 and 20, in that order.
    assert_eq!(times(&finished), [(0, 0), (10, 20), (0, 10), (20, 30)]);
    assert!(finished.records.iter().all(|record| record.turnaround.is_none()));
    let late: Vec<_> = finished.records.iter().map(|record| record.lateness.is_some()).collect();
    assert_eq!(late, [true, false, false, false]);
}

#[test]
fn turns_and_arrivals_stand_in_one_line() {
    let schedule = [0, 12, 13].map(Stamp::from_millis).to_vec().into();
    let job = Job { schedule, think: ms(5), release_slot: true, ..job(&[2, 1, 1], Some(1)) };
    let finished = run(&job, &Server::new(), &Stop::default());
    // The second turn, due at 15, comes after the request that was due at 13.
    assert_eq!(times(&finished), [(0, 0), (15, 32), (12, 12), (13, 22)]);
}

#[test]
fn without_a_line_a_turn_goes_straight_on() {
    let job = Job { release_slot: true, ..job(&[2], Some(2)) };
    let finished = run(&job, &Server::new(), &Stop::default());
    assert_eq!(times(&finished), [(0, 0), (10, 10)]);
    assert_eq!(finished.records[1].turnaround, Some(ms(0)));
}

#[test]
fn a_stop_ends_the_line() {
    let stop = Stop::default();
    let server = Server { drains: Some((2, stop.clone())), ..Server::new() };
    let job = Job { release_slot: true, ..job(&[2, 2, 2], Some(1)) };
    let finished = run(&job, &server, &stop);
    let ids: Vec<u64> = finished.records.iter().map(|record| record.id).collect();
    assert_eq!((ids, finished.unsent), (vec![0, 2], 4));
    assert_eq!(finished.end, Stamp::from_millis(20));
}

proptest! {
    #[test]
    fn a_released_place_is_never_idle_while_somebody_waits(
        turns in prop::collection::vec(1..5_usize, 1..8), cap in 1..4_usize, think in 0..25_u64,
    ) {
        let server = Server::new();
        let job = Job { release_slot: true, think: ms(think), ..job(&turns, Some(cap)) };
        let finished = run(&job, &server, &Stop::default());
        prop_assert_eq!(finished.unsent, 0);
        prop_assert!(server.peak.get() <= cap);
        for record in &finished.records {
            prop_assert!(record.dispatched >= record.intended);
            // Whoever waited left at the moment at which another one's place became free.
            let waited = record.dispatched > record.intended;
            let freed = |other: &Record| other.reply.last_token() == Some(record.dispatched);
            prop_assert!(!waited || finished.records.iter().any(freed));
            prop_assert!(!waited || record.lateness.is_none());
        }
        // First come, first served.
        let mut line: Vec<_> =
            finished.records.iter().map(|record| (record.intended, record.dispatched)).collect();
        line.sort_unstable();
        prop_assert!(line.is_sorted_by_key(|(_, dispatched)| *dispatched));
    }

    #[test]
    fn every_turn_is_sent_once_and_the_cap_holds(
        turns in prop::collection::vec(1..5_usize, 1..12), cap in prop::option::of(1..5_usize),
        release_slot in any::<bool>(),
    ) {
        let server = Server::new();
        let job = Job { release_slot, ..job(&turns, cap) };
        let finished = run(&job, &server, &Stop::default());
        let total: usize = turns.iter().sum();
        let ids: Vec<u64> = finished.records.iter().map(|record| record.id).collect();
        prop_assert_eq!(ids, (0..total as u64).collect::<Vec<_>>());
        prop_assert!(server.peak.get() <= cap.unwrap_or(turns.len()));
        prop_assert_eq!(finished.unsent, 0);
    }
}
