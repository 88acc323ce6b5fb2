//! One worker: takes requests in plan order and keeps their records.

use crate::{Job, Progress, Stop};
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use servebench_core::{Backend, Clock, Failure, FailureKind, Record, Reply, Stamp};
use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::task::JoinSet;

/// What the workers of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) job: Job,
    pub(crate) next: Arc<AtomicUsize>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) stop: Stop,
}

impl Shared {
    pub(crate) fn new(job: Job, progress: Arc<Progress>, stop: Stop) -> Self {
        Self { job, next: Arc::default(), progress, stop }
    }

    /// The next request of the plan: one counter for all workers, so that order is plan order.
    fn take(&self) -> Option<usize> {
        if self.stop.is_ordered() {
            return None;
        }
        let index = self.next.fetch_add(1, Relaxed);
        (index < self.job.requests.len()).then_some(index)
    }
}

/// Runs this worker's share of the job. Must be polled inside a `LocalSet`.
///
/// With a cap, `slots` tasks each take the next request of the plan as soon as they are free, wait
/// until it is due and send it: the cap is exact and first come is first served. Without a cap one
/// pacer waits for each due time and starts a task for it.
pub(crate) async fn work<B: Backend, C: Clock>(
    shared: Shared,
    backend: Rc<B>,
    clock: C,
    slots: Option<usize>,
) -> Share {
    let share = Rc::new(RefCell::new(Share::default()));
    let worker = Rc::new(Worker { shared, backend, clock, share: Rc::clone(&share) });
    let mut tasks = JoinSet::new();
    if let Some(slots) = slots {
        for _ in 0..slots {
            let worker = Rc::clone(&worker);
            tasks.spawn_local(async move {
                let mut free_since = Stamp(0);
                while let Some(index) = worker.shared.take() {
                    if !worker.wait(index).await {
                        break;
                    }
                    worker.send(index, free_since).await;
                    free_since = worker.clock.now();
                }
            });
        }
    } else {
        while let Some(index) = worker.shared.take() {
            if !worker.wait(index).await {
                break;
            }
            let worker = Rc::clone(&worker);
            tasks.spawn_local(async move { worker.send(index, Stamp(0)).await });
            // Finished tasks are let go as the run goes on.
            while tasks.try_join_next().is_some() {}
        }
    }
    while tasks.join_next().await.is_some() {}
    share.take()
}

struct Worker<B, C> {
    shared: Shared,
    backend: Rc<B>,
    clock: C,
    share: Rc<RefCell<Share>>,
}

/// What one worker did.
#[derive(Debug, Default)]
pub(crate) struct Share {
    pub(crate) records: Vec<Record>,
    /// When its last response ended.
    pub(crate) end: Stamp,
}

impl<B: Backend, C: Clock> Worker<B, C> {
    /// Waits until request `index` is due; false when the run ends before.
    async fn wait(&self, index: usize) -> bool {
        let intended = self.shared.job.schedule[index];
        if self.clock.now() >= intended {
            return true;
        }
        let stop = self.shared.stop.drained();
        let due = self.clock.sleep_until(intended);
        matches!(select(pin!(due), pin!(stop)).await, Either::Left(_))
    }

    /// Sends request `index` through a slot that has been free since `free_since`.
    async fn send(&self, index: usize, free_since: Stamp) {
        let job = &self.shared.job;
        let request = &job.requests[index];
        let mut reply = Reply { keep_pieces: job.keep_pieces, ..Reply::default() };
        let intended = job.schedule[index];
        let dispatched = self.clock.now();
        // Without a free slot the wait is the cap's doing, not the timer's.
        let lateness = (free_since <= intended).then(|| dispatched.since(intended));
        self.shared.progress.send();
        let sending = AssertUnwindSafe(self.backend.send(request, &mut reply)).catch_unwind();
        let outcome = match select(pin!(sending), pin!(self.shared.stop.aborted())).await {
            Either::Left((Ok(()), _)) => None,
            Either::Left((Err(panic), _)) => {
                let words = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied())
                    .unwrap_or("panic");
                Some(Failure::new(FailureKind::Client, words))
            }
            Either::Right(_) => {
                Some(Failure::new(FailureKind::Cancelled, "the run was interrupted"))
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
        let mut share = self.share.borrow_mut();
        share.end = share.end.max(end.unwrap_or_else(|| self.clock.now()));
        share.records.push(Record {
            id: request.id,
            intended,
            dispatched,
            lateness,
            prompt_len: request.prompt_len,
            output_len: request.output_len,
            reply,
        });
    }
}
