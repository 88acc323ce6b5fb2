//! What is looked after: a descriptor, and who wants to know of it.

use crate::Reactor;
use rustix::event::epoll::EventFlags;
use servebench_core::Stamp;
use std::cell::{Cell, RefCell};
use std::fmt::{self, Debug};
use std::io;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Reads of a source that never runs dry, after which others have their turns.
const READS: u32 = 16;

/// Reads a source whenever there is something to read.
pub trait Ready {
    /// Reads until nothing is left, or until [`Source::poll_readable`] is pending.
    ///
    /// Called from within the loop: it must not wait.
    fn ready(&self);

    /// Looks at the memory that [`ready`](Self::ready) will need. All those who are to be called in one
    /// turn are asked before the first is, so that memory is waited for once.
    fn near(&self) {}
}

/// What is known of one source.
#[derive(Default)]
pub(crate) struct State {
    /// Its number in the reactor.
    place: usize,
    /// Nothing had come until then, if it had been read empty.
    silent: Cell<Stamp>,
    readable: Cell<bool>,
    writable: Cell<bool>,
    /// The other side has ended, or it is broken: reading will not block any more.
    closed: Cell<bool>,
    /// Its reader is about to be called.
    pub(crate) queued: Cell<bool>,
    /// Reads since it was told last.
    reads: Cell<u32>,
    /// Who is called when there is something to read. Else the task that asked is woken.
    called: RefCell<Option<Rc<dyn Ready>>>,
    reader: RefCell<Option<Waker>>,
    writer: RefCell<Option<Waker>>,
}

impl Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, readable, writable, closed, .. } = self;
        f.debug_struct("State")
            .field("place", place)
            .field("readable", readable)
            .field("writable", writable)
            .field("closed", closed)
            .finish_non_exhaustive()
    }
}

impl State {
    pub(crate) fn new(place: usize) -> Self {
        Self { place, ..Self::default() }
    }

    /// Takes what a look found, and wakes who waits for it; true if its reader is to be called.
    pub(crate) fn tell(&self, flags: EventFlags, silent: Stamp) -> bool {
        let broken = EventFlags::HUP | EventFlags::ERR;
        let ended = EventFlags::RDHUP | broken;
        if flags.intersects(EventFlags::OUT | broken) && !self.writable.replace(true) {
            wake(&self.writer);
        }
        if !flags.intersects(EventFlags::IN | ended) {
            return false;
        }
        self.closed.set(self.closed.get() || flags.intersects(ended));
        if !self.readable.replace(true) {
            self.silent.set(silent);
        }
        self.reads.set(0);
        let is_called = self.called.borrow().is_some();
        if !is_called {
            wake(&self.reader);
        }
        is_called
    }

    /// The reader that is called, if that is wanted.
    pub(crate) fn called(&self) -> Option<Rc<dyn Ready>> {
        self.called.borrow().clone()
    }

    pub(crate) fn place(&self) -> usize {
        self.place
    }
}

/// Wakes who waits in this place.
fn wake(place: &RefCell<Option<Waker>>) {
    if let Some(waker) = &*place.borrow() {
        waker.wake_by_ref();
    }
}

/// Takes the place of who waited there before.
fn wait(place: &RefCell<Option<Waker>>, cx: &Context<'_>) {
    match &mut *place.borrow_mut() {
        Some(waker) => waker.clone_from(cx.waker()),
        nobody => *nobody = Some(cx.waker().clone()),
    }
}

/// Changes who is told of a source. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {
    state: Rc<State>,
}

impl Handle {
    /// From now on `ready` is called when there is something to read; tasks that ask are not woken.
    ///
    /// What had come before is not told again: read once after this.
    pub fn call(&self, ready: Rc<dyn Ready>) {
        self.state.called.replace(Some(ready));
        // A waker keeps its task's memory.
        self.state.reader.take();
    }

    /// From now on tasks that ask are woken.
    pub fn release(&self) {
        self.state.called.replace(None);
    }
}

/// A descriptor that a reactor looks after.
#[derive(Debug)]
pub struct Source<T: AsFd> {
    inner: T,
    state: Rc<State>,
    reactor: Rc<Reactor>,
}

impl<T: AsFd> Source<T> {
    /// Hands `inner`, which must not block, to `reactor`.
    pub fn new(inner: T, reactor: &Rc<Reactor>) -> io::Result<Self> {
        let state = reactor.add(&inner)?;
        Ok(Self { inner, state, reactor: Rc::clone(reactor) })
    }

    /// The descriptor.
    pub fn get_ref(&self) -> &T {
        &self.inner
    }

    /// Says who is told of it.
    pub fn handle(&self) -> Handle {
        Handle { state: Rc::clone(&self.state) }
    }

    /// What is read now came after this, if all that had come before was read: the reactor had looked
    /// then, and found nothing.
    pub fn silent_until(&self) -> Stamp {
        self.state.silent.get()
    }

    /// Ready when reading is worth a try. After sixteen tries in a row others have their turns first.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let state = &*self.state;
        if state.readable.get() || state.closed.get() {
            let reads = state.reads.get();
            if reads < READS {
                state.reads.set(reads + 1);
                return Poll::Ready(());
            }
            state.reads.set(0);
            if state.called.borrow().is_some() {
                self.reactor.call_again(state);
            } else {
                cx.waker().wake_by_ref();
            }
            return Poll::Pending;
        }
        if state.called.borrow().is_none() {
            wait(&state.reader, cx);
        }
        Poll::Pending
    }

    /// All that had come has been read.
    pub fn emptied(&self) {
        self.state.readable.set(false);
    }

    /// Ready when writing is worth a try.
    pub fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        if self.state.writable.get() {
            return Poll::Ready(());
        }
        wait(&self.state.writer, cx);
        Poll::Pending
    }

    /// No more could be written.
    pub fn filled(&self) {
        self.state.writable.set(false);
    }
}

impl<T: AsFd> Drop for Source<T> {
    fn drop(&mut self) {
        self.reactor.remove(&self.inner, self.state.place);
    }
}
