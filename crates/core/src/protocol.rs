//! One endpoint's language: samples to bodies, bytes to token events. No I/O.

use crate::{Conversation, Failure, Reply, Request, Sample, Stamp};
use bytes::Bytes;
use std::fmt::Debug;

/// Encodes samples for one endpoint and decodes its replies. Holds model name and sampling options.
pub trait Protocol: Debug + Send + Sync {
    /// Path of the endpoint below the base URL, as in `/v1/completions`.
    fn path(&self) -> &str;

    /// Media type of its bodies.
    fn content_type(&self) -> &'static str {
        "application/json"
    }

    /// The request body for `sample`, with the adapter to use, if any.
    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes;

    /// The requests of a `sample` of several turns; `None` if it has one, or the endpoint knows no
    /// conversations.
    fn conversation(&self, sample: &Sample, adapter: Option<&str>) -> Option<Conversation> {
        let _ = (sample, adapter);
        None
    }

    /// A decoder for the reply to `request`.
    fn decoder(&self, request: &Request) -> Box<dyn Decode>;
}

/// What a decoder wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes may follow.
    More,
    /// The reply is complete: whatever follows is not part of it.
    Done,
}

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// As HTTP says it should.
    Complete,
    /// Otherwise, and how.
    Broken(Failure),
}

/// Decodes the body of one reply with status 200.
///
/// Laws: how the body was cut into pieces changes stamps only; no input panics; after
/// [`Progress::Done`] nothing changes the reply any more.
pub trait Decode {
    /// The response has a header `metadata` with this value, where vLLM counts the tokens of an answer in
    /// bytes. Called before the first [`feed`](Self::feed).
    fn metadata(&mut self, value: &str, reply: &mut Reply) {
        let _ = (value, reply);
    }

    /// Looks at the memory that the next [`feed`](Self::feed) will need, so that it need not be waited for
    /// then.
    fn near(&self) {}

    /// Takes the next bytes of the body, received at `at`, and notes what they say in `reply`.
    fn feed(&mut self, at: Stamp, bytes: &[u8], reply: &mut Reply) -> Progress;

    /// The body ended at `at`. Sets `reply.failure` when the reply is not a success.
    ///
    /// Called exactly once, after [`Progress::Done`] too (then with [`End::Complete`]).
    fn end(&mut self, at: Stamp, end: End, reply: &mut Reply);
}
