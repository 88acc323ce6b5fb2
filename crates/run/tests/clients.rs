//! Clients that go round their conversations, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use proptest::prelude::*;
use servebench_core::random::{NumpyLegacy, PythonRandom};
use servebench_core::{
    Backend, Clock, Conversation, Failure, FailureKind, Reply, Request, Session, Stamp, TurnEnd,
};
use servebench_run::{Choice, Clients, Finished, Job, Progress, Stop, TokioClock, run_here};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Answers each request after 10 ms; fails some tries of one request.
#[derive(Clone, Default)]
struct Server {
    clock: TokioClock,
    /// Which request, and how many tries of it.
    fails: Option<(u64, u32)>,
    tries: Rc<Cell<u32>>,
    /// Ids and output lengths in the order in which they came.
    came: Rc<RefCell<Vec<(u64, u32)>>>,
    under_way: Rc<Cell<usize>>,
    peak: Rc<Cell<usize>>,
}

impl Backend for Server {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        self.came.borrow_mut().push((request.id, request.output_len));
        self.under_way.set(self.under_way.get() + 1);
        self.peak.set(self.peak.get().max(self.under_way.get()));
        let due = self.clock.now().offset() + Duration::from_millis(10);
        self.clock.sleep_until(Stamp::from(due)).await;
        reply.push_chunk(self.clock.now(), Some(1), 0, "x");
        if let Some((id, tries)) = self.fails
            && id == request.id
            && self.tries.get() < tries
        {
            self.tries.set(self.tries.get() + 1);
            reply.fail(Failure::new(FailureKind::Status, "no"));
        }
        self.under_way.set(self.under_way.get() - 1);
    }
}

const CLIENTS: Clients = Clients {
    held: 1,
    choice: Choice::RoundRobin,
    rate: 0.0,
    retries: 0,
    max_requests: None,
    early_stop: false,
    seed: 0,
};

/// Conversations with that many turns each, for so many clients.
fn job(turns: &[usize], count: usize, clients: Clients) -> Job {
    let mut id = 0;
    let mut request = |&turns: &usize| {
        let end = |turn: usize| TurnEnd { tail: "]".into(), output_len: turn as u32 };
        let conversation = Arc::new(Conversation {
            head: "[".into(),
            turns: vec!["1".into(); turns],
            ends: (1..=turns).map(end).collect(),
            ..Conversation::default()
        });
        let body = Session::start(&conversation).1;
        let conversation = Some(conversation);
        let request = Request { id, body, output_len: 1, conversation, ..Request::default() };
        id += turns as u64;
        request
    };
    let requests = turns.iter().map(&mut request).collect();
    Job { max_concurrency: Some(count), clients: Some(clients), ..Job::burst(requests) }
}

fn run(job: &Job, server: &Server) -> Finished {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let progress = Arc::<Progress>::default();
    let clock = server.clock.clone();
    let stop = Stop::default();
    let ran = run_here(job, server.clone(), clock, &progress, &stop);
    runtime.unwrap().block_on(ran).unwrap()
}

fn order(server: &Server) -> Vec<u64> {
    server.came.borrow().iter().map(|(id, _)| *id).collect()
}

#[test]
fn a_client_goes_round_its_conversations_the_newest_first() {
    let server = Server::default();
    let finished = run(&job(&[2, 3, 2, 1], 1, Clients { held: 2, ..CLIENTS }), &server);
    // Of 0 and 2 first 2, then by turns; 5 comes in when 0 is over, 7 when 2 is.
    assert_eq!(order(&server), [2, 0, 3, 1, 5, 4, 7, 6]);
    assert_eq!(server.peak.get(), 1);
    assert_eq!((finished.records.len(), finished.unsent), (8, 0));
    assert_eq!(finished.end, Stamp::from_millis(80));
    let lengths: Vec<u32> = finished.records.iter().map(|record| record.output_len).collect();
    assert_eq!(lengths, [1, 2, 1, 2, 3, 1, 2, 1], "each turn asks for its own");
    assert_eq!(finished.clients, [(0, 0), (2, 0), (5, 0), (7, 0)]);
}

#[test]
fn any_conversation_is_chosen_with_pythons_draws() {
    let server = Server::default();
    let clients = Clients { held: 3, choice: Choice::Random, seed: 6, ..CLIENTS };
    run(&job(&[2, 2, 2], 1, clients), &server);
    // As the script does it: a list of those under way, in the order in which they began.
    let mut random = PythonRandom::new(7);
    let (mut held, mut want) = (vec![0, 2, 4], Vec::new());
    while !held.is_empty() {
        let place = random.choice_index(held.len() as u32) as usize;
        want.push(held[place]);
        held[place] += 1;
        if held[place] % 2 == 0 {
            held.remove(place);
        }
    }
    assert_eq!(order(&server), want);
}

#[test]
fn pauses_are_numpys_and_what_a_request_took_is_less_pause() {
    let server = Server::default();
    let finished = run(&job(&[3], 1, Clients { rate: 10.0, seed: 41, ..CLIENTS }), &server);
    let mut numpy = NumpyLegacy::new(42);
    let mut due = Duration::ZERO;
    for record in &finished.records {
        assert_eq!(record.intended, Stamp::from(due));
        let late = record.dispatched.since(record.intended);
        assert!(late <= Duration::from_millis(1), "{late:?}");
        let end = record.dispatched.offset() + Duration::from_millis(10);
        due = end + Duration::from_secs_f64(numpy.exponential(0.1 - 0.01));
    }
}

#[test]
fn a_failed_request_is_sent_again_and_counts_once() {
    let server = Server { fails: Some((1, 2)), ..Server::default() };
    let finished = run(&job(&[3], 1, Clients { retries: 2, ..CLIENTS }), &server);
    assert_eq!(order(&server), [0, 1, 1, 1, 2]);
    assert_eq!(finished.records.len(), 3);
    assert!(finished.records.iter().all(servebench_core::Record::is_success));
    let retried: Vec<(u64, FailureKind)> =
        finished.retried.iter().map(|(id, failure)| (*id, failure.kind)).collect();
    assert_eq!(retried, [(1, FailureKind::Status); 2]);
    // After about one second, then two.
    let waited = finished.records[1].dispatched.secs_since(finished.records[0].dispatched);
    assert!((2.7..3.4).contains(&waited), "{waited}");
}

#[test]
fn a_turn_that_fails_ends_its_conversation_and_no_other() {
    let server = Server { fails: Some((1, 9)), ..Server::default() };
    let finished = run(&job(&[3, 2], 1, Clients { held: 2, ..CLIENTS }), &server);
    assert_eq!(order(&server), [3, 0, 4, 1]);
    assert_eq!((finished.records.len(), finished.unsent, finished.retried.len()), (4, 1, 0));
    assert!(!finished.records[1].is_success());
}

#[test]
fn early_stop_leaves_what_is_unfinished() {
    let all = run(&job(&[1, 4, 1], 2, CLIENTS), &Server::default());
    assert_eq!(all.unsent, 0);
    // At 20 ms the first client has had two conversations and finds no third one.
    let stopped =
        run(&job(&[1, 4, 1], 2, Clients { early_stop: true, ..CLIENTS }), &Server::default());
    assert_eq!((stopped.end, stopped.unsent), (Stamp::from_millis(20), 2));
}

proptest! {
    #[test]
    fn every_turn_is_sent_once_and_in_order(
        turns in prop::collection::vec(1..5_usize, 1..12),
        count in 1..4_usize,
        held in 1..4_usize,
        random: bool,
        most in prop::option::of(1..20_usize),
    ) {
        let choice = if random { Choice::Random } else { Choice::RoundRobin };
        let clients = Clients { held, choice, max_requests: most, ..CLIENTS };
        let server = Server::default();
        let finished = run(&job(&turns, count, clients), &server);
        let all: usize = turns.iter().sum();
        let want = all.min(most.unwrap_or(usize::MAX));
        prop_assert_eq!((finished.records.len(), finished.unsent), (want, all - want));
        prop_assert!(server.peak.get() <= count);
        let mut first = 0;
        for turns in turns {
            let range = first..first + turns as u64;
            let came: Vec<u64> =
                order(&server).into_iter().filter(|id| range.contains(id)).collect();
            let sent = came.len() as u64;
            prop_assert_eq!(came, (first..first + sent).collect::<Vec<_>>());
            first = range.end;
        }
    }
}
