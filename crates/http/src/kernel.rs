//! Receive times from the kernel (Linux `SO_TIMESTAMPNS`).

use crate::meter::{Read, Tap};
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, cmsg_space, recvmsg, setsockopt, sockopt::ReceiveTimestampns,
};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use servebench_core::{Clock, Stamp};
use servebench_reactor::{Reactor, Source};
use std::cell::{Cell, RefCell};
use std::io::{self, IoSlice, IoSliceMut, Write};
use std::net::{Shutdown, TcpStream as StdStream};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// How old the mapping between the two clocks may become.
const REFRESH: Duration = Duration::from_millis(10);

/// How often the clocks are compared for one mapping; the tightest comparison counts.
const TRIES: usize = 3;

/// Maps the kernel's wall clock, in which it stamps, to the run's. One per worker.
///
/// The wall clock may be slewed or set while a run goes on, so the two are compared again every
/// few milliseconds. What they moved against each other between two comparisons, and how long the
/// comparison took, bounds the error of a mapped stamp.
#[derive(Debug)]
pub(crate) struct ClockMap {
    /// Wall clock minus run clock, in nanoseconds.
    offset: Cell<i64>,
    compared: Cell<Stamp>,
    error: Cell<Duration>,
    /// Where the kernel writes its time: one place for all connections stays in the cache.
    control: RefCell<Vec<u8>>,
}

impl Default for ClockMap {
    fn default() -> Self {
        Self {
            offset: Cell::default(),
            compared: Cell::default(),
            error: Cell::default(),
            control: RefCell::new(vec![0; cmsg_space::<TimeSpec>()]),
        }
    }
}

impl ClockMap {
    /// The run time of the wall clock time `wall`, and how far off that may be.
    fn map<C: Clock>(&self, clock: &C, wall: i64, now: Stamp) -> (Stamp, Duration) {
        let known = self.compared.get();
        // A clock that stood at 0 had not been started.
        if known == Stamp(0) || now.since(known) >= REFRESH {
            self.compare(clock);
        }
        let at = wall.saturating_sub(self.offset.get());
        (Stamp(u64::try_from(at).unwrap_or(0)), self.error.get())
    }

    fn compare<C: Clock>(&self, clock: &C) {
        let mut best: Option<(Duration, i64)> = None;
        for _ in 0..TRIES {
            let before = clock.now();
            let wall = wall_clock();
            let took = clock.now().since(before);
            let middle = before.0 + u64::try_from(took.as_nanos() / 2).unwrap_or(0);
            let offset = wall.saturating_sub(i64::try_from(middle).unwrap_or(i64::MAX));
            if best.is_none_or(|(so_far, _)| took < so_far) {
                best = Some((took, offset));
            }
        }
        let Some((took, offset)) = best else { return };
        let first = self.compared.get() == Stamp(0);
        let moved = if first { 0 } else { offset.abs_diff(self.offset.get()) };
        self.offset.set(offset);
        self.error.set(took / 2 + Duration::from_nanos(moved));
        self.compared.set(clock.now());
    }
}

/// The wall clock, in nanoseconds since 1970.
fn wall_clock() -> i64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanoseconds)
}

fn nanoseconds(time: TimeSpec) -> i64 {
    time.tv_sec() * 1_000_000_000 + time.tv_nsec()
}

/// A TCP connection whose reads tell when the kernel received their newest byte.
#[derive(Debug)]
pub(crate) struct KernelTcp<C> {
    socket: Socket,
    tap: Tap<C>,
}

/// Who looks after the socket.
#[derive(Debug)]
enum Socket {
    /// The thread's reactor, where there is one.
    Ours(Source<StdStream>),
    Runtime(TcpStream),
}

impl<C: Clock + Unpin> KernelTcp<C> {
    /// Asks the kernel for receive times; gives the socket back if it has none.
    pub(crate) fn new(socket: TcpStream, tap: Tap<C>) -> Result<Self, (TcpStream, Tap<C>)> {
        if setsockopt(&socket, ReceiveTimestampns, &true).is_err() {
            return Err((socket, tap));
        }
        tap.meter.ask();
        let socket = match Reactor::current() {
            None => Socket::Runtime(socket),
            Some(reactor) => match hand_over(socket, &reactor) {
                Ok(source) => {
                    tap.meter.looked_after_by(source.handle());
                    Socket::Ours(source)
                }
                Err(socket) => Socket::Runtime(socket),
            },
        };
        Ok(Self { socket, tap })
    }

    /// Notes a read of `count` bytes into a room of `size`.
    fn note(&self, count: usize, size: usize, wall: Option<i64>, silent: Stamp) {
        if count > 0 {
            let now = self.tap.clock.now();
            let arrival = wall.map(|wall| self.tap.map.map(&self.tap.clock, wall, now));
            self.tap.note_read(Read { now, arrival, emptied: count < size, silent });
        }
    }
}

/// Receives what fits into `room`, with the wall clock time at which the newest byte arrived.
fn receive(
    socket: RawFd,
    room: &mut [u8],
    control: &mut [u8],
) -> Result<(usize, Option<i64>), Errno> {
    let mut room = [IoSliceMut::new(room)];
    let message = recvmsg::<()>(socket, &mut room, Some(control), MsgFlags::empty())?;
    let wall = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(nanoseconds(time)),
        _ => None,
    });
    Ok((message.bytes, wall))
}

/// Moves a socket from the runtime to `reactor`; gives it back if that fails.
fn hand_over(socket: TcpStream, reactor: &Rc<Reactor>) -> Result<Source<StdStream>, TcpStream> {
    // A second descriptor of the same socket: whatever fails, the first is still there.
    let Ok(own) = socket.as_fd().try_clone_to_owned() else { return Err(socket) };
    Source::new(StdStream::from(own), reactor).map_err(|_| socket)
}

impl<C: Clock + Unpin> AsyncRead for KernelTcp<C> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &*self.get_mut();
        let room = buf.initialize_unfilled();
        let size = room.len();
        let mut control = this.tap.map.control.borrow_mut();
        let (count, wall, silent) = match &this.socket {
            Socket::Ours(source) => loop {
                ready!(source.poll_readable(cx));
                match receive(source.get_ref().as_raw_fd(), room, &mut control) {
                    Ok((count, wall)) => {
                        // A short read took all there was.
                        if count < size {
                            source.emptied();
                        }
                        break (count, wall, source.silent_until());
                    }
                    Err(Errno::EAGAIN) => source.emptied(),
                    Err(Errno::EINTR) => {}
                    Err(error) => return Poll::Ready(this.tap.note_result(Err(error.into()))),
                }
            },
            Socket::Runtime(socket) => loop {
                ready!(socket.poll_read_ready(cx))?;
                let mut received = None;
                let result = socket.try_io(Interest::READABLE, || {
                    let (count, wall) = receive(socket.as_raw_fd(), room, &mut control)?;
                    received = Some((count, wall));
                    // The runtime is told at once, or it would have us find that out with another
                    // call.
                    if 0 < count && count < size {
                        Err(io::ErrorKind::WouldBlock.into())
                    } else {
                        Ok(())
                    }
                });
                if let Some((count, wall)) = received {
                    break (count, wall, Stamp(0));
                }
                match result {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    result => return Poll::Ready(this.tap.note_result(result)),
                }
            },
        };
        this.note(count, size, wall, silent);
        buf.advance(count);
        Poll::Ready(Ok(()))
    }
}

/// Sends with `send` once the socket takes something.
fn poll_send(
    source: &Source<StdStream>,
    cx: &mut Context<'_>,
    send: impl Fn(&StdStream) -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(source.poll_writable(cx));
        match send(source.get_ref()) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => source.filled(),
            result => return Poll::Ready(result),
        }
    }
}

impl<C: Clock + Unpin> AsyncWrite for KernelTcp<C> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = ready!(match &mut this.socket {
            Socket::Ours(source) => poll_send(source, cx, |mut socket| socket.write(buf)),
            Socket::Runtime(socket) => Pin::new(socket).poll_write(cx, buf),
        });
        Poll::Ready(this.tap.note_write(result))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let result = ready!(match &mut this.socket {
            Socket::Ours(source) => poll_send(source, cx, |mut socket| socket.write_vectored(bufs)),
            Socket::Runtime(socket) => Pin::new(socket).poll_write_vectored(cx, bufs),
        });
        Poll::Ready(this.tap.note_write(result))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket holds nothing back.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().socket {
            Socket::Ours(source) => Poll::Ready(source.get_ref().shutdown(Shutdown::Write)),
            Socket::Runtime(socket) => Pin::new(socket).poll_shutdown(cx),
        }
    }
}
