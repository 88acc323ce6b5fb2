//! One worker: takes requests in plan order and keeps their records.

use crate::bodies::Window;
use crate::clients::Tally;
use crate::oversight::{Desk, Overseer};
use crate::pacer::Pacer;
use crate::{EndedBy, Job, Progress, Stop};
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use servebench_core::{
    Backend, Clock, Failure, FailureKind, Record, Reply, Request, Session, Stamp, unless,
};
use std::any::Any;
use std::borrow::Cow;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinSet, yield_now};

/// What the workers of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) job: Job,
    /// Its bodies, where they are encoded as the run goes on.
    pub(crate) window: Option<Arc<Window>>,
    pub(crate) next: Arc<AtomicUsize>,
    /// The cap of a job whose requests wait for a place each. Waiters are served in turn.
    pub(crate) permits: Option<Arc<Semaphore>>,
    /// What clients share, where the places under the cap are clients.
    pub(crate) tally: Arc<Tally>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) stop: Stop,
}

impl Shared {
    pub(crate) fn new(job: Job, progress: Arc<Progress>, stop: Stop) -> Self {
        let cap = job.max_concurrency.filter(|_| !job.has_lanes());
        let permits = cap.map(|cap| Arc::new(Semaphore::new(cap.min(Semaphore::MAX_PERMITS))));
        let window = |encoder| Arc::new(Window::new(encoder, job.requests.len()));
        let window = job.encoder.clone().map(window);
        Self { job, window, next: Arc::default(), permits, tally: Arc::default(), progress, stop }
    }

    /// The request at `index`, with its body.
    pub(crate) fn request(&self, index: usize) -> Result<Cow<'_, Request>, Failure> {
        let request = &self.job.requests[index];
        let Some(window) = &self.window else { return Ok(Cow::Borrowed(request)) };
        let body = catch_unwind(AssertUnwindSafe(|| window.take(index)));
        let body = body.map_err(|panic| panicked(panic.as_ref()))?;
        Ok(Cow::Owned(Request { body, ..request.clone() }))
    }

    /// The next request of the plan: one counter for all workers, so that order is plan order.
    pub(crate) fn take(&self) -> Option<usize> {
        if self.stop.is_ordered() {
            return None;
        }
        let index = self.next.fetch_add(1, Relaxed);
        (index < self.job.requests.len()).then_some(index)
    }
}

/// Most requests that are sent without a look at what has come back.
const CROWD: usize = 16;

/// Runs this worker's share of the job. Must be polled where local tasks can be spawned.
///
/// When all requests are due at once and there is a cap, `slots` tasks each send the next request of
/// the plan as soon as they are free. Otherwise a pacer takes the next request, waits until it is
/// due, then for a permit if there is a cap, and starts it. Where conversations give their permits back
/// between turns, what is due waits for its permit beside the pacer, together with the next turns of
/// those under way. In any case the cap is exact over all workers, and first come is first served.
pub(crate) async fn work<B: Backend, C: Clock>(
    number: usize,
    shared: Shared,
    backend: Rc<B>,
    clock: C,
    pacer: Pacer,
    slots: Option<usize>,
) -> Share {
    // Room for all, of which only what is used becomes memory: records that outgrow their room are copied, a
    // long copy while requests are under way. The others' join the first worker's.
    let room = if number == 0 { shared.job.total() } else { 0 };
    let share = Share { records: Vec::with_capacity(room), ..Share::default() };
    let share = Rc::new(RefCell::new(share));
    let slots = slots.filter(|_| shared.job.has_lanes());
    let desk = Rc::<Desk>::default();
    let overseer = Overseer {
        endings: shared.job.endings,
        worker: number,
        desk: Rc::clone(&desk),
        progress: Arc::clone(&shared.progress),
        stop: shared.stop.clone(),
        clock: clock.clone(),
    };
    // Ends with this worker's share.
    let mut beside = JoinSet::new();
    beside.spawn_local(overseer.oversee());
    let worker = Rc::new(Worker { shared, backend, clock, desk, share: Rc::clone(&share) });
    let mut tasks = JoinSet::new();
    if let (Some(slots), Some(clients)) = (slots, worker.shared.job.clients) {
        for _ in 0..slots {
            let worker = Rc::clone(&worker);
            tasks.spawn_local(async move { worker.client(&clients).await });
        }
    } else if let Some(slots) = slots {
        for _ in 0..slots {
            let worker = Rc::clone(&worker);
            tasks.spawn_local(async move {
                let mut before = None;
                while let Some(index) = worker.shared.take() {
                    before = Some(worker.send(index, None, before.is_none(), before).await);
                }
            });
        }
    } else {
        // Until when the pacer stood at the cap.
        let mut free = Stamp(0);
        let mut crowd = 0;
        while let Some(index) = worker.shared.take() {
            let due = worker.shared.job.schedule[index];
            let beside = worker.shared.job.release_slot;
            let Some(turn) = worker.turn(&pacer, due, beside).await else { break };
            let on_time = free <= due;
            if turn.as_ref().is_some_and(|turn| turn.waited) {
                free = worker.clock.now();
            }
            let worker = Rc::clone(&worker);
            let mut sending = Box::pin(async move {
                let turn = match turn {
                    Some(turn) => Some(turn),
                    None => worker.unless_drained(worker.permit()).await,
                };
                if let Some(Turn { permit, waited }) = turn {
                    worker.send(index, permit, on_time && !waited, None).await;
                }
            });
            // It leaves now, ahead of the tasks that are ready, and becomes a task for what follows.
            if poll_fn(|cx| Poll::Ready(sending.as_mut().poll(cx))).await.is_pending() {
                tasks.spawn_local(sending);
            }
            // Replies are read also while there is a crowd to be sent.
            crowd = (crowd + 1) % CROWD;
            if crowd == 0 {
                yield_now().await;
            }
            // Finished tasks are let go as the run goes on.
            while tasks.try_join_next().is_some() {}
        }
    }
    while tasks.join_next().await.is_some() {}
    share.take()
}

pub(crate) struct Worker<B, C> {
    pub(crate) shared: Shared,
    backend: Rc<B>,
    pub(crate) clock: C,
    desk: Rc<Desk>,
    pub(crate) share: Rc<RefCell<Share>>,
}

/// What one worker did.
#[derive(Debug, Default)]
pub(crate) struct Share {
    pub(crate) records: Vec<Record>,
    /// When its last response ended.
    pub(crate) end: Stamp,
    /// Failed attempts that were followed by another one.
    pub(crate) retried: Vec<(u64, Failure)>,
    /// Conversations that clients began, by the id of the first request, and the client's number.
    pub(crate) clients: Vec<(u64, usize)>,
}

/// A request's turn to be sent.
struct Turn {
    /// Its part of the cap, if there is one.
    permit: Option<OwnedSemaphorePermit>,
    /// Whether it had to wait for that.
    waited: bool,
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Waits until `due`, then for a permit unless that is to be waited for `beside`; `None` when the
    /// run ends before.
    async fn turn(&self, pacer: &Pacer, due: Stamp, beside: bool) -> Option<Option<Turn>> {
        let turn = async {
            pacer.wait(&self.clock, due).await;
            if beside { Some(None) } else { self.permit().await.map(Some) }
        };
        self.unless_drained(turn).await
    }

    /// Waits for a permit, if there is a cap.
    async fn permit(&self) -> Option<Turn> {
        let Some(permits) = &self.shared.permits else {
            return Some(Turn { permit: None, waited: false });
        };
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            return Some(Turn { permit: Some(permit), waited: false });
        }
        let permit = Arc::clone(permits).acquire_owned().await.ok()?;
        Some(Turn { permit: Some(permit), waited: true })
    }

    /// What `wait` gives; `None` when the run ends before.
    async fn unless_drained<T>(&self, wait: impl Future<Output = Option<T>>) -> Option<T> {
        match select(pin!(wait), pin!(self.shared.stop.drained())).await {
            Either::Left((turn, _)) => turn,
            Either::Right(_) => None,
        }
    }

    /// Sends request `index`, then what follows from it, and returns when the last response ended.
    ///
    /// `permit` is held as long as the job says. `on_time` if nothing but its due time was waited for;
    /// `before` is when the response ended that had to be over first.
    async fn send(
        &self,
        index: usize,
        mut permit: Option<OwnedSemaphorePermit>,
        on_time: bool,
        before: Option<Stamp>,
    ) -> Stamp {
        let job = &self.shared.job;
        let first = match self.shared.request(index) {
            Ok(first) => first,
            Err(failure) => return self.fail(&job.requests[index], job.schedule[index], failure),
        };
        let mut end = self.send_one(&first, job.schedule[index], on_time, before).await;
        let Some(conversation) = &first.conversation else { return end };
        let (mut session, _) = Session::start(conversation);
        let mut id = first.id;
        loop {
            // Other tasks add their records while this one waits: the reply is taken before that.
            let reply = self.last_reply();
            if job.release_slot {
                drop(permit.take());
            }
            let Some(body) = session.next(&reply) else { break };
            let due = Stamp::from(end.offset() + job.think);
            if !self.pause(due).await {
                break;
            }
            let mut waited = false;
            if job.release_slot {
                let Some(turn) = self.unless_drained(self.permit()).await else { break };
                (permit, waited) = (turn.permit, turn.waited);
            }
            id += 1;
            let headers = first.headers.clone();
            let turn =
                Request { id, body, headers, output_len: first.output_len, ..Request::default() };
            let before = (job.think.is_zero() && !waited).then_some(end);
            end = self.send_one(&turn, due, !waited, before).await;
        }
        end
    }

    /// Waits until the next turn of a conversation is `due`; false when the run is to end.
    async fn pause(&self, due: Stamp) -> bool {
        let stop = &self.shared.stop;
        !stop.is_ordered()
            && (self.shared.job.think.is_zero()
                || unless(self.clock.sleep_until(due), stop.drained()).await.is_ok())
    }

    /// Notes that a request failed before it could be sent, and returns when that was.
    pub(crate) fn fail(&self, request: &Request, intended: Stamp, failure: Failure) -> Stamp {
        let now = self.clock.now();
        self.shared.progress.send();
        self.shared.progress.finish(true);
        let record = Record {
            id: request.id,
            intended,
            dispatched: now,
            prompt_len: request.prompt_len,
            output_len: request.output_len,
            reply: Reply { failure: Some(failure), ..Reply::default() },
            ..Record::default()
        };
        self.keep(record, now);
        now
    }

    /// Keeps the record of a request that was over at `end`.
    fn keep(&self, record: Record, end: Stamp) {
        if let Some(witness) = &self.shared.job.witness {
            witness.see(&record, end);
        }
        let mut share = self.share.borrow_mut();
        share.end = share.end.max(end);
        share.records.push(record);
    }

    /// What the assistant said in the reply noted last; nothing if it failed.
    fn last_reply(&self) -> String {
        let share = self.share.borrow();
        let last = share.records.last().filter(|record| record.is_success());
        last.map(|record| record.reply.text.clone()).unwrap_or_default()
    }

    /// Sends one request that was to be sent at `intended`, and returns when its response ended.
    pub(crate) async fn send_one(
        &self,
        request: &Request,
        intended: Stamp,
        on_time: bool,
        before: Option<Stamp>,
    ) -> Stamp {
        let keep_pieces = self.shared.job.keep_pieces;
        let mut reply = Reply { keep_pieces, ..Reply::default() };
        let dispatched = self.clock.now();
        // Without a free slot the wait is the cap's doing, not the client's.
        let lateness = on_time.then(|| dispatched.since(intended));
        self.shared.progress.send();
        let outcome = {
            let sending =
                pin!(AssertUnwindSafe(self.backend.send(request, &mut reply)).catch_unwind());
            let attended = pin!(self.desk.attend(request.id, dispatched, sending));
            let stop = &self.shared.stop;
            match unless(attended, pin!(stop.aborted())).await {
                Ok(Ok(())) => None,
                Ok(Err(panic)) => Some(panicked(panic.as_ref())),
                Err(()) => Some(stop.ordered_by().unwrap_or(EndedBy::Interrupt).cancelled()),
            }
        };
        if let Some(failure) = outcome {
            reply.fail(failure);
        }
        self.shared.progress.finish(reply.failure.is_some());
        // The end of a response is what came last of it; what the backend tidied up after that is
        // not part of it.
        let end = match reply.failure {
            None => reply.last_line.max(reply.last_token()),
            Some(_) => None,
        };
        let end = end.unwrap_or_else(|| self.clock.now());
        reply.chunks.shrink();
        let turnaround = before.zip(reply.sent).map(|(before, sent)| sent.since(before));
        let record = Record {
            id: request.id,
            intended,
            dispatched,
            lateness,
            turnaround,
            prompt_len: request.prompt_len,
            output_len: request.output_len,
            reply,
        };
        self.keep(record, end);
        end
    }
}

/// A request that panicked has failed.
fn panicked(panic: &(dyn Any + Send)) -> Failure {
    let words = panic.downcast_ref::<String>().map(String::as_str);
    let words = words.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("panic");
    Failure::new(FailureKind::Client, words)
}
