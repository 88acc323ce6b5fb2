//! Stamps and counts at the socket, below HTTP and TLS.

use servebench_core::{Clock, Stamp};
use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a connection's socket has seen. Shared between the wrapped socket and the request that
/// uses it; both live on one thread.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    last_read: Cell<Stamp>,
    read_since_mark: Cell<bool>,
    first_write: Cell<Option<Stamp>>,
    error: Cell<Option<io::ErrorKind>>,
}

impl Meter {
    /// A new request begins: forgets the last one's marks.
    pub(crate) fn mark(&self, now: Stamp) {
        self.last_read.set(now);
        self.read_since_mark.set(false);
        self.first_write.set(None);
        self.error.set(None);
    }

    /// When bytes were last received.
    pub(crate) fn last_read(&self) -> Stamp {
        self.last_read.get()
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
}

/// A socket whose reads and writes are noted in a [`Meter`].
#[derive(Debug)]
pub(crate) struct Metered<T, C> {
    inner: T,
    clock: C,
    meter: Rc<Meter>,
}

impl<T, C> Metered<T, C> {
    pub(crate) fn new(inner: T, clock: C, meter: Rc<Meter>) -> Self {
        Self { inner, clock, meter }
    }

    fn note<V>(&self, result: io::Result<V>) -> io::Result<V> {
        result.inspect_err(|error| self.meter.error.set(Some(error.kind())))
    }
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
            self.meter.last_read.set(self.clock.now());
            self.meter.read_since_mark.set(true);
        }
        Poll::Ready(self.note(result))
    }
}

impl<T: AsyncWrite + Unpin, C: Clock + Unpin> AsyncWrite for Metered<T, C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.inner).poll_write(cx, buf));
        self.wrote();
        Poll::Ready(self.note(result))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, bufs));
        self.wrote();
        Poll::Ready(self.note(result))
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

impl<T, C: Clock> Metered<T, C> {
    fn wrote(&self) {
        if self.meter.first_write.get().is_none() {
            self.meter.first_write.set(Some(self.clock.now()));
        }
    }
}
