//! One response, taken apart as its bytes come.

use super::Malformed;
use super::head::{Framing, HEAD_LIMIT, parse};
use crate::wire::Visit;
use servebench_core::Progress;

/// A response under way.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// The beginning of a head that came in pieces.
    head: Vec<u8>,
    framing: Option<Framing>,
    keep_alive: bool,
    /// The visitor has seen enough.
    early: bool,
}

/// How far a response has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// More bytes are needed.
    Amid,
    /// The visitor has seen enough, but the body has not ended.
    Early,
    /// The body has ended; whether the connection can serve another request.
    End { reusable: bool },
}

impl Incoming {
    /// Takes the next bytes from the connection.
    pub(crate) fn take(&mut self, bytes: &[u8], visit: &mut dyn Visit) -> Result<Place, Malformed> {
        if self.framing.is_some() {
            return self.take_body(bytes, visit);
        }
        if self.head.is_empty() {
            // The usual case: all of the head at once, nothing copied.
            return self.take_head(bytes, visit);
        }
        let mut whole = std::mem::take(&mut self.head);
        whole.extend_from_slice(bytes);
        self.take_head(&whole, visit)
    }

    /// The connection was closed; true if that is how the body ends.
    pub(crate) fn is_over(&self) -> bool {
        self.framing == Some(Framing::Close)
    }

    fn take_head(&mut self, bytes: &[u8], visit: &mut dyn Visit) -> Result<Place, Malformed> {
        let Some(parsed) = parse(bytes)? else {
            if bytes.len() > HEAD_LIMIT {
                return Err(Malformed("the head of the response is too large"));
            }
            self.head = bytes.to_vec();
            return Ok(Place::Amid);
        };
        self.framing = Some(parsed.framing);
        self.keep_alive = parsed.keep_alive;
        self.early = visit.head(&parsed.head) == Progress::Done;
        self.take_body(&bytes[parsed.size..], visit)
    }

    fn take_body(&mut self, bytes: &[u8], visit: &mut dyn Visit) -> Result<Place, Malformed> {
        let mut rest = bytes;
        let ended = loop {
            let (used, data) = match &mut self.framing {
                Some(Framing::Length(0)) => break true,
                Some(Framing::Chunked(chunked)) if *chunked == super::chunked::Chunked::End => {
                    break true;
                }
                _ if rest.is_empty() => break false,
                Some(Framing::Length(left)) => {
                    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(rest.len());
                    *left -= count as u64;
                    (count, count)
                }
                Some(Framing::Chunked(chunked)) => chunked.step(rest)?,
                Some(Framing::Close) | None => (rest.len(), rest.len()),
            };
            let (now, later) = rest.split_at(used);
            rest = later;
            if data > 0 && !self.early {
                self.early = visit.data(&now[..data]) == Progress::Done;
            }
        };
        Ok(match (ended, self.early) {
            // What follows a response that was not asked for belongs to nobody.
            (true, _) => Place::End { reusable: self.keep_alive && rest.is_empty() },
            (false, true) => Place::Early,
            (false, false) => Place::Amid,
        })
    }
}
