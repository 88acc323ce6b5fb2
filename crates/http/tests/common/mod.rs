//! A protocol that is easy to write by hand, and a clock.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use bytes::Bytes;
use servebench_core::{Clock, Decode, End, Progress, Protocol, Reply, Request, Sample, Stamp};
use tokio::time::Instant;

/// The runtime's own time since then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestClock(pub(crate) Instant);

impl Clock for TestClock {
    fn now(&self) -> Stamp {
        Stamp::from(self.0.elapsed())
    }

    fn sleep_until(&self, at: Stamp) -> impl Future<Output = ()> {
        tokio::time::sleep_until(self.0 + at.offset())
    }
}

/// A protocol whose tokens are lines; `DONE` ends a reply.
#[derive(Debug)]
pub(crate) struct Lines;

impl Protocol for Lines {
    fn path(&self) -> &'static str {
        "/lines"
    }

    fn encode(&self, _sample: &Sample, _adapter: Option<&str>) -> Bytes {
        Bytes::from_static(b"{}")
    }

    fn decoder(&self, _request: &Request) -> Box<dyn Decode> {
        Box::<LineDecoder>::default()
    }
}

#[derive(Default)]
struct LineDecoder(Vec<u8>);

impl Decode for LineDecoder {
    fn feed(&mut self, at: Stamp, bytes: &[u8], reply: &mut Reply) -> Progress {
        self.0.extend_from_slice(bytes);
        while let Some(end) = self.0.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.0.drain(..=end).collect();
            reply.last_line = Some(at);
            match std::str::from_utf8(&line).unwrap().trim() {
                "DONE" => return Progress::Done,
                token => reply.push_chunk(at, Some(1), 0, token),
            }
        }
        Progress::More
    }

    fn end(&mut self, _at: Stamp, end: End, reply: &mut Reply) {
        if let End::Broken(failure) = end {
            reply.fail(failure);
        }
    }
}
