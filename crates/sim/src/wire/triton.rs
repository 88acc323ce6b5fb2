//! Events of Triton's generate extension with TensorRT-LLM: the text so far and nothing else of use.

use super::{Lane, Shape};

/// What stands before the text; the model's name is part of the path.
const HEAD: &[u8] = b"{\"context_logits\":0.0,\"cum_log_probs\":0.0,\"generation_logits\":0.0,\
    \"model_name\":\"ensemble\",\"model_version\":\"1\",\"output_log_probs\":0.0,\
    \"sequence_end\":false,\"sequence_id\":0,\"sequence_start\":false,\"text_output\":\"";

impl Shape {
    pub(super) fn triton_event(&self, out: &mut Vec<u8>, lane: &Lane, to: u32) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(HEAD);
        let from = if self.incremental { lane.sent } else { 0 };
        self.live.pieces.write_text(out, from, to);
        out.extend_from_slice(b"\"}\n\n");
    }
}
