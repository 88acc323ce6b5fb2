//! The bytes of replies, made by concatenation: no JSON value is built per token.

mod native;
mod number;
mod openai;
mod responses;
mod triton;

use crate::engine::Progress;
use crate::live::Live;
use crate::text::TOOL_MINIMUM;
use number::push_number;
use std::sync::Arc;

/// The generating endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Generate,
    Completions,
    Chat,
    Responses,
    /// Transcriptions and translations of recordings.
    Transcription,
    Triton,
}

/// An answer that is an error.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl ApiError {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    /// The OpenAI error object.
    pub(crate) fn json(&self) -> String {
        let kind = match self.status {
            401 => "AuthenticationError",
            404 => "NotFoundError",
            500.. => "InternalServerError",
            _ => "BadRequestError",
        };
        serde_json::json!({"error": {"message": self.message, "type": kind, "param": null,
            "code": self.status}})
        .to_string()
    }
}

/// One sequence of a reply, and how much of it was sent.
#[derive(Debug)]
pub(crate) struct Lane {
    /// Place among the reply's choices or rows.
    pub(crate) index: u32,
    pub(crate) prompt_tokens: u32,
    /// Whether it is the first choice of its prompt.
    pub(crate) first_of_prompt: bool,
    /// Tokens it will have.
    pub(crate) total: u32,
    /// Whether it ends by its own will rather than at its limit.
    pub(crate) stops: bool,
    /// Of the total, the reasoning tokens at its beginning.
    pub(crate) reasoning: u32,
    /// Tokens per event.
    pub(crate) interval: u32,
    /// Tokens sent.
    pub(crate) sent: u32,
    /// How far its generation is.
    pub(crate) progress: Progress,
    /// Whether its last event was sent.
    pub(crate) done: bool,
    /// The bytes with which its events begin.
    opening: Vec<u8>,
}

impl Lane {
    pub(crate) fn new(index: u32, prompt_tokens: u32, total: u32) -> Self {
        Self {
            index,
            prompt_tokens,
            first_of_prompt: true,
            total,
            stops: false,
            reasoning: 0,
            interval: 1,
            sent: 0,
            progress: Progress::default(),
            done: false,
            opening: Vec::new(),
        }
    }

    /// About how long an event is, in bytes.
    pub(crate) fn event_bytes(&self) -> usize {
        self.opening.len() + 128
    }

    /// Whether an event is due.
    pub(crate) fn ready(&self) -> bool {
        !self.done
            && (self.progress.finished
                || self.progress.generated >= self.sent.saturating_add(self.interval))
    }
}

/// What the events of one reply have in common.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) endpoint: Endpoint,
    pub(crate) live: Arc<Live>,
    /// The reply's id, escaped for JSON, without quotes.
    pub(crate) id: String,
    /// Whether a native reply is a list.
    pub(crate) listed: bool,
    pub(crate) include_usage: bool,
    pub(crate) continuous_usage: bool,
    pub(crate) cached_details: bool,
    /// Whether Triton sends pieces of text rather than all of it.
    pub(crate) incremental: bool,
    /// The function that is called, escaped for JSON, with quotes.
    pub(crate) tool: Option<String>,
    /// Whether the text is a JSON object, of which every token is a byte, in place of prose.
    pub(crate) json: bool,
}

impl Shape {
    /// Makes the bytes with which a lane's events begin.
    pub(crate) fn open(&self, lane: &mut Lane) {
        lane.opening = match self.endpoint {
            Endpoint::Generate => self.native_opening(),
            Endpoint::Completions | Endpoint::Chat | Endpoint::Transcription => {
                self.openai_opening(lane.index)
            }
            Endpoint::Responses => self.responses_opening(),
            Endpoint::Triton => Vec::new(),
        };
    }

    /// Appends the event that takes `lane` to `to` tokens, the lane's last one if there are no
    /// more. `seconds` is the request's age.
    pub(crate) fn event(&self, out: &mut Vec<u8>, lane: &mut Lane, to: u32, seconds: f64) {
        match self.endpoint {
            Endpoint::Generate => self.native_event(out, lane, to, seconds),
            Endpoint::Completions => self.completions_event(out, lane, to),
            Endpoint::Chat => self.chat_event(out, lane, to),
            Endpoint::Responses => self.responses_event(out, lane, to),
            Endpoint::Transcription => self.transcription_event(out, lane, to),
            Endpoint::Triton => self.triton_event(out, lane, to),
        }
        lane.sent = to;
        lane.done = to >= lane.total;
    }

    /// Appends what follows the last event of a stream, `[DONE]` aside.
    pub(crate) fn closing(&self, out: &mut Vec<u8>, lanes: &[Lane]) {
        match self.endpoint {
            Endpoint::Completions | Endpoint::Chat | Endpoint::Transcription => {
                self.openai_closing(out, lanes);
            }
            Endpoint::Responses => self.responses_closing(out, lanes),
            Endpoint::Generate | Endpoint::Triton => {}
        }
    }

    /// What ends a stream that ends well.
    pub(crate) fn done(&self) -> &'static [u8] {
        match self.endpoint {
            Endpoint::Triton | Endpoint::Responses => b"",
            _ => b"data: [DONE]\n\n",
        }
    }

    /// The body of a reply that is not streamed.
    pub(crate) fn whole(&self, lanes: &mut [Lane], seconds: f64) -> Vec<u8> {
        match self.endpoint {
            Endpoint::Generate => self.native_whole(lanes, seconds),
            Endpoint::Completions | Endpoint::Chat => self.openai_whole(lanes),
            Endpoint::Responses => self.responses_whole(lanes),
            Endpoint::Transcription => self.transcription_whole(lanes),
            Endpoint::Triton => {
                let mut out = Vec::new();
                for lane in lanes {
                    self.triton_event(&mut out, lane, lane.total);
                }
                out
            }
        }
    }

    /// Why a lane ended, in the words of the OpenAI endpoints.
    fn finish_reason(&self, lane: &Lane) -> &'static str {
        if self.tool.is_some() && lane.total - lane.reasoning >= TOOL_MINIMUM {
            "tool_calls"
        } else if lane.stops {
            "stop"
        } else {
            "length"
        }
    }
}

/// Appends `,"cached_tokens_details":{…}` (without the comma), all of it in device memory.
fn push_cached_details(out: &mut Vec<u8>, cached: u64) {
    out.extend_from_slice(b"\"cached_tokens_details\":{\"device\":");
    push_number(out, cached);
    out.extend_from_slice(b",\"host\":0}");
}
