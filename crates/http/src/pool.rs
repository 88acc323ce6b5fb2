//! Connections that wait for their next request.

use crate::http2::Link;
use crate::wire::Connection;
use servebench_core::Stamp;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long a connection whose last body has not ended is kept.
const LINGER: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(crate) struct Pool {
    idle: Vec<Connection>,
    /// Connections whose reply is complete but whose body has not ended.
    lingering: Vec<(Connection, Stamp)>,
    /// Connections that carry several requests at once.
    links: Vec<Rc<Link>>,
}

impl Pool {
    pub(crate) fn len(&self) -> usize {
        self.idle.len()
    }

    pub(crate) fn put(&mut self, connection: Connection) {
        match connection.link() {
            None => self.idle.push(connection),
            Some(link) => self.share(link),
        }
    }

    /// Keeps a connection that others can be on as well.
    pub(crate) fn share(&mut self, link: &Rc<Link>) {
        if !self.links.iter().any(|known| Rc::ptr_eq(known, link)) {
            self.links.push(Rc::clone(link));
        }
    }

    /// How many requests may be sent at once on the connections that carry several.
    pub(crate) fn room_on_links(&self) -> usize {
        self.links.iter().fold(0, |room: usize, link| room.saturating_add(link.most()))
    }

    pub(crate) fn linger(&mut self, connection: Connection, since: Stamp) {
        connection.rest();
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
        self.links.retain(|link| link.is_usable());
        self.links.iter().find(|link| link.has_room()).map(Connection::on)
    }

    /// Moves the lingering connections whose bodies have ended to the idle ones.
    fn settle(&mut self, now: Stamp, cx: &mut Context<'_>) {
        for (mut connection, since) in std::mem::take(&mut self.lingering) {
            match connection.poll_drain(cx) {
                Poll::Ready(true) => self.put(connection),
                Poll::Pending if now.since(since) < LINGER => {
                    connection.rest();
                    self.lingering.push((connection, since));
                }
                Poll::Ready(false) | Poll::Pending => {}
            }
        }
    }
}
