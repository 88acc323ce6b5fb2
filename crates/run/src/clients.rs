//! Clients that have several conversations under way, and send one request at a time.

use crate::Stop;
use crate::worker::{Shared, Worker};
use servebench_core::random::{NumpyLegacy, PythonRandom};
use servebench_core::{Backend, Clock, Failure, Request, Session, Stamp, unless};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// How much an attempt after a failed one waits, at most and at least, around its doubled second.
const JITTER: f64 = 0.1;

/// What each place under the cap does, when it is a client that goes round its conversations.
///
/// A client sends a request, reads its reply to the end, pauses, and goes on with another of its
/// conversations. It begins conversations, in plan order, as soon as it has room for them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clients {
    /// Conversations that one client has under way at most; 0 counts as 1.
    pub held: usize,
    /// Which of them goes on next.
    pub choice: Choice,
    /// Requests per second that each client aims at: its pauses are drawn exponentially, with the mean
    /// that the last request left of `1 / rate`. 0: no pauses.
    pub rate: f64,
    /// How often a failed request is sent again, after 1, 2, 4, … seconds, give or take a tenth.
    pub retries: u32,
    /// Most requests of all clients together, those that are sent again counted once.
    pub max_requests: Option<usize>,
    /// Whether the run ends when a client has room for a conversation and there is none left.
    pub early_stop: bool,
    /// Seed of the draws: each client adds its number, from 1, to it.
    pub seed: u32,
}

/// Which of its conversations a client goes on with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The newest first, then by turns.
    #[default]
    RoundRobin,
    /// Any of them.
    Random,
}

/// What the clients of all workers share.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    clients: AtomicUsize,
    requests: AtomicUsize,
    over: AtomicBool,
}

impl Tally {
    /// Takes one request of those that may be sent.
    fn spend(&self, most: Option<usize>) -> bool {
        let may = most.is_none_or(|most| self.requests.fetch_add(1, Relaxed) < most);
        if !may {
            self.over.store(true, Relaxed);
        }
        may
    }
}

/// A conversation under way.
struct Held {
    session: Option<Session>,
    next: Request,
}

impl Held {
    fn new(first: Request) -> Self {
        let session =
            first.conversation.as_ref().map(|conversation| Session::start(conversation).0);
        Self { session, next: first }
    }

    /// Goes on to the next turn; false after the last one.
    fn advance(&mut self, reply: &str) -> bool {
        let Some(session) = &mut self.session else { return false };
        let Some(body) = session.next(reply) else { return false };
        self.next.id += 1;
        self.next.body = body;
        self.next.output_len = session.output_len().unwrap_or(self.next.output_len);
        true
    }
}

/// When a client's next request is due, and what it follows.
#[derive(Default)]
struct Next {
    due: Stamp,
    /// The end of the reply before it, where the client goes straight on.
    before: Option<Stamp>,
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// One client, until nothing is left to be sent.
    pub(crate) async fn client(&self, clients: &Clients) {
        let Shared { tally, stop, .. } = &self.shared;
        let number = tally.clients.fetch_add(1, Relaxed);
        let seed = clients.seed.wrapping_add(number as u32).wrapping_add(1);
        let (mut python, mut numpy) = (PythonRandom::new(seed), NumpyLegacy::new(seed));
        let mut held: Vec<Held> = Vec::new();
        let mut next = Next::default();
        loop {
            while held.len() < clients.held.max(1) {
                let Some(index) = self.shared.take() else {
                    if clients.early_stop {
                        tally.over.store(true, Relaxed);
                    }
                    break;
                };
                let job = &self.shared.job;
                match self.shared.request(index) {
                    Ok(first) => {
                        self.share.borrow_mut().clients.push((first.id, number));
                        held.push(Held::new(first.into_owned()));
                    }
                    Err(failure) => {
                        self.fail(&job.requests[index], job.schedule[index], failure);
                    }
                }
            }
            if held.is_empty() || is_over(tally, stop) || !tally.spend(clients.max_requests) {
                return;
            }
            let place = match clients.choice {
                Choice::RoundRobin => held.len() - 1,
                Choice::Random => python.choice_index(held.len() as u32) as usize,
            };
            let began = self.clock.now();
            let conversation = &mut held[place];
            let (end, reply) =
                self.send_again(&conversation.next, &next, clients, &mut numpy).await;
            // A conversation whose turn failed is over: what follows would rest on nothing.
            if !reply.is_some_and(|reply| conversation.advance(&reply)) {
                drop(held.remove(place));
            } else if clients.choice == Choice::RoundRobin {
                held.rotate_right(1);
            }
            next = Next { due: end, before: Some(end) };
            let left = 1.0 / clients.rate - end.secs_since(began);
            if clients.rate > 0.0 && left > 0.0 {
                let due = end.offset() + Duration::from_secs_f64(numpy.exponential(left));
                next = Next { due: due.into(), before: None };
                if is_over(tally, stop) || !self.sleep(next.due).await {
                    return;
                }
            }
        }
    }

    /// Sends a request until it succeeds or has failed often enough. Says when its last response ended,
    /// and what the reply was.
    async fn send_again(
        &self,
        request: &Request,
        next: &Next,
        clients: &Clients,
        numpy: &mut NumpyLegacy,
    ) -> (Stamp, Option<String>) {
        let mut due = next.due;
        // A request follows straight from another one, or waits for its time.
        let (mut on_time, mut before) = (next.before.is_none(), next.before);
        let mut attempt = 0;
        loop {
            let end = self.send_one(request, due, on_time, before).await;
            let outcome = self.outcome(request.id);
            let failure = match outcome {
                Ok(reply) => return (end, Some(reply)),
                Err(failure) => failure,
            };
            if attempt == clients.retries || self.shared.stop.is_ordered() {
                return (end, None);
            }
            let jitter = 1.0 + numpy.uniform(-JITTER, JITTER);
            let wait = f64::from(attempt.min(30)).exp2() * jitter;
            due = Stamp::from(end.offset() + Duration::from_secs_f64(wait));
            (on_time, before) = (true, None);
            if !self.sleep(due).await {
                return (end, None);
            }
            self.forget(request.id, failure);
            attempt += 1;
        }
    }

    /// What came of the request that was sent last.
    fn outcome(&self, id: u64) -> Result<String, Failure> {
        let share = self.share.borrow();
        let record = share.records.iter().rev().find(|record| record.id == id);
        match record {
            Some(record) => match &record.reply.failure {
                None => Ok(record.reply.text.clone()),
                Some(failure) => Err(failure.clone()),
            },
            None => Ok(String::new()),
        }
    }

    /// Takes the record of a failed attempt away, since another one follows.
    fn forget(&self, id: u64, failure: Failure) {
        let mut share = self.share.borrow_mut();
        if let Some(at) = share.records.iter().rposition(|record| record.id == id) {
            share.records.swap_remove(at);
        }
        share.retried.push((id, failure));
    }

    /// Waits until `due`; false when the run is to end.
    async fn sleep(&self, due: Stamp) -> bool {
        let stop = &self.shared.stop;
        !stop.is_ordered() && unless(self.clock.sleep_until(due), stop.drained()).await.is_ok()
    }
}

fn is_over(tally: &Arc<Tally>, stop: &Stop) -> bool {
    tally.over.load(Relaxed) || stop.is_ordered()
}
