//! What the load engine drives: something that takes a request and fills a reply.

use crate::{Conversation, Reply};
use bytes::Bytes;
use std::future::Future;
use std::sync::Arc;

/// A request whose body is already encoded, so that the run only sends bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Place in the plan, from 0.
    pub id: u64,
    /// The encoded body.
    pub body: Bytes,
    /// Headers of this request alone (a routing key).
    pub headers: Vec<(String, String)>,
    /// Prompt tokens as the dataset counted them.
    pub prompt_len: u32,
    /// Output tokens asked for.
    pub output_len: u32,
    /// The conversation that this is the first turn of. Its further turns have the ids after this
    /// one.
    pub conversation: Option<Arc<Conversation>>,
}

impl Request {
    /// Requests that this one stands for: 1, or the turns of its conversation.
    pub fn turns(&self) -> usize {
        self.conversation.as_ref().map_or(1, |conversation| conversation.turns.len().max(1))
    }
}

/// Sends requests. One value serves one worker for a whole run; it is never shared between threads.
pub trait Backend: 'static {
    /// Sends one request and reads its reply to the end into `reply`.
    ///
    /// It cannot fail: a failure is part of the reply, and what came before it is kept. Dropping
    /// the future cancels the request and leaves in `reply` what has come so far.
    ///
    /// The future is to be woken when the first byte of a reply comes, and a few times a second while
    /// more come: whoever drives it takes that for a sign of life.
    fn send(&self, request: &Request, reply: &mut Reply) -> impl Future<Output = ()>;

    /// Gets ready for `concurrency` requests at once (opens connections) before the clock starts.
    fn warm(&self, concurrency: usize) -> impl Future<Output = ()> {
        let _ = concurrency;
        async {}
    }
}
