//! Events and bodies of `/generate`: the text so far, with `meta_info`.

use super::{Lane, Shape, push_cached_details, push_number};

impl Shape {
    pub(super) fn native_opening(&self) -> Vec<u8> {
        format!("],\"meta_info\":{{\"id\":\"{}\",\"finish_reason\":", self.id).into_bytes()
    }

    pub(super) fn native_event(&self, out: &mut Vec<u8>, lane: &Lane, to: u32, seconds: f64) {
        out.extend_from_slice(b"data: ");
        let from = if self.live.config.incremental_output { lane.sent } else { 0 };
        self.native_object(out, lane, from, to, seconds);
        out.extend_from_slice(b"\n\n");
    }

    pub(super) fn native_whole(&self, lanes: &mut [Lane], seconds: f64) -> Vec<u8> {
        let mut out = Vec::new();
        if self.listed {
            out.push(b'[');
        }
        for (place, lane) in lanes.iter_mut().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            self.native_object(&mut out, lane, 0, lane.total, seconds);
        }
        if self.listed {
            out.push(b']');
        }
        out
    }

    fn native_object(&self, out: &mut Vec<u8>, lane: &Lane, from: u32, to: u32, seconds: f64) {
        let last = to >= lane.total;
        out.push(b'{');
        if !self.live.config.omit_text {
            out.extend_from_slice(b"\"text\":\"");
            self.live.pieces.write_text(out, from, to);
            out.extend_from_slice(b"\",");
        }
        out.extend_from_slice(b"\"output_ids\":[");
        self.live.pieces.write_ids(out, from, to);
        out.extend_from_slice(&lane.opening);
        if !last {
            out.extend_from_slice(b"null");
        } else if lane.stops {
            out.extend_from_slice(b"{\"type\":\"stop\",\"matched\":2}");
        } else {
            out.extend_from_slice(b"{\"type\":\"length\",\"length\":");
            push_number(out, u64::from(to));
            out.push(b'}');
        }
        out.extend_from_slice(b",\"prompt_tokens\":");
        push_number(out, u64::from(lane.prompt_tokens));
        out.extend_from_slice(
            b",\"weight_version\":\"default\",\"num_retractions\":0,\"reasoning_tokens\":0,\
            \"completion_tokens\":",
        );
        push_number(out, u64::from(to));
        let cached = u64::from(lane.progress.cached_tokens);
        out.extend_from_slice(b",\"cached_tokens\":");
        push_number(out, cached);
        if cached > 0 {
            out.push(b',');
            push_cached_details(out, cached);
        }
        if last {
            push_last(out, lane, seconds);
        }
        out.push(b'}');
        if self.listed {
            out.extend_from_slice(b",\"index\":");
            push_number(out, u64::from(lane.index));
        }
        out.push(b'}');
    }
}

/// What only a sequence's last `meta_info` holds.
fn push_last(out: &mut Vec<u8>, lane: &Lane, seconds: f64) {
    let progress = &lane.progress;
    out.extend_from_slice(format!(",\"e2e_latency\":{seconds:.9}").as_bytes());
    if progress.drafted > 0 {
        let length = f64::from(lane.total) / f64::from(progress.decode_steps.max(1));
        let rate = f64::from(progress.accepted) / f64::from(progress.drafted);
        let counts = format!(
            ",\"spec_accept_rate\":{rate:.6},\"spec_accept_length\":{length:.6},\
             \"spec_accept_token_num\":{},\"spec_draft_token_num\":{},\"spec_verify_ct\":{}",
            progress.accepted, progress.drafted, progress.decode_steps
        );
        out.extend_from_slice(counts.as_bytes());
    }
}
