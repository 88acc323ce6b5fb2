//! Connections that wait for their next request.

use crate::wire::Connection;
use servebench_core::Stamp;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a connection whose last body has not ended is kept.
const LINGER: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Pool {
    idle: Vec<Connection>,
    /// Connections whose reply is complete but whose body has not ended.
    lingering: Vec<(Connection, Stamp)>,
}

impl Pool {
    pub(crate) fn len(&self) -> usize {
        self.idle.len()
    }

    pub(crate) fn put(&mut self, connection: Connection) {
        self.idle.push(connection);
    }

    pub(crate) fn linger(&mut self, connection: Connection, since: Stamp) {
        self.lingering.push((connection, since));
    }

    /// A connection that is open as far as can be told, the one used last first.
    pub(crate) fn take(&mut self, now: Stamp, cx: &mut Context<'_>) -> Option<Connection> {
        if self.idle.is_empty() {
            self.settle(now, cx);
        }
        while let Some(mut connection) = self.idle.pop() {
            if connection.is_usable(cx) {
                return Some(connection);
            }
        }
        None
    }

    /// Moves the lingering connections whose bodies have ended to the idle ones.
    fn settle(&mut self, now: Stamp, cx: &mut Context<'_>) {
        for (mut connection, since) in std::mem::take(&mut self.lingering) {
            match connection.poll_drain(cx) {
                Poll::Ready(true) => self.idle.push(connection),
                Poll::Pending if now.since(since) < LINGER => {
                    self.lingering.push((connection, since));
                }
                Poll::Ready(false) | Poll::Pending => {}
            }
        }
    }
}
