//! `/v1/responses`, as `vllm bench serve` asks for it.

use super::VllmOptions;
use super::content::text;
use crate::body::Body;
use crate::decoder::{Decoder, Problem, Reading};
use crate::json::field::{self, Count, Field, List, Present, Text, record};
use crate::server_error;
use bytes::Bytes;
use servebench_core::{Decode, Failure, FailureKind, Protocol, Reply, Request, Sample, Stamp};

/// A prompt in, a stream of typed events out.
#[derive(Debug)]
pub(super) struct Responses {
    pub(super) path: String,
    pub(super) options: VllmOptions,
}

impl Protocol for Responses {
    fn path(&self) -> &str {
        &self.path
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let mut body = Body::default();
        body.set("model", self.options.model(adapter));
        body.set("input", text(&sample.prompt));
        body.set("max_output_tokens", sample.output_len);
        body.set("stream", true);
        // A server that keeps responses would grow over the run.
        body.set("store", false);
        self.options.complete(body, sample)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(Decoder::<ResponsesReading>::new(request))
    }
}

record! {
    /// One event of a stream.
    Event<'a> {
        "type" => kind: Text<'a>,
        "delta" => delta: Text<'a>,
        "response" => response: Response<'a>,
        "error" => error: Present,
    }
}

record! {
    /// A response, as far as it has come.
    Response<'a> {
        "object" => object: Text<'a>,
        "status" => status: Text<'a>,
        "incomplete_details" => incomplete: Incomplete<'a>,
        "output" => output: List<Item<'a>>,
        "usage" => usage: Usage,
    }
}

record! {
    /// Why a response is not complete.
    Incomplete<'a> {
        "reason" => reason: Text<'a>,
    }
}

record! {
    /// A message of a response, or what else it consists of.
    Item<'a> {
        "content" => content: List<Part<'a>>,
    }
}

record! {
    /// A part of a message.
    Part<'a> {
        "text" => text: Text<'a>,
    }
}

record! {
    /// The server's counts.
    Usage {
        "input_tokens" => input: Count,
        "output_tokens" => output: Count,
        "input_tokens_details" => details: InputDetails,
    }
}

record! {
    /// Where the prompt's tokens came from.
    InputDetails {
        "cached_tokens" => cached: Count,
    }
}

/// Reads the events of one reply.
#[derive(Debug, Default)]
struct ResponsesReading {
    /// The event came that ends a response.
    has_ended: bool,
}

impl Reading for ResponsesReading {
    fn frame(&mut self, at: Stamp, data: &[u8], reply: &mut Reply) -> Result<(), Problem> {
        let strict: Option<Event<'_>> = field::strict(data);
        let is_plain =
            |event: &Event<'_>| !event.error.0 && !event.kind.is_empty() && !is_failure(event);
        if let Some(event) = strict.filter(is_plain) {
            return self.take(at, &event, reply);
        }
        let value = crate::json::value(data).map_err(Problem::Unreadable)?;
        if let Some(failure) = server_error::in_frame(&value) {
            return Err(Problem::Failed(failure));
        }
        let event = Event::loose(&value);
        if is_failure(&event) {
            let told = value.get("response").and_then(server_error::in_frame);
            return Err(Problem::Failed(told.unwrap_or_else(|| server_error::in_event(data))));
        }
        // Without a type it is no event, but may be a response that came whole.
        let response = Response::loose(&value);
        if event.kind.is_empty() && response.object.0 == "response" {
            let parts = response.output.iter().flat_map(|item| item.content.iter());
            let text: String = parts.map(|part| &*part.text.0).collect();
            if !text.is_empty() {
                reply.push_chunk(at, None, 0, &text);
            }
            return self.finish(&response, reply);
        }
        self.take(at, &event, reply)
    }

    fn finished(&self) -> Option<usize> {
        // There are no choices to wait for.
        self.has_ended.then_some(usize::MAX)
    }
}

/// True for an event that says why there is no response.
fn is_failure(event: &Event<'_>) -> bool {
    matches!(&*event.kind.0, "error" | "response.failed")
}

impl ResponsesReading {
    fn take(&mut self, at: Stamp, event: &Event<'_>, reply: &mut Reply) -> Result<(), Problem> {
        match &*event.kind.0 {
            // Tokens without text of their own have events as well.
            "response.output_text.delta"
            | "response.reasoning_text.delta"
            | "response.function_call_arguments.delta"
            | "response.refusal.delta" => {
                let is_text = event.kind.0.ends_with("_text.delta");
                reply.push_chunk(at, None, 0, if is_text { &event.delta.0 } else { "" });
                Ok(())
            }
            "response.completed" | "response.incomplete" => self.finish(&event.response, reply),
            _ => Ok(()),
        }
    }

    /// Takes the response as it stands at its end. Without one token it is none.
    fn finish(&mut self, response: &Response<'_>, reply: &mut Reply) -> Result<(), Problem> {
        self.has_ended = true;
        let usage = &response.usage;
        if let Some(input) = usage.input.0.filter(|&n| n > 0) {
            reply.prompt_tokens = Some(input);
        }
        if let Some(output) = usage.output.0 {
            reply.completion_tokens = Some(output);
        }
        if let Some(cached) = usage.details.cached.0 {
            reply.cached_tokens = Some(cached.into());
        }
        let reason = if response.incomplete.reason.is_empty() {
            &response.status.0
        } else {
            &response.incomplete.reason.0
        };
        reply.finish_reason = (!reason.is_empty()).then(|| (&**reason).into());
        if reply.chunks.is_empty() {
            let failure = Failure::new(FailureKind::Empty, "the reply holds no token");
            return Err(Problem::Failed(failure));
        }
        Ok(())
    }
}
