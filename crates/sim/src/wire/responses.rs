//! Events and bodies of `/v1/responses`.

use super::openai::Counts;
use super::{Lane, Shape, push_number};

impl Shape {
    /// The place of a piece of text, which all its events name.
    fn place(&self) -> String {
        format!("\"item_id\":\"msg_{}\",\"output_index\":0,\"content_index\":0", self.id)
    }

    pub(super) fn responses_opening(&self) -> Vec<u8> {
        format!(
            "event: response.output_text.delta\ndata: {{\"type\":\"response.output_text.delta\",{},\
             \"logprobs\":[],\"delta\":\"",
            self.place()
        )
        .into_bytes()
    }

    /// First what says that a response and its text begin, then one delta for each event.
    pub(super) fn responses_event(&self, out: &mut Vec<u8>, lane: &Lane, to: u32) {
        if lane.sent == 0 {
            for kind in ["response.created", "response.in_progress"] {
                push_event(out, kind, &format!("\"response\":{}}}", self.begun()));
            }
            let item = format!("\"id\":\"msg_{}\",\"type\":\"message\"", self.id);
            let item =
                format!("\"output_index\":0,\"item\":{{{item},\"status\":\"in_progress\"}}}}");
            push_event(out, "response.output_item.added", &item);
        }
        let boundary = lane.reasoning.clamp(lane.sent, to);
        if lane.sent < boundary {
            let delta = format!("{},\"delta\":\"", self.place());
            push_event_head(out, "response.reasoning_text.delta", &delta);
            self.live.pieces.write_text(out, lane.sent, boundary);
            out.extend_from_slice(b"\"}\n\n");
        }
        if boundary < to {
            out.extend_from_slice(&lane.opening);
            self.live.pieces.write_text(out, boundary, to);
            out.extend_from_slice(b"\"}\n\n");
        }
        if to >= lane.total {
            let text = format!("{},\"text\":\"", self.place());
            push_event_head(out, "response.output_text.done", &text);
            self.live.pieces.write_text(out, lane.reasoning, lane.total);
            out.extend_from_slice(b"\"}\n\n");
        }
    }

    /// The event that ends a response, with its counts.
    pub(super) fn responses_closing(&self, out: &mut Vec<u8>, lanes: &[Lane]) {
        push_event_head(out, "response.completed", "\"response\":");
        self.push_response(out, lanes);
        out.extend_from_slice(b"}\n\n");
    }

    pub(super) fn responses_whole(&self, lanes: &[Lane]) -> Vec<u8> {
        let mut out = Vec::new();
        self.push_response(&mut out, lanes);
        out
    }

    /// What every state of the response begins with.
    fn head_of_response(&self, status: &str) -> String {
        format!(
            "{{\"id\":\"resp_{}\",\"object\":\"response\",\"created_at\":{},\"model\":{},\
             \"error\":null,\"status\":\"{status}\"",
            self.id, self.live.config.created, self.live.model_json
        )
    }

    fn begun(&self) -> String {
        format!("{},\"output\":[],\"usage\":null}}", self.head_of_response("in_progress"))
    }

    fn push_response(&self, out: &mut Vec<u8>, lanes: &[Lane]) {
        let stops = lanes.iter().all(|lane| lane.stops);
        let head = self.head_of_response(if stops { "completed" } else { "incomplete" });
        out.extend_from_slice(head.as_bytes());
        let reason: &[u8] = if stops { b"null" } else { b"{\"reason\":\"max_output_tokens\"}" };
        out.extend_from_slice(b",\"incomplete_details\":");
        out.extend_from_slice(reason);
        out.extend_from_slice(b",\"output\":[");
        for (place, lane) in lanes.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            let head = format!(
                "{{\"id\":\"msg_{}\",\"type\":\"message\",\"role\":\"assistant\",\"status\":\"completed\",\
                 \"content\":[{{\"type\":\"output_text\",\"annotations\":[],\"text\":\"",
                self.id
            );
            out.extend_from_slice(head.as_bytes());
            self.live.pieces.write_text(out, lane.reasoning, lane.total);
            out.extend_from_slice(b"\"}]}");
        }
        let counts = Counts::of(lanes);
        out.extend_from_slice(b"],\"usage\":{\"input_tokens\":");
        push_number(out, counts.prompt);
        out.extend_from_slice(b",\"input_tokens_details\":{\"cached_tokens\":");
        push_number(out, counts.cached);
        out.extend_from_slice(b"},\"output_tokens\":");
        push_number(out, counts.completion);
        out.extend_from_slice(b",\"output_tokens_details\":{\"reasoning_tokens\":");
        push_number(out, counts.reasoning);
        out.extend_from_slice(b"},\"total_tokens\":");
        push_number(out, counts.prompt + counts.completion);
        out.extend_from_slice(b"}}");
    }
}

fn push_event_head(out: &mut Vec<u8>, kind: &str, fields: &str) {
    let head = format!("event: {kind}\ndata: {{\"type\":\"{kind}\",{fields}");
    out.extend_from_slice(head.as_bytes());
}

fn push_event(out: &mut Vec<u8>, kind: &str, fields: &str) {
    push_event_head(out, kind, fields);
    out.extend_from_slice(b"\n\n");
}
