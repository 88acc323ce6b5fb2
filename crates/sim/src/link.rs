//! The connection as the fault script needs it: watched for flushes, closed at a chosen moment.

use crate::faults::{CloseAfter, WireFault};
use crate::sync::lock;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// What a response and the connection that carries it know of each other.
#[derive(Debug)]
pub(crate) struct Link {
    /// False from the moment a response hands over bytes until the socket has them.
    flushed: AtomicBool,
    /// Who waits for `flushed`.
    waiter: Mutex<Option<Waker>>,
    reset: AtomicBool,
    end_on_next_byte: AtomicBool,
    closing: AtomicBool,
    close_delay: Mutex<Duration>,
    /// Whether `wire` is to be looked at.
    is_wire_faulty: AtomicBool,
    wire: Mutex<WireFault>,
}

impl Link {
    pub(crate) fn new() -> Self {
        Self {
            flushed: AtomicBool::new(true),
            waiter: Mutex::new(None),
            reset: AtomicBool::new(false),
            end_on_next_byte: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            close_delay: Mutex::default(),
            is_wire_faulty: AtomicBool::new(false),
            wire: Mutex::default(),
        }
    }

    /// Says that bytes are on their way to the socket.
    pub(crate) fn mark_unflushed(&self) {
        self.flushed.store(false, Relaxed);
    }

    /// Waits until the socket has everything.
    pub(crate) fn poll_flushed(&self, cx: &Context<'_>) -> Poll<()> {
        if self.flushed.load(Relaxed) {
            return Poll::Ready(());
        }
        *lock(&self.waiter) = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Makes the connection end by RST instead of FIN.
    pub(crate) fn reset(&self) {
        self.reset.store(true, Relaxed);
    }

    /// Says what happens to the bytes of the next response.
    pub(crate) fn set_wire(&self, fault: WireFault) {
        let is_faulty = fault != WireFault::default();
        if self.is_wire_faulty.swap(is_faulty, Relaxed) || is_faulty {
            *lock(&self.wire) = fault;
        }
    }

    /// Asks for the connection to be closed once what was written is flushed.
    pub(crate) fn close(&self, how: CloseAfter) {
        if how.reset {
            self.reset();
        }
        if how.on_next_byte {
            self.end_on_next_byte.store(true, Relaxed);
        } else {
            *lock(&self.close_delay) = how.delay;
            self.closing.store(true, Relaxed);
        }
    }

    /// Whether [`Link::close`] was called.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Once [`Link::is_closing`], completes when the connection shall be dropped.
    pub(crate) async fn closed(&self) {
        std::future::poll_fn(|cx| self.poll_flushed(cx)).await;
        let delay = *lock(&self.close_delay);
        tokio::time::sleep(delay).await;
    }

    fn flushed(&self) {
        // Almost always nobody waits: an atomic swap tells without the lock.
        if !self.flushed.swap(true, Relaxed) {
            let waiter = lock(&self.waiter).take();
            if let Some(waiter) = waiter {
                waiter.wake();
            }
        }
    }
}

/// How to make closing an `I` send RST; does nothing where that is not possible.
pub(crate) type Abort<I> = fn(&I);

/// An I/O object that keeps its [`Link`] informed.
#[derive(Debug)]
pub(crate) struct WatchedIo<I> {
    inner: I,
    link: Arc<Link>,
    abort: Abort<I>,
    /// Until when nothing more is written, since it is written drop by drop.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<I> WatchedIo<I> {
    pub(crate) fn new(inner: I, link: Arc<Link>, abort: Abort<I>) -> Self {
        Self { inner, link, abort, pause: None }
    }
}

impl<I> Drop for WatchedIo<I> {
    fn drop(&mut self) {
        if self.link.reset.load(Relaxed) {
            (self.abort)(&self.inner);
        }
    }
}

impl<I: AsyncWrite + Unpin> WatchedIo<I> {
    /// Writes as much as the fault lets through.
    fn poll_write_faulty(&mut self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if let Some(pause) = &mut self.pause {
            ready!(pause.as_mut().poll(cx));
            self.pause = None;
        }
        let WireFault { cut, drip } = *lock(&self.link.wire);
        let mut room = bytes.len().min(drip.map_or(usize::MAX, |(drop, _)| drop));
        if let Some((left, reset)) = cut {
            if left == 0 {
                if reset {
                    self.link.reset();
                }
                return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
            }
            room = room.min(usize::try_from(left).unwrap_or(usize::MAX));
        }
        let part = bytes.get(..room).unwrap_or(bytes);
        let written = ready!(Pin::new(&mut self.inner).poll_write(cx, part))?;
        if let Some((left, _)) = &mut lock(&self.link.wire).cut {
            *left = left.saturating_sub(written as u64);
        }
        if let Some((_, gap)) = drip {
            self.pause = Some(Box::pin(tokio::time::sleep(gap)));
        }
        Poll::Ready(Ok(written))
    }
}

impl<I: AsyncRead + Unpin> AsyncRead for WatchedIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        if self.link.end_on_next_byte.load(Relaxed) && buffer.filled().len() > before {
            // The peer's bytes were taken and are answered with the end of the connection.
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for WatchedIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.link.is_wire_faulty.load(Relaxed) {
            return self.poll_write_faulty(cx, bytes);
        }
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.inner).poll_flush(cx))?;
        self.link.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.link.reset.load(Relaxed) {
            return Poll::Ready(Ok(())); // A FIN would come before the RST.
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.link.is_wire_faulty.load(Relaxed) {
            let first = slices.iter().find(|slice| !slice.is_empty());
            return self.poll_write_faulty(cx, first.map_or(&[], |slice| slice));
        }
        Pin::new(&mut self.inner).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
