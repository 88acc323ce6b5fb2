//! Whether anything comes for the requests under way, and what happens when time is over.

use crate::progress::{Silence, UnderWay, Waiting};
use crate::{EndedBy, Endings, Progress, Stop};
use servebench_core::{Clock, Stamp};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

/// The requests that one worker has under way.
#[derive(Debug, Default)]
pub(crate) struct Desk {
    requests: RefCell<BTreeMap<u64, Rc<Entry>>>,
    /// How often something came for any of them, those that are over included.
    arrivals: Cell<u64>,
}

#[derive(Debug)]
struct Entry {
    sent: Stamp,
    arrivals: Cell<u32>,
    /// As many as there were at the last look...
    seen: Cell<u32>,
    /// ...which found this to be the last time that something came.
    last: Cell<Stamp>,
}

/// Lies on the desk until dropped.
struct OnDesk<'a> {
    desk: &'a Desk,
    id: u64,
}

impl Drop for OnDesk<'_> {
    fn drop(&mut self) {
        self.desk.requests.borrow_mut().remove(&self.id);
    }
}

impl Desk {
    /// Completes with `sending`, which is request `id`, sent `now`.
    ///
    /// What it waits for is bytes, a connection, a time limit: each of its turns after the first is a
    /// sign that something came, unless it only moved to another task. A backend need not wake it for
    /// every byte, but for the first, and for those that follow a few times a second.
    pub(crate) async fn attend<T>(
        &self,
        id: u64,
        now: Stamp,
        sending: impl Future<Output = T>,
    ) -> T {
        let entry = Rc::new(Entry {
            sent: now,
            arrivals: Cell::new(0),
            seen: Cell::new(0),
            last: Cell::new(now),
        });
        self.requests.borrow_mut().insert(id, Rc::clone(&entry));
        let _on_desk = OnDesk { desk: self, id };
        // That it is sent is progress, too.
        self.arrivals.set(self.arrivals.get() + 1);
        let mut sending = pin!(sending);
        let mut task: Option<Waker> = None;
        poll_fn(|cx| {
            if task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
                entry.arrivals.set(entry.arrivals.get().saturating_add(1));
                self.arrivals.set(self.arrivals.get() + 1);
            } else {
                task = Some(cx.waker().clone());
            }
            sending.as_mut().poll(cx)
        })
        .await
    }

    /// Looks at every request; what has come since the last look came `now`.
    fn look(&self, now: Stamp) {
        for entry in self.requests.borrow().values() {
            if entry.seen.replace(entry.arrivals.get()) != entry.arrivals.get() {
                entry.last.set(now);
            }
        }
    }

    fn waiting(&self, now: Stamp) -> Waiting {
        let requests = self.requests.borrow();
        let under_way = |(id, entry): (&u64, &Rc<Entry>)| UnderWay {
            id: *id,
            age: now.since(entry.sent),
            silent: now.since(entry.last.get()),
            has_begun: entry.arrivals.get() > 0,
        };
        let mut oldest: Vec<UnderWay> = requests.iter().map(under_way).collect();
        oldest.sort_by_key(|request| std::cmp::Reverse(request.age));
        oldest.truncate(Silence::NAMED);
        Waiting { under_way: requests.len(), oldest }
    }
}

/// Looks after one worker's run.
pub(crate) struct Overseer<C: Clock> {
    pub(crate) endings: Endings,
    pub(crate) worker: usize,
    pub(crate) desk: Rc<Desk>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) stop: Stop,
    pub(crate) clock: C,
}

impl<C: Clock> Overseer<C> {
    /// Ends the run when its time is over or nothing comes any more; until then, as long as it is polled,
    /// it only looks.
    pub(crate) async fn oversee(self) {
        let mut times =
            [self.endings.duration, self.endings.cut_off()].map(|at| at.map(Stamp::from));
        let mut seen = 0;
        loop {
            let now = self.clock.now();
            let look =
                self.endings.no_progress.map(|_| Stamp::from(now.offset() + self.endings.look()));
            let Some(next) = times.iter().copied().flatten().chain(look).min() else { return };
            self.clock.sleep_until(next).await;
            let now = self.clock.now();
            if times[0].take_if(|at| *at <= now).is_some() {
                self.stop.drain_for(EndedBy::Duration);
            }
            if times[1].take_if(|at| *at <= now).is_some() {
                self.stop.abort_for(EndedBy::Duration);
            }
            if self
                .endings
                .no_progress
                .is_some_and(|limit| self.silent_for(now, &mut seen) >= limit)
            {
                self.stop.abort_for(EndedBy::NoProgress);
            }
        }
    }

    /// How long nothing has come for any request of any worker, if this one has some under way.
    fn silent_for(&self, now: Stamp, seen: &mut u64) -> Duration {
        self.desk.look(now);
        let arrivals = self.desk.arrivals.get();
        if std::mem::replace(seen, arrivals) != arrivals {
            self.progress.note_arrival(now);
        }
        let idle = self.desk.requests.borrow().is_empty();
        let silent = if idle { Duration::ZERO } else { self.progress.silent_for(now) };
        let told = silent >= self.endings.patience();
        self.progress.note_waiting(self.worker, told.then(|| self.desk.waiting(now)));
        silent
    }
}

impl<C: Clock> Drop for Overseer<C> {
    fn drop(&mut self) {
        // Its last request is over since the last look.
        self.progress.note_arrival(self.clock.now());
        self.progress.note_waiting(self.worker, None);
    }
}
