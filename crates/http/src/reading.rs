//! What a response makes of a reply, whoever reads it: a connection, or a recording.

use crate::coding::is_plain;
use crate::meter::Meter;
use crate::wire::{Ended, Head, Visit};
use servebench_core::{Decode, End, Failure, FailureKind, Progress, Reply, Stamp};

/// Most of an error body that is read so that its connection can be kept.
const ERROR_BODY_LIMIT: usize = 1 << 20;

/// When bytes were received that were read at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// When the newest of them was.
    pub at: Stamp,
    /// None of them was before. `None` where nobody asks: reads are then taken for the receipt.
    pub after: Option<Stamp>,
    /// Whether `at` is the time of the receipt itself, and not just that of the read.
    pub is_told: bool,
}

/// A response under way: what is shown of it goes to the decoder, or, if it is no reply, into the failure
/// that it is.
#[derive(Default)]
pub(crate) struct Reading {
    /// `None` where the one who reads has moved elsewhere.
    decoder: Option<Box<dyn Decode>>,
    /// A response that is not decoded, and why.
    refused: Option<Refused>,
}

/// Shows a response to the one who reads it, with the stamps of the socket.
pub(crate) struct Shown<'a> {
    pub(crate) meter: &'a Meter,
    pub(crate) reading: &'a mut Reading,
    pub(crate) reply: &'a mut Reply,
}

impl Visit for Shown<'_> {
    fn head(&mut self, head: &Head) -> Progress {
        self.reading.head(self.meter.last_read(), head, self.reply)
    }

    fn data(&mut self, bytes: &[u8]) -> Progress {
        self.reading.data(self.meter.receipt(), bytes, self.reply)
    }
}

/// A response that is no reply.
struct Refused {
    /// What is known without its body.
    words: String,
    kind: FailureKind,
    /// The words say it all.
    explained: bool,
    /// The body's beginning explains it otherwise.
    body: Vec<u8>,
    read: usize,
}

impl Reading {
    pub(crate) fn new(decoder: Box<dyn Decode>) -> Self {
        Self { decoder: Some(decoder), refused: None }
    }

    /// Looks at the memory that the next bytes will need.
    #[cfg(target_os = "linux")]
    pub(crate) fn near(&self) {
        if let Some(decoder) = &self.decoder {
            decoder.near();
        }
    }

    /// The head was complete at `at`.
    pub(crate) fn head(&mut self, at: Stamp, head: &Head, reply: &mut Reply) -> Progress {
        reply.headers = Some(at);
        reply.status = Some(head.status);
        self.refused = Refused::of(head);
        if let (None, Some(metadata), Some(decoder)) =
            (&self.refused, &head.metadata, &mut self.decoder)
        {
            decoder.metadata(metadata, reply);
        }
        let is_coded = self.refused.as_ref().is_some_and(|it| it.kind == FailureKind::Protocol);
        if is_coded { Progress::Done } else { Progress::More }
    }

    /// The next bytes of the body.
    pub(crate) fn data(&mut self, receipt: Receipt, bytes: &[u8], reply: &mut Reply) -> Progress {
        if let Some(refused) = &mut self.refused {
            return refused.take(bytes);
        }
        let Some(decoder) = &mut self.decoder else { return Progress::Done };
        let Receipt { at, after, is_told } = receipt;
        let Some(after) = after else { return decoder.feed(at, bytes, reply) };
        reply.chunks.read_after(after);
        let progress = decoder.feed(at, bytes, reply);
        if !is_told {
            // Then the newest byte has no more than bounds, too.
            reply.chunks.followed(at);
        }
        progress
    }

    /// The exchange ended, and the last byte of it had been received at `at`.
    pub(crate) fn end(self, at: Stamp, ended: &Ended, reply: &mut Reply) {
        if let Some(refused) = self.refused {
            return reply.fail(refused.failure());
        }
        let Some(mut decoder) = self.decoder else { return };
        match ended {
            Ended::Complete | Ended::Early => decoder.end(at, End::Complete, reply),
            Ended::Broken(failure) if reply.status == Some(200) => {
                decoder.end(at, End::Broken(failure.clone()), reply);
            }
            Ended::Broken(failure) | Ended::NoAnswer(failure) => reply.fail(failure.clone()),
        }
    }

    /// Whether the response is none that is decoded.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.is_some()
    }
}

impl Refused {
    fn of(head: &Head) -> Option<Self> {
        let refuse = |kind, explained, words| {
            Some(Self { words, kind, explained, body: Vec::new(), read: 0 })
        };
        let status = http::StatusCode::from_u16(head.status);
        match (status, &head.location, &head.encoding) {
            (Ok(http::StatusCode::OK), _, None) => None,
            (Ok(http::StatusCode::OK), _, Some(encoding)) if is_plain(encoding) => None,
            (Ok(http::StatusCode::OK), _, Some(encoding)) => {
                let words = format!(
                    "the reply is compressed ({encoding}) in a way not spoken here and not asked for"
                );
                refuse(FailureKind::Protocol, true, words)
            }
            (Ok(status), Some(to), _) if status.is_redirection() => {
                let words =
                    format!("{status}: redirect to {to} refused; give that address as --base-url");
                refuse(FailureKind::Status, true, words)
            }
            (Ok(status), ..) => refuse(FailureKind::Status, false, status.to_string()),
            (Err(_), ..) => refuse(FailureKind::Status, false, format!("status {}", head.status)),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Progress {
        self.read += bytes.len();
        let room = (2 * Failure::DETAIL_LIMIT).saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.read < ERROR_BODY_LIMIT { Progress::More } else { Progress::Done }
    }

    fn failure(self) -> Failure {
        let text = String::from_utf8_lossy(&self.body);
        let detail = if self.explained || text.trim().is_empty() {
            self.words
        } else {
            format!("{}: {}", self.words, text.trim())
        };
        Failure::new(self.kind, detail)
    }
}
