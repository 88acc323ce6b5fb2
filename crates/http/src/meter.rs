//! Stamps and counts at the socket, below HTTP and TLS.

use crate::connect::Stream;
#[cfg(target_os = "linux")]
use crate::kernel::{ClockMap, KernelTcp};
use crate::reading::Receipt;
use servebench_core::{Chunks, Clock, ReadLag, Stamp};
#[cfg(target_os = "linux")]
use servebench_reactor::Handle;
use std::cell::Cell;
#[cfg(target_os = "linux")]
use std::cell::RefCell;
#[cfg(target_os = "linux")]
use std::hint::black_box;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// What a connection's socket has seen. Shared between the wrapped socket and the request that
/// uses it; both live on one thread.
#[derive(Debug)]
pub(crate) struct Meter {
    last_read: Cell<Stamp>,
    after: Cell<Stamp>,
    /// The last read left nothing behind.
    empty: Cell<bool>,
    /// The system was asked for receive times...
    asked: Cell<bool>,
    /// ...and gave one for the last read.
    told: Cell<bool>,
    read_since_mark: Cell<bool>,
    first_write: Cell<Option<Stamp>>,
    lag: Cell<Option<ReadLag>>,
    error: Cell<Option<io::ErrorKind>>,
    /// How many reads there were, and how long the bytes of the last had waited.
    reads: Cell<u64>,
    last_lag: Cell<Option<(Duration, Duration)>>,
    /// Who looks after the socket, if it is the thread's reactor.
    #[cfg(target_os = "linux")]
    handle: RefCell<Option<Handle>>,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            last_read: Cell::default(),
            after: Cell::default(),
            empty: Cell::new(true),
            asked: Cell::default(),
            told: Cell::default(),
            read_since_mark: Cell::default(),
            first_write: Cell::default(),
            lag: Cell::default(),
            error: Cell::default(),
            reads: Cell::default(),
            last_lag: Cell::default(),
            #[cfg(target_os = "linux")]
            handle: RefCell::default(),
        }
    }
}

/// What the system tells of a read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    /// When it was made.
    pub(crate) now: Stamp,
    /// When its newest byte had arrived, and how far off that may be.
    pub(crate) arrival: Option<(Stamp, Duration)>,
    /// It took all there was.
    pub(crate) emptied: bool,
    /// Nothing had come until then, if all that had come before was read. `Stamp(0)`: not known.
    pub(crate) silent: Stamp,
}

impl Meter {
    /// Looks at the memory that the next read will need.
    #[cfg(target_os = "linux")]
    pub(crate) fn near(&self) {
        black_box((self.last_read.get(), self.lag.get(), self.reads.get()));
    }

    /// A new request begins: forgets the last one's marks.
    pub(crate) fn mark(&self, now: Stamp) {
        self.last_read.set(now);
        self.read_since_mark.set(false);
        self.first_write.set(None);
        self.lag.set(None);
        self.error.set(None);
    }

    /// When the newest byte read so far was received.
    pub(crate) fn last_read(&self) -> Stamp {
        self.last_read.get()
    }

    /// When what was read last was received. The system begins to stamp some time after it was first
    /// asked to.
    pub(crate) fn receipt(&self) -> Receipt {
        let after = self.asked.get().then(|| self.after.get());
        Receipt { at: self.last_read.get(), after, is_told: self.told.get() }
    }

    /// From now on the system is asked for receive times.
    #[cfg(target_os = "linux")]
    pub(crate) fn ask(&self) {
        self.asked.set(true);
    }

    /// The thread's reactor looks after the socket.
    #[cfg(target_os = "linux")]
    pub(crate) fn looked_after_by(&self, handle: Handle) {
        self.handle.replace(Some(handle));
    }

    /// Who looks after the socket, if it is the thread's reactor.
    #[cfg(target_os = "linux")]
    pub(crate) fn handle(&self) -> Option<Handle> {
        self.handle.borrow().clone()
    }

    /// How long what was read since the mark had waited; `None` where the system does not tell.
    pub(crate) fn lag(&self) -> Option<ReadLag> {
        self.lag.get()
    }

    /// True when at least one byte was received since the mark.
    pub(crate) fn has_read(&self) -> bool {
        self.read_since_mark.get()
    }

    /// When the first byte since the mark was handed to the system.
    pub(crate) fn first_write(&self) -> Option<Stamp> {
        self.first_write.get()
    }

    /// The kind of the last error the socket gave.
    pub(crate) fn error(&self) -> Option<io::ErrorKind> {
        self.error.get()
    }

    fn note_read(&self, read: Read) {
        if self.empty.get() {
            self.after.set(cut(self.last_read.get().max(read.silent).min(read.now)));
        }
        self.empty.set(read.emptied);
        self.told.set(read.arrival.is_some());
        self.reads.set(self.reads.get() + 1);
        let mut at = read.now;
        if let Some((arrival, error)) = read.arrival {
            // Whatever the two clocks did to each other, it was then.
            at = arrival.clamp(self.after.get(), read.now);
            self.add_lag(read.now.since(at), error);
        }
        self.last_read.set(cut(at));
        self.read_since_mark.set(true);
    }

    fn add_lag(&self, lag: Duration, error: Duration) {
        let mut sum = self.lag.get().unwrap_or_default();
        sum.add(lag, error);
        self.lag.set(Some(sum));
        self.last_lag.set(Some((lag, error)));
    }

    /// A meter for one request of several on the connection that `shared` watches.
    pub(crate) fn like(shared: &Self) -> Self {
        let this = Self::default();
        this.asked.set(shared.asked.get());
        this
    }

    /// Something was taken that the last read on the shared connection brought.
    pub(crate) fn take_read(&self, shared: &Self) {
        self.last_read.set(shared.last_read.get());
        self.after.set(shared.after.get());
        self.told.set(shared.told.get());
        self.read_since_mark.set(true);
        if self.reads.replace(shared.reads.get()) != shared.reads.get()
            && shared.told.get()
            && let Some((lag, error)) = shared.last_lag.get()
        {
            self.add_lag(lag, error);
        }
    }

    /// The next write on this shared connection is of interest.
    pub(crate) fn expect_write(&self) {
        self.first_write.set(None);
    }

    /// Notes when the shared connection wrote what is ours.
    pub(crate) fn take_write(&self, shared: &Self) {
        if self.first_write.get().is_none() {
            self.first_write.set(shared.first_write.get());
        }
    }

    fn note_error(&self, error: &io::Error) {
        self.error.set(Some(error.kind()));
    }
}

/// Receive stamps have one resolution wherever they go, so that what came at once has one stamp.
fn cut(at: Stamp) -> Stamp {
    Stamp(at.0 - at.0 % Chunks::RESOLUTION)
}

/// Where a connector hands in the socket it has opened, so that its reads are stamped.
#[derive(Debug)]
pub struct Tap<C> {
    pub(crate) clock: C,
    pub(crate) meter: Rc<Meter>,
    #[cfg(target_os = "linux")]
    pub(crate) map: Rc<ClockMap>,
}

impl<C> Tap<C> {
    /// A tap for one connection that shares nothing with others.
    pub(crate) fn new(clock: C) -> Self {
        Self {
            clock,
            meter: Rc::default(),
            #[cfg(target_os = "linux")]
            map: Rc::default(),
        }
    }

    /// A tap for another connection of the same worker.
    pub(crate) fn another(&self) -> Self
    where
        C: Clone,
    {
        Self {
            clock: self.clock.clone(),
            meter: Rc::default(),
            #[cfg(target_os = "linux")]
            map: Rc::clone(&self.map),
        }
    }
}

impl<C: Clock + Unpin> Tap<C> {
    /// The receive stamps of `stream` are the times of its reads.
    pub fn stamp_reads(self, stream: impl Stream + 'static) -> Box<dyn Stream> {
        Box::new(Metered { inner: stream, tap: self })
    }

    /// The receive stamps of `stream` are what the kernel says, where it does, else the times of its
    /// reads.
    pub fn stamp_arrivals(self, stream: TcpStream) -> Box<dyn Stream> {
        #[cfg(target_os = "linux")]
        return match KernelTcp::new(stream, self) {
            Ok(stream) => Box::new(stream),
            Err((stream, tap)) => tap.stamp_reads(stream),
        };
        #[cfg(not(target_os = "linux"))]
        self.stamp_reads(stream)
    }

    pub(crate) fn note_read(&self, read: Read) {
        self.meter.note_read(read);
    }

    /// Notes how a write went.
    pub(crate) fn note_write<V>(&self, result: io::Result<V>) -> io::Result<V> {
        if self.meter.first_write.get().is_none() {
            self.meter.first_write.set(Some(self.clock.now()));
        }
        self.note_result(result)
    }

    pub(crate) fn note_result<V>(&self, result: io::Result<V>) -> io::Result<V> {
        result.inspect_err(|error| self.meter.note_error(error))
    }
}

/// A stream whose reads and writes are noted.
#[derive(Debug)]
struct Metered<T, C> {
    inner: T,
    tap: Tap<C>,
}

impl<T: AsyncRead + Unpin, C: Clock + Unpin> AsyncRead for Metered<T, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = ready!(Pin::new(&mut self.inner).poll_read(cx, buf));
        if buf.filled().len() > before {
            let emptied = buf.remaining() > 0;
            self.tap.note_read(Read {
                now: self.tap.clock.now(),
                arrival: None,
                emptied,
                silent: Stamp(0),
            });
        }
        Poll::Ready(self.tap.note_result(result))
    }
}

impl<T: AsyncWrite + Unpin, C: Clock + Unpin> AsyncWrite for Metered<T, C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.inner).poll_write(cx, buf));
        Poll::Ready(self.tap.note_write(result))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, bufs));
        Poll::Ready(self.tap.note_write(result))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
