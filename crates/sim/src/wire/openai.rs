//! Events and bodies of `/v1/completions` and `/v1/chat/completions`.

use super::{Endpoint, Lane, Shape, push_cached_details, push_number};
use crate::text::write_tool_arguments;

const NOT_FINISHED: &[u8] = b",\"logprobs\":null,\"finish_reason\":null,\"matched_stop\":null}]";

impl Shape {
    fn head(&self) -> String {
        let object = match self.endpoint {
            Endpoint::Chat => "chat.completion.chunk",
            Endpoint::Transcription => "transcription.chunk",
            _ => "text_completion",
        };
        self.head_of(object)
    }

    fn head_of(&self, object: &str) -> String {
        let (id, live) = (&self.id, &self.live);
        let prefix = match self.endpoint {
            Endpoint::Chat => "chatcmpl",
            Endpoint::Transcription => "trsc",
            _ => "cmpl",
        };
        format!(
            "{{\"id\":\"{prefix}-{id}\",\"object\":\"{object}\",\"created\":{},\"model\":{},\
             \"choices\":[",
            live.config.created, live.model_json
        )
    }

    pub(super) fn openai_opening(&self, index: u32) -> Vec<u8> {
        let field = if self.endpoint == Endpoint::Completions { "text\":" } else { "delta\":{" };
        format!("data: {}{{\"index\":{index},\"{field}", self.head()).into_bytes()
    }

    pub(super) fn completions_event(&self, out: &mut Vec<u8>, lane: &Lane, to: u32) {
        out.extend_from_slice(&lane.opening);
        out.push(b'"');
        self.write_text(out, lane, lane.sent, to);
        out.push(b'"');
        if to < lane.total {
            out.extend_from_slice(NOT_FINISHED);
        } else {
            self.push_finished(out, lane);
        }
        self.push_event_end(out, lane, to);
    }

    /// Chat events: the role first, then one field per event, then the finish reason alone.
    pub(super) fn chat_event(&self, out: &mut Vec<u8>, lane: &Lane, to: u32) {
        if lane.sent == 0 {
            out.extend_from_slice(&lane.opening);
            out.extend_from_slice(b"\"role\":\"assistant\",\"content\":\"\"}");
            out.extend_from_slice(NOT_FINISHED);
            self.push_event_end(out, lane, 0);
        }
        let boundary = lane.reasoning.clamp(lane.sent, to);
        if lane.sent < boundary {
            out.extend_from_slice(&lane.opening);
            out.push(b'"');
            out.extend_from_slice(self.live.config.reasoning_field.name().as_bytes());
            out.extend_from_slice(b"\":\"");
            self.live.pieces.write_text(out, lane.sent, boundary);
            out.extend_from_slice(b"\"}");
            out.extend_from_slice(NOT_FINISHED);
            self.push_event_end(out, lane, boundary);
        }
        if boundary < to {
            out.extend_from_slice(&lane.opening);
            if let Some(tool) = &self.tool {
                self.push_tool_delta(out, lane, tool, boundary, to);
            } else {
                out.extend_from_slice(b"\"content\":\"");
                self.write_text(out, lane, boundary, to);
                out.extend_from_slice(b"\"}");
            }
            out.extend_from_slice(NOT_FINISHED);
            self.push_event_end(out, lane, to);
        }
        if to >= lane.total {
            out.extend_from_slice(&lane.opening);
            out.push(b'}');
            self.push_finished(out, lane);
            self.push_event_end(out, lane, to);
        }
    }

    /// Events of a transcription: those of a chat without a role, the last one with its finish reason.
    pub(super) fn transcription_event(&self, out: &mut Vec<u8>, lane: &Lane, to: u32) {
        out.extend_from_slice(&lane.opening);
        out.extend_from_slice(b"\"content\":\"");
        self.live.pieces.write_text(out, lane.sent, to);
        out.extend_from_slice(b"\"}");
        if to < lane.total {
            out.extend_from_slice(NOT_FINISHED);
        } else {
            self.push_finished(out, lane);
        }
        self.push_event_end(out, lane, to);
    }

    pub(super) fn transcription_whole(&self, lanes: &[Lane]) -> Vec<u8> {
        let mut out = b"{\"text\":\"".to_vec();
        for lane in lanes {
            self.live.pieces.write_text(&mut out, 0, lane.total);
        }
        out.extend_from_slice(b"\",\"usage\":");
        self.push_usage(&mut out, &Counts::of(lanes));
        out.push(b'}');
        out
    }

    /// The first delta of a call has its name as well.
    fn push_tool_delta(&self, out: &mut Vec<u8>, lane: &Lane, tool: &str, from: u32, to: u32) {
        out.extend_from_slice(b"\"tool_calls\":[{\"index\":0,");
        if from == lane.reasoning {
            self.push_call_name(out, lane, tool);
        } else {
            out.extend_from_slice(b"\"function\":{");
        }
        push_arguments(out, lane, from, to);
        out.extend_from_slice(b"}}]}");
    }

    fn push_call_name(&self, out: &mut Vec<u8>, lane: &Lane, tool: &str) {
        let call = format!(
            "\"id\":\"call_{}_{}\",\"type\":\"function\",\"function\":{{\"name\":{tool},",
            self.id, lane.index
        );
        out.extend_from_slice(call.as_bytes());
    }

    fn push_finished(&self, out: &mut Vec<u8>, lane: &Lane) {
        out.extend_from_slice(b",\"logprobs\":null,\"finish_reason\":\"");
        out.extend_from_slice(self.finish_reason(lane).as_bytes());
        out.extend_from_slice(b"\",\"matched_stop\":null}]");
    }

    fn push_event_end(&self, out: &mut Vec<u8>, lane: &Lane, to: u32) {
        if self.continuous_usage {
            out.extend_from_slice(b",\"usage\":");
            let counts = Counts {
                prompt: u64::from(lane.prompt_tokens),
                completion: u64::from(to),
                reasoning: u64::from(lane.reasoning.min(to)),
                cached: u64::from(lane.progress.cached_tokens),
            };
            self.push_usage(out, &counts);
            out.extend_from_slice(b"}\n\n");
        } else {
            out.extend_from_slice(b",\"usage\":null}\n\n");
        }
    }

    pub(super) fn openai_closing(&self, out: &mut Vec<u8>, lanes: &[Lane]) {
        let counts = Counts::of(lanes);
        if self.cached_details && counts.cached > 0 {
            out.extend_from_slice(format!("data: {}],\"sglext\":{{", self.head()).as_bytes());
            push_cached_details(out, counts.cached);
            out.extend_from_slice(b"},\"usage\":null}\n\n");
        }
        if self.include_usage {
            out.extend_from_slice(format!("data: {}],\"usage\":", self.head()).as_bytes());
            self.push_usage(out, &counts);
            out.extend_from_slice(b"}\n\n");
        }
    }

    pub(super) fn openai_whole(&self, lanes: &mut [Lane]) -> Vec<u8> {
        let object = match self.endpoint {
            Endpoint::Chat => "chat.completion",
            _ => "text_completion",
        };
        let mut out = self.head_of(object).into_bytes();
        for (place, lane) in lanes.iter_mut().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"index\":");
            push_number(&mut out, u64::from(lane.index));
            if self.endpoint == Endpoint::Chat {
                self.push_message(&mut out, lane);
            } else {
                out.extend_from_slice(b",\"text\":\"");
                self.write_text(&mut out, lane, 0, lane.total);
                out.push(b'"');
            }
            self.push_finished(&mut out, lane);
            out.pop(); // The list goes on.
        }
        out.push(b']');
        let counts = Counts::of(lanes);
        if self.cached_details && counts.cached > 0 {
            out.extend_from_slice(b",\"sglext\":{");
            push_cached_details(&mut out, counts.cached);
            out.push(b'}');
        }
        out.extend_from_slice(b",\"usage\":");
        self.push_usage(&mut out, &counts);
        out.push(b'}');
        out
    }

    fn push_message(&self, out: &mut Vec<u8>, lane: &Lane) {
        out.extend_from_slice(b",\"message\":{\"role\":\"assistant\",\"content\":");
        if lane.reasoning < lane.total && self.tool.is_none() {
            out.push(b'"');
            self.write_text(out, lane, lane.reasoning, lane.total);
            out.push(b'"');
        } else {
            out.extend_from_slice(b"null");
        }
        out.extend_from_slice(b",\"");
        out.extend_from_slice(self.live.config.reasoning_field.name().as_bytes());
        out.extend_from_slice(b"\":");
        if lane.reasoning > 0 {
            out.push(b'"');
            self.live.pieces.write_text(out, 0, lane.reasoning);
            out.push(b'"');
        } else {
            out.extend_from_slice(b"null");
        }
        out.extend_from_slice(b",\"tool_calls\":");
        match &self.tool {
            Some(tool) if lane.reasoning < lane.total => {
                out.extend_from_slice(b"[{");
                self.push_call_name(out, lane, tool);
                push_arguments(out, lane, lane.reasoning, lane.total);
                out.extend_from_slice(b"}}]");
            }
            _ => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }

    /// Appends the text of a lane's tokens `from..to`, none of which is reasoning.
    fn write_text(&self, out: &mut Vec<u8>, lane: &Lane, from: u32, to: u32) {
        if self.json {
            let reasoning = lane.reasoning;
            write_tool_arguments(out, lane.total - reasoning, from - reasoning, to - reasoning);
        } else {
            self.live.pieces.write_text(out, from, to);
        }
    }

    fn push_usage(&self, out: &mut Vec<u8>, counts: &Counts) {
        out.extend_from_slice(b"{\"prompt_tokens\":");
        push_number(out, counts.prompt);
        out.extend_from_slice(b",\"total_tokens\":");
        push_number(out, counts.prompt + counts.completion);
        out.extend_from_slice(b",\"completion_tokens\":");
        push_number(out, counts.completion);
        out.extend_from_slice(b",\"prompt_tokens_details\":");
        if self.live.config.cache_report {
            out.extend_from_slice(b"{\"cached_tokens\":");
            push_number(out, counts.cached);
            out.push(b'}');
        } else {
            out.extend_from_slice(b"null");
        }
        out.extend_from_slice(b",\"reasoning_tokens\":");
        push_number(out, counts.reasoning);
        out.push(b'}');
    }
}

fn push_arguments(out: &mut Vec<u8>, lane: &Lane, from: u32, to: u32) {
    let reasoning = lane.reasoning;
    out.extend_from_slice(b"\"arguments\":\"");
    write_tool_arguments(out, lane.total - reasoning, from - reasoning, to - reasoning);
    out.push(b'"');
}

/// The numbers of a `usage` object.
pub(super) struct Counts {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    pub(super) reasoning: u64,
    pub(super) cached: u64,
}

impl Counts {
    /// Over a whole reply. A prompt that has several choices is counted once.
    pub(super) fn of(lanes: &[Lane]) -> Self {
        let sum = |field: fn(&Lane) -> u32| lanes.iter().map(|lane| u64::from(field(lane))).sum();
        let first = |field: fn(&Lane) -> u32| {
            let firsts = lanes.iter().filter(|lane| lane.first_of_prompt);
            firsts.map(|lane| u64::from(field(lane))).sum()
        };
        Self {
            prompt: first(|lane| lane.prompt_tokens),
            completion: sum(|lane| lane.total),
            reasoning: sum(|lane| lane.reasoning),
            cached: first(|lane| lane.progress.cached_tokens),
        }
    }
}
