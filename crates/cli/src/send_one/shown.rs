//! The reply, printed as it comes.

use crate::Io;
use bytes::Bytes;
use servebench_core::{Decode, End, Progress, Protocol, Reply, Request, Sample, Stamp};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// A protocol whose replies are printed while they come, from a thread of its own: what is read
/// does not wait for a terminal. Of several choices only the first is printed.
#[derive(Debug)]
pub(super) struct Shown {
    inner: Arc<dyn Protocol>,
    pieces: Sender<String>,
}

/// The thread that prints. Ends, when waited for, once every sender is gone.
#[derive(Debug)]
pub(super) struct Printer(Option<JoinHandle<()>>);

impl Shown {
    /// `inner`, printed to `io`.
    pub(super) fn new(inner: Arc<dyn Protocol>, io: &Io) -> (Self, Printer) {
        let (pieces, printed) = mpsc::channel::<String>();
        let io = io.clone();
        let print = move || {
            for piece in printed {
                if io.write(piece).is_err() {
                    // The figures that follow cannot be printed either, and that is reported.
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("printer".into()).spawn(print).ok();
        (Self { inner, pieces }, Printer(thread))
    }
}

impl Printer {
    /// Waits until everything is printed.
    pub(super) fn wait(mut self) {
        if let Some(thread) = self.0.take()
            && thread.join().is_err()
        {
            // As above.
        }
    }
}

impl Protocol for Shown {
    fn path(&self) -> &str {
        self.inner.path()
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        self.inner.encode(sample, adapter)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        let inner = self.inner.decoder(request);
        Box::new(ShownReply { inner, pieces: self.pieces.clone(), seen: 0, end: 0 })
    }
}

/// A reply whose new text is handed to the printer.
struct ShownReply {
    inner: Box<dyn Decode>,
    pieces: Sender<String>,
    /// Chunks handed over.
    seen: usize,
    /// Where their text ends.
    end: usize,
}

impl ShownReply {
    fn show(&mut self, reply: &Reply) {
        let new = reply.pieces.get(self.seen..).unwrap_or_default();
        if new.is_empty() {
            return;
        }
        for (chunk, &end) in reply.chunks.iter().skip(self.seen).zip(new) {
            let piece = reply.text.get(self.end..end as usize).unwrap_or_default();
            self.end = self.end.max(end as usize);
            if chunk.choice == 0 && !piece.is_empty() && self.pieces.send(piece.into()).is_err() {
                // Nobody prints any more.
            }
        }
        self.seen = reply.pieces.len();
    }
}

impl Decode for ShownReply {
    fn feed(&mut self, at: Stamp, bytes: &[u8], reply: &mut Reply) -> Progress {
        let progress = self.inner.feed(at, bytes, reply);
        self.show(reply);
        progress
    }

    fn end(&mut self, at: Stamp, end: End, reply: &mut Reply) {
        self.inner.end(at, end, reply);
        self.show(reply);
    }
}
