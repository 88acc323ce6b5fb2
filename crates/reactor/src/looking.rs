//! The loop.

use crate::source::State;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::time::Timespec;
use servebench_core::Stamp;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::task::Poll;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Most sources that one look tells of.
const FOUND: usize = 1024;

/// Most readers that are called before other tasks have their turns: at some 5 µs each as many as a
/// request that is due may be late.
const TURN: usize = 16;

const NO_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

thread_local! {
    static CURRENT: RefCell<Option<Rc<Reactor>>> = const { RefCell::new(None) };
}

/// Looks for input on many sources at once. Belongs to one thread.
#[derive(Debug)]
pub struct Reactor {
    epoll: OwnedFd,
    places: RefCell<Places>,
    /// Sources whose readers are about to be called, in the order in which they were found.
    queue: RefCell<VecDeque<Rc<State>>>,
    /// When it last looked and saw all there was.
    looked: Cell<Stamp>,
}

#[derive(Debug, Default)]
struct Places {
    states: Vec<Option<Rc<State>>>,
    free: Vec<usize>,
}

impl Reactor {
    /// A reactor that looks after nothing yet.
    pub fn new() -> io::Result<Rc<Self>> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        Ok(Rc::new(Self {
            epoll,
            places: RefCell::default(),
            queue: RefCell::default(),
            looked: Cell::default(),
        }))
    }

    /// The one that is driven on this thread, if there is one.
    pub fn current() -> Option<Rc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Makes this the thread's [`current`](Self::current) one, as long as what is returned is there: a task
    /// that looks and calls for ever, whenever there is something to be found. `now` reads the clock.
    ///
    /// Must be called, and polled, inside a tokio runtime with I/O.
    #[expect(
        deprecated,
        reason = "the unsafe constructor asks for a descriptor that stays the same; OwnedFd's does"
    )]
    pub fn drive<F: Fn() -> Stamp>(
        self: &Rc<Self>,
        now: F,
    ) -> io::Result<impl Future<Output = io::Result<()>> + use<F>> {
        let epoll = self.epoll.as_fd().try_clone_to_owned()?;
        let epoll = AsyncFd::with_interest(epoll, Interest::READABLE)?;
        let entered = Entered::new(self);
        Ok(async move {
            let Entered { reactor } = &entered;
            let mut events = Vec::with_capacity(FOUND);
            let mut turn = Vec::with_capacity(TURN);
            loop {
                let mut readable = epoll.readable().await?;
                // The last look of a busy time finds nothing: from then on all is known to be silent.
                while reactor.look(now(), &mut events)? > 0 || !reactor.queue.borrow().is_empty() {
                    reactor.call(&mut turn);
                    let_others().await;
                }
                readable.clear_ready();
            }
        })
    }

    /// Looks at `now`; returns how many sources had something to tell.
    pub(crate) fn look(&self, now: Stamp, events: &mut Vec<Event>) -> io::Result<usize> {
        events.clear();
        let found = match epoll::wait(&self.epoll, spare_capacity(events), Some(&NO_WAIT)) {
            Err(rustix::io::Errno::INTR) => return Ok(1),
            found => found?,
        };
        // What was not told at the last look that saw all was silent then.
        let silent = self.looked.get();
        if found < FOUND {
            self.looked.set(now);
        }
        let places = self.places.borrow();
        let mut queue = self.queue.borrow_mut();
        for event in events.iter() {
            let place = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
            let Some(Some(state)) = places.states.get(place) else { continue };
            if state.tell(event.flags, silent) && !state.queued.replace(true) {
                queue.push_back(Rc::clone(state));
            }
        }
        Ok(found)
    }

    /// Calls the readers whose turn it is. `turn` is room for them.
    pub(crate) fn call(&self, turn: &mut Vec<(Rc<State>, Rc<dyn crate::Ready>)>) {
        {
            let mut queue = self.queue.borrow_mut();
            let due = queue.len().min(TURN);
            turn.extend(queue.drain(..due).filter_map(|state| {
                state.queued.set(false);
                let ready = state.called()?;
                Some((state, ready))
            }));
        }
        for (_, ready) in turn.iter() {
            ready.near();
        }
        for (_, ready) in turn.drain(..) {
            ready.ready();
        }
    }

    /// A reader is called once more, after all others.
    pub(crate) fn call_again(&self, state: &State) {
        if let Some(Some(state)) = self.places.borrow().states.get(state.place())
            && !state.queued.replace(true)
        {
            self.queue.borrow_mut().push_back(Rc::clone(state));
        }
    }

    pub(crate) fn add(&self, source: &impl AsFd) -> io::Result<Rc<State>> {
        let mut places = self.places.borrow_mut();
        let place = places.free.last().copied().unwrap_or(places.states.len());
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, source, EventData::new_u64(place as u64), flags)?;
        let state = Rc::new(State::new(place));
        if places.free.pop().is_some() {
            places.states[place] = Some(Rc::clone(&state));
        } else {
            places.states.push(Some(Rc::clone(&state)));
        }
        Ok(state)
    }

    pub(crate) fn remove(&self, source: &impl AsFd, place: usize) {
        // Fails only for a descriptor that is gone already, and tells of nothing any more.
        let _ = epoll::delete(&self.epoll, source);
        let mut places = self.places.borrow_mut();
        places.states[place] = None;
        places.free.push(place);
    }
}

/// The thread's reactor, until this is dropped.
struct Entered {
    reactor: Rc<Reactor>,
}

impl Entered {
    fn new(reactor: &Rc<Reactor>) -> Self {
        CURRENT.set(Some(Rc::clone(reactor)));
        Self { reactor: Rc::clone(reactor) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        // At the end of a thread there may be nothing left to forget.
        drop(CURRENT.try_with(RefCell::take));
    }
}

/// Other tasks that are ready have their turns.
async fn let_others() {
    let mut had_turns = false;
    poll_fn(|cx| {
        if had_turns {
            return Poll::Ready(());
        }
        had_turns = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
