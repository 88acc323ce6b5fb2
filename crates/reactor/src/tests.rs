//! The loop on socket pairs, driven by hand: each look and call is one step of a test.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use crate::{Reactor, Ready, Source};
use proptest::prelude::*;
use servebench_core::Stamp;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, Waker};
use tokio::task::{LocalSet, spawn_local, yield_now};

fn pair(reactor: &Rc<Reactor>) -> (Source<UnixStream>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    (Source::new(ours, reactor).unwrap(), theirs)
}

/// Looks at `now`, then calls all whose turn it is.
fn step(reactor: &Reactor, now: u64) -> usize {
    let found = reactor.look(Stamp(now), &mut Vec::with_capacity(1024)).unwrap();
    reactor.call(&mut Vec::new());
    found
}

/// Reads all there is, a few bytes at a time, or until others are to have their turns.
struct Counting {
    source: Source<UnixStream>,
    size: usize,
    taken: RefCell<Vec<u8>>,
    /// For each read: no byte of it came before.
    silent: RefCell<Vec<Stamp>>,
    calls: Cell<u32>,
    near: Cell<u32>,
    ended: Cell<bool>,
}

impl Counting {
    fn new(source: Source<UnixStream>, size: usize) -> Rc<Self> {
        let this = Rc::new(Self {
            source,
            size,
            taken: RefCell::default(),
            silent: RefCell::default(),
            calls: Cell::default(),
            near: Cell::default(),
            ended: Cell::default(),
        });
        this.source.handle().call(Rc::<Self>::clone(&this));
        this
    }
}

impl Ready for Counting {
    fn ready(&self) {
        self.calls.set(self.calls.get() + 1);
        let mut room = vec![0; self.size];
        while self.source.poll_readable(&mut Context::from_waker(Waker::noop())).is_ready() {
            match self.source.get_ref().read(&mut room) {
                Ok(0) => return self.ended.set(true),
                Ok(count) => {
                    if count < room.len() {
                        self.source.emptied();
                    }
                    self.silent.borrow_mut().push(self.source.silent_until());
                    self.taken.borrow_mut().extend(&room[..count]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.source.emptied(),
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn near(&self) {
        self.near.set(self.near.get() + 1);
    }
}

#[test]
fn who_is_called_is_asked_before() {
    let reactor = Reactor::new().unwrap();
    let (source, mut theirs) = pair(&reactor);
    let reader = Counting::new(source, 64);
    step(&reactor, 1); // can be written to
    assert_eq!((reader.calls.get(), reader.near.get()), (0, 0));
    theirs.write_all(b"abc").unwrap();
    assert_eq!(step(&reactor, 2), 1);
    assert_eq!((reader.calls.get(), reader.near.get()), (1, 1));
    assert_eq!(*reader.taken.borrow(), b"abc");
    assert_eq!(step(&reactor, 3), 0);
    assert_eq!(reader.calls.get(), 1);
    drop(theirs);
    step(&reactor, 4);
    assert!(reader.ended.get());
    reader.source.handle().release();
}

#[test]
fn what_is_read_came_after_the_look_before() {
    let reactor = Reactor::new().unwrap();
    let (source, mut theirs) = pair(&reactor);
    let reader = Counting::new(source, 64);
    for now in [10, 20, 30] {
        step(&reactor, now);
    }
    theirs.write_all(b"a").unwrap();
    step(&reactor, 40);
    step(&reactor, 50);
    theirs.write_all(b"b").unwrap();
    theirs.write_all(b"c").unwrap();
    step(&reactor, 60);
    assert_eq!(*reader.silent.borrow(), [Stamp(30), Stamp(50)]);
    reader.source.handle().release();
}

#[test]
fn a_source_that_never_runs_dry_lets_others_have_their_turns() {
    let reactor = Reactor::new().unwrap();
    let ((endless, mut flood), (source, mut drop_by_drop)) = (pair(&reactor), pair(&reactor));
    let (endless, other) = (Counting::new(endless, 1), Counting::new(source, 64));
    step(&reactor, 1);
    flood.write_all(&[7; 100]).unwrap();
    drop_by_drop.write_all(b"x").unwrap();
    step(&reactor, 2);
    assert!(endless.taken.borrow().len() < 100, "it was read to the end in one turn");
    assert_eq!(*other.taken.borrow(), b"x");
    // Nothing new comes, yet it is called until all is read.
    for now in 3..20 {
        step(&reactor, now);
    }
    assert_eq!(endless.taken.borrow().len(), 100);
    for reader in [endless, other] {
        reader.source.handle().release();
    }
}

#[test]
fn a_place_serves_again_and_nothing_is_kept() {
    let reactor = Reactor::new().unwrap();
    let forgotten: Vec<Weak<Counting>> = (0..3)
        .map(|_| {
            let (source, mut theirs) = pair(&reactor);
            let reader = Counting::new(source, 64);
            theirs.write_all(b"abc").unwrap();
            step(&reactor, 1);
            assert_eq!(*reader.taken.borrow(), b"abc");
            reader.source.handle().release();
            Rc::downgrade(&reader)
        })
        .collect();
    assert!(forgotten.iter().all(|reader| reader.upgrade().is_none()));
    let (source, mut theirs) = pair(&reactor);
    theirs.write_all(b"abc").unwrap();
    drop(source);
    assert_eq!(step(&reactor, 2), 0, "what is gone is not looked after");
}

#[tokio::test]
async fn tasks_are_woken_and_the_thread_knows_its_reactor() {
    assert!(Reactor::current().is_none());
    let tasks = LocalSet::new();
    let clock = Rc::new(Cell::new(0));
    let now = Rc::clone(&clock);
    let reactor = Reactor::new().unwrap();
    let driver = reactor.drive(move || Stamp(now.replace(now.get() + 1))).unwrap();
    assert!(Rc::ptr_eq(&Reactor::current().unwrap(), &reactor));
    let driver = tasks.spawn_local(driver);
    tasks
        .run_until(async {
            let (source, mut theirs) = pair(&reactor);
            theirs.set_nonblocking(true).unwrap();
            let echo = spawn_local(async move {
                let mut taken = Vec::new();
                let mut room = [0; 5];
                while taken.len() < 100_000 {
                    poll_fn(|cx| source.poll_readable(cx)).await;
                    match source.get_ref().read(&mut room) {
                        Ok(count) => taken.extend(&room[..count]),
                        Err(_) => source.emptied(),
                    }
                }
                let mut rest = &taken[..];
                while !rest.is_empty() {
                    poll_fn(|cx| source.poll_writable(cx)).await;
                    match source.get_ref().write(rest) {
                        Ok(count) => rest = &rest[count..],
                        Err(_) => source.filled(),
                    }
                }
            });
            let sent: Vec<u8> = (0..100_000u32).map(|n| n.to_le_bytes()[0]).collect();
            let (mut rest, mut back) = (&sent[..], Vec::<u8>::new());
            while back.len() < sent.len() {
                rest = &rest[theirs.write(rest).unwrap_or(0)..];
                let mut room = [0; 4096];
                let count = theirs.read(&mut room).unwrap_or(0);
                back.extend(&room[..count]);
                yield_now().await;
            }
            assert_eq!(back, sent);
            echo.await.unwrap();
            driver.abort();
            assert!(driver.await.unwrap_err().is_cancelled());
        })
        .await;
    assert!(clock.get() > 0);
    assert!(Reactor::current().is_none());
}

#[test]
fn a_broken_source_does_not_wait_for_ever() {
    let reactor = Reactor::new().unwrap();
    let (source, theirs) = pair(&reactor);
    let mut cx = Context::from_waker(Waker::noop());
    assert!(source.poll_readable(&mut cx).is_pending());
    drop(theirs);
    step(&reactor, 1);
    source.emptied();
    assert_eq!(source.poll_readable(&mut cx), Poll::Ready(()), "its end can always be read");
    assert_eq!(source.poll_writable(&mut cx), Poll::Ready(()));
}

proptest! {
    /// However writes, looks and calls are mixed: every byte is read, in order, and none came before the
    /// time until which its source is said to have been silent.
    #[test]
    fn nothing_is_lost_whatever_comes_when(
        sizes in prop::collection::vec(1..40usize, 3),
        steps in prop::collection::vec((0..4usize, 1..50usize), 1..200),
    ) {
        let reactor = Reactor::new().unwrap();
        let mut peers = Vec::new();
        let readers: Vec<_> = sizes
            .into_iter()
            .map(|size| {
                let (source, theirs) = pair(&reactor);
                peers.push((theirs, Vec::new(), None));
                Counting::new(source, size)
            })
            .collect();
        let mut now = 0;
        for (peer, count) in steps {
            now += 1;
            if let Some((theirs, sent, first)) = peers.get_mut(peer) {
                let bytes = vec![u8::try_from(count).unwrap(); count];
                theirs.write_all(&bytes).unwrap();
                sent.extend(bytes);
                first.get_or_insert(now);
                continue;
            }
            let seen: Vec<usize> = readers.iter().map(|it| it.silent.borrow().len()).collect();
            step(&reactor, now);
            for ((reader, seen), (_, sent, first)) in readers.iter().zip(seen).zip(&mut peers) {
                if let (Some(silent), Some(first)) = (reader.silent.borrow().get(seen), *first) {
                    prop_assert!(silent.0 < first, "{silent:?} {first}");
                }
                if reader.taken.borrow().len() == sent.len() {
                    *first = None;
                }
            }
        }
        for _ in 0..1000 {
            now += 1;
            step(&reactor, now);
        }
        for (reader, (_, sent, _)) in readers.iter().zip(&peers) {
            prop_assert_eq!(&*reader.taken.borrow(), sent);
            reader.source.handle().release();
        }
    }
}
