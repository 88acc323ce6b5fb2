//! Waiting for one thing, unless another comes first.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Release,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// How often an alarm was woken in this process. That is seldom, so that one place, which stays in the
/// cache, tells nearly always that it was none's turn: a thousand streams' own flags do not.
static RINGS: AtomicU64 = AtomicU64::new(0);

/// Completes with what `main` gives, or with the error that `alarm` gives if that comes first.
///
/// As racing the two, but `alarm` is only polled when it was woken itself: `main` is woken for
/// every token, `alarm` (a time limit, an interrupt) once in a thousand requests.
///
/// Give it pinned futures ([`pin!`](std::pin::pin)) where size matters: a future that is handed over
/// takes its room twice.
pub async fn unless<M: Future, A: Future>(main: M, alarm: A) -> Result<M::Output, A::Output> {
    let (mut main, mut alarm) = (pin!(main), pin!(alarm));
    let bell = Arc::new(Bell { rung: AtomicBool::new(true), task: Mutex::default() });
    let waker = Waker::from(Arc::clone(&bell));
    let mut task: Option<Waker> = None;
    let mut seen = None;
    poll_fn(move |cx| {
        if let Poll::Ready(output) = main.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        if task.as_ref().is_none_or(|task| !task.will_wake(cx.waker())) {
            task = Some(cx.waker().clone());
            bell.wakes(cx.waker());
        }
        let rings = Some(RINGS.load(Acquire));
        if seen == rings {
            return Poll::Pending;
        }
        seen = rings;
        // Rung while it is polled, it is polled again.
        while bell.was_rung() {
            if let Poll::Ready(output) = alarm.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(Err(output));
            }
        }
        Poll::Pending
    })
    .await
}

/// Remembers that it was rung, and wakes a task.
#[derive(Debug)]
struct Bell {
    rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Bell {
    fn wakes(&self, task: &Waker) {
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task.clone());
    }

    fn was_rung(&self) -> bool {
        self.rung.load(Acquire) && self.rung.swap(false, AcqRel)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.store(true, Release);
        RINGS.fetch_add(1, AcqRel);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::pin::Pin;

    /// Counts its wakes.
    #[derive(Default)]
    struct Count(std::sync::atomic::AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, AcqRel);
        }
    }

    /// A future that is ready when told so, and what was done to it.
    #[derive(Default)]
    struct Told {
        ready: Cell<bool>,
        polls: Cell<usize>,
        waker: RefCell<Option<Waker>>,
    }

    impl Told {
        fn wait(&self) -> impl Future<Output = ()> + '_ {
            poll_fn(|cx| {
                self.polls.set(self.polls.get() + 1);
                *self.waker.borrow_mut() = Some(cx.waker().clone());
                if self.ready.get() { Poll::Ready(()) } else { Poll::Pending }
            })
        }

        fn wake(&self) {
            if let Some(waker) = &*self.waker.borrow() {
                waker.wake_by_ref();
            }
        }
    }

    fn with_two(test: impl FnOnce(&Told, &Told, &Count, &mut dyn FnMut() -> Poll<Result<(), ()>>)) {
        let (main, alarm, count) = (Told::default(), Told::default(), Arc::new(Count::default()));
        let waker = Waker::from(Arc::clone(&count));
        let mut both = Box::pin(unless(main.wait(), alarm.wait()));
        let mut poll = || Pin::new(&mut both).poll(&mut Context::from_waker(&waker));
        test(&main, &alarm, &count, &mut poll);
    }

    #[test]
    fn the_alarm_is_polled_when_it_was_woken_and_only_then() {
        with_two(|main, alarm, count, poll| {
            for _ in 0..5 {
                assert_eq!(poll(), Poll::Pending);
            }
            assert_eq!((main.polls.get(), alarm.polls.get()), (5, 1));
            alarm.wake();
            assert_eq!(count.0.load(Acquire), 1, "its wake reaches the task");
            assert_eq!(poll(), Poll::Pending);
            assert_eq!((main.polls.get(), alarm.polls.get()), (6, 2));
            alarm.ready.set(true);
            assert_eq!(poll(), Poll::Pending, "nobody was told");
            alarm.wake();
            assert_eq!(poll(), Poll::Ready(Err(())));
        });
    }

    #[test]
    fn what_is_ready_first_counts_and_main_before_the_alarm() {
        with_two(|main, alarm, _, poll| {
            main.ready.set(true);
            alarm.ready.set(true);
            assert_eq!(poll(), Poll::Ready(Ok(())));
            assert_eq!(alarm.polls.get(), 0);
        });
        with_two(|_, alarm, _, poll| {
            alarm.ready.set(true);
            assert_eq!(poll(), Poll::Ready(Err(())));
        });
    }

    #[test]
    fn a_new_waker_is_the_one_that_is_woken() {
        let (main, alarm) = (Told::default(), Told::default());
        let (old, new) = (Arc::new(Count::default()), Arc::new(Count::default()));
        let mut both = Box::pin(unless(main.wait(), alarm.wait()));
        for count in [&old, &new] {
            let waker = Waker::from(Arc::clone(count));
            assert!(both.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        }
        alarm.wake();
        assert_eq!((old.0.load(Acquire), new.0.load(Acquire)), (0, 1));
    }
}
