//! TensorRT-LLM behind Triton: `/v2/models/ensemble/generate_stream`.
//!
//! The server is asked to accumulate, so each frame should hold all text so far; the `ensemble` of some
//! versions sends pieces all the same. Both are read. Nothing counts tokens, and nothing but the end of
//! the body says that a reply is complete.

use crate::body::{Body, prompt_value};
use crate::decoder::{Decoder, Problem, Reading};
use crate::json::field::{self, Field, Present, Text, record};
use crate::options::GenerateOptions;
use crate::server_error;
use crate::transcript::{Change, Transcript};
use bytes::Bytes;
use servebench_core::{Decode, Protocol, Reply, Request, Sample, Stamp};
use std::sync::Arc;

/// The lowest temperature that is sent: TensorRT-LLM takes none of 0.
const COLDEST: f64 = 1e-6;
/// A token id that no model has: generation never meets its end.
const NO_TOKEN: u32 = 1 << 20;

/// The protocol of Triton's generate extension. The path names the model, and there are no adapters.
#[derive(Debug)]
struct Triton {
    path: &'static str,
    options: GenerateOptions,
}

/// The protocol at `path` with these options.
pub(crate) fn protocol(path: &'static str, options: GenerateOptions) -> Arc<dyn Protocol> {
    Arc::new(Triton { path, options })
}

impl Protocol for Triton {
    fn path(&self) -> &str {
        self.path
    }

    fn encode(&self, sample: &Sample, _adapter: Option<&str>) -> Bytes {
        let options = &self.options;
        let mut body = Body::default();
        body.set("accumulate_tokens", true);
        body.set("text_input", prompt_value(&sample.prompt));
        body.set("temperature", options.temperature.max(COLDEST));
        body.set("top_p", options.top_p);
        body.set("max_tokens", sample.output_len);
        body.set("stream", options.stream);
        if options.ignore_eos {
            body.set("min_length", sample.output_len);
            body.set("end_id", NO_TOKEN);
        }
        body.merge(&options.extra_body);
        body.merge(&sample.extra_body);
        body.into_bytes()
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(Decoder::<TritonReading>::new(request))
    }
}

record! {
    /// One frame of a stream.
    Frame<'a> {
        "text_output" => text: Text<'a>,
        "error" => error: Present,
    }
}

/// Reads the frames of one reply.
#[derive(Debug, Default)]
struct TritonReading {
    transcript: Transcript,
}

impl Reading for TritonReading {
    const ENDS_WITH_BODY: bool = true;

    fn frame(&mut self, at: Stamp, data: &[u8], reply: &mut Reply) -> Result<(), Problem> {
        let strict: Option<Frame<'_>> = field::strict(data);
        // Without text it may be an error, whatever its shape.
        if let Some(frame) = strict.filter(|frame| !frame.text.is_empty() && !frame.error.0) {
            self.take(at, &frame, reply);
            return Ok(());
        }
        let value = crate::json::value(data).map_err(Problem::Unreadable)?;
        if let Some(failure) = server_error::in_frame(&value) {
            return Err(Problem::Failed(failure));
        }
        self.take(at, &Frame::loose(&value), reply);
        Ok(())
    }

    fn finished(&self) -> Option<usize> {
        None
    }
}

impl TritonReading {
    /// A frame brings tokens when its text changes; how many, nobody says.
    fn take(&mut self, at: Stamp, frame: &Frame<'_>, reply: &mut Reply) {
        match self.transcript.take(&frame.text.0, false, false) {
            Change::Nothing => return,
            Change::Grown(from) => reply.text.push_str(&self.transcript.text()[from..]),
            Change::Rewritten => {
                self.transcript.text().clone_into(&mut reply.text);
                let end = u32::try_from(reply.text.len()).unwrap_or(u32::MAX);
                for piece in &mut reply.pieces {
                    *piece = end.min(*piece);
                }
            }
        }
        reply.push_stamp(at, None, 0);
    }
}
