//! Bodies that are encoded while the run goes on, where all of them would be too much to hold.

use bytes::Bytes;
use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// How to encode the bodies of a job whose requests hold none.
///
/// The first of them are encoded before the clock starts, as many as the budget allows. A thread of
/// its own then stays that far ahead of the workers. A worker that catches up with it encodes for
/// itself, and the time that takes is part of its request's lateness.
#[derive(Clone)]
pub struct Encoder {
    encode: Arc<dyn Fn(usize) -> Bytes + Send + Sync>,
    budget: usize,
}

impl Encoder {
    /// `encode` makes the body of the request at a place in the plan: always the same one, however
    /// often and on whichever thread. `budget` is about how many bytes are held at most, apart from
    /// the requests under way.
    pub fn new(budget: usize, encode: impl Fn(usize) -> Bytes + Send + Sync + 'static) -> Self {
        Self { encode: Arc::new(encode), budget }
    }

    /// For a job whose requests are those of another one, `requests` of them, over and over.
    #[must_use]
    pub fn cycled(&self, requests: usize) -> Self {
        let encode = Arc::clone(&self.encode);
        Self::new(self.budget, move |index| encode(index % requests.max(1)))
    }

    /// For a job of the requests at these places of this one.
    #[must_use]
    pub fn at(&self, places: Vec<usize>) -> Self {
        let encode = Arc::clone(&self.encode);
        Self::new(self.budget, move |index| encode(places[index]))
    }

    /// The body of the request at `index`.
    pub fn body(&self, index: usize) -> Bytes {
        (self.encode)(index)
    }

    /// The same; `None` if that panics. Whoever needs the body will find out for itself.
    fn ahead(&self, index: usize) -> Option<Bytes> {
        catch_unwind(AssertUnwindSafe(|| self.body(index))).ok()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("budget", &self.budget).finish_non_exhaustive()
    }
}

/// The bodies that are ready, of one run.
#[derive(Debug)]
pub(crate) struct Window {
    encoder: Encoder,
    requests: usize,
    state: Mutex<State>,
    /// Told when there is room for more, and at the end.
    room: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: HashMap<usize, Bytes>,
    /// Bytes of those.
    held: usize,
    /// The next to be encoded.
    next: usize,
    /// What the thread is encoding, as long as somebody wants it.
    wanted: Option<usize>,
    closed: bool,
}

impl State {
    fn hold(&mut self, index: usize, body: Bytes) {
        self.held += body.len();
        self.ready.insert(index, body);
    }
}

impl Window {
    /// The window of a run of so many requests, filled.
    pub(crate) fn new(encoder: Encoder, requests: usize) -> Self {
        let mut state = State::default();
        while state.held < encoder.budget && state.next < requests {
            if let Some(body) = encoder.ahead(state.next) {
                state.hold(state.next, body);
            }
            state.next += 1;
        }
        Self { encoder, requests, state: Mutex::new(state), room: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The body of the request at `index`, which is asked for once.
    pub(crate) fn take(&self, index: usize) -> Bytes {
        let mut state = self.state();
        if let Some(body) = state.ready.remove(&index) {
            state.held -= body.len();
            let half = self.encoder.budget / 2;
            // Once for each half, not for each body.
            if state.held < half && state.held + body.len() >= half || state.ready.is_empty() {
                self.room.notify_one();
            }
            return body;
        }
        if state.wanted == Some(index) {
            state.wanted = None;
        }
        // What is behind it is not worth preparing any more.
        state.next = state.next.max(index + 1);
        drop(state);
        self.room.notify_one();
        self.encoder.body(index)
    }

    /// Encodes ahead until everything is encoded or the window is closed.
    pub(crate) fn keep_ahead(&self) {
        let mut state = self.state();
        loop {
            while state.held >= self.encoder.budget && !state.closed {
                state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let index = state.next;
            if state.closed || index >= self.requests {
                return;
            }
            state.next += 1;
            state.wanted = Some(index);
            drop(state);
            let body = self.encoder.ahead(index);
            state = self.state();
            if state.wanted.take() == Some(index)
                && let Some(body) = body
            {
                state.hold(index, body);
            }
        }
    }

    /// Ends [`keep_ahead`](Self::keep_ahead).
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.room.notify_one();
    }
}

/// Closes a window when dropped.
#[derive(Debug)]
pub(crate) struct Closing<'a>(pub(crate) &'a Window);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    fn body(index: usize) -> Bytes {
        vec![index as u8; 10 + index % 7].into()
    }

    #[test]
    fn the_window_is_filled_and_no_more() {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let encoder = Encoder::new(100, move |index| {
            count.fetch_add(1, SeqCst);
            body(index)
        });
        let window = Window::new(encoder, 1000);
        let held = window.state().held;
        assert!((100..120).contains(&held), "{held}");
        let ready = made.load(SeqCst);
        assert_eq!(window.state().ready.len(), ready);
        // Nobody keeps ahead: what is ready is handed out, the rest is made when asked for.
        for index in 0..20 {
            assert_eq!(window.take(index), body(index));
        }
        assert_eq!((made.load(SeqCst), window.state().held), (20.max(ready), 0));
    }

    #[test]
    fn everyone_gets_the_right_body_once_however_threads_race() {
        const REQUESTS: usize = 3000;
        let window = Window::new(Encoder::new(64, body), REQUESTS);
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let ahead = scope.spawn(|| window.keep_ahead());
            let takers = [(); 3].map(|()| {
                scope.spawn(|| {
                    loop {
                        let index = next.fetch_add(1, SeqCst);
                        if index >= REQUESTS {
                            return;
                        }
                        assert_eq!(window.take(index), body(index));
                        assert!(window.state().held < 64 + 17);
                    }
                })
            });
            assert!(takers.into_iter().all(|taker| taker.join().is_ok()));
            drop(Closing(&window));
            assert!(ahead.join().is_ok());
        });
    }

    #[test]
    fn closing_ends_a_thread_that_waits_for_room() {
        let window = Window::new(Encoder::new(1, body), 10);
        std::thread::scope(|scope| {
            scope.spawn(|| window.keep_ahead());
            drop(Closing(&window));
        });
        assert!(window.state().closed);
    }
}
