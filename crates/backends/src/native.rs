//! SGLang's native route `/generate`.

use crate::body::{Body, prompt_value, uris};
use crate::cached::CachedParts;
use crate::choices::{Choices, Rise};
use crate::decoder::{Decoder, Problem, Reading};
use crate::json::field::{self, Count, Field, Finish, Number, Present, Text, record};
use crate::options::GenerateOptions;
use crate::server_error;
use crate::transcript::{Change, Transcript};
use bytes::Bytes;
use serde_json::{Value, json};
use servebench_core::{Decode, Prompt, Protocol, Reply, Request, Sample, Stamp};
use std::sync::Arc;

/// The native protocol: prompts as text or ids, replies with cumulative counts.
#[derive(Debug)]
struct Native {
    path: &'static str,
    options: GenerateOptions,
}

/// The protocol at `path` with these options.
pub(crate) fn protocol(path: &'static str, options: GenerateOptions) -> Arc<dyn Protocol> {
    Arc::new(Native { path, options })
}

impl Protocol for Native {
    fn path(&self) -> &str {
        self.path
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        let options = &self.options;
        let mut sampling = Body::default();
        sampling.set("temperature", options.temperature);
        sampling.set("max_new_tokens", sample.output_len);
        sampling.set("ignore_eos", options.ignore_eos);
        if options.top_p < 1.0 {
            sampling.set("top_p", options.top_p);
        }
        let mut body = Body::default();
        let prompt = if matches!(sample.prompt, Prompt::Text(_)) { "text" } else { "input_ids" };
        body.set(prompt, prompt_value(&sample.prompt));
        body.set("sampling_params", sampling.into_value());
        body.set("stream", options.stream);
        body.set("lora_path", adapter);
        body.set("return_logprob", options.return_logprob);
        body.set("return_routed_experts", options.return_routed_experts);
        body.set("logprob_start_len", options.logprob_start_len);
        body.merge(&options.extra_body);
        body.merge(&sample.extra_body);
        if options.top_logprobs_num > 0 {
            body.set("top_logprobs_num", options.top_logprobs_num);
        }
        if let Some(ids) = &options.token_ids_logprob {
            body.set("token_ids_logprob", json!(ids));
        }
        if let Some(pictures) = &sample.pictures {
            body.set("image_data", uris(pictures));
        }
        body.into_bytes()
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        Box::new(Decoder::<NativeReading>::new(request))
    }
}

record! {
    /// One frame of a stream, or a whole reply.
    Frame<'a> {
        "index" => index: Count,
        "text" => text: Text<'a>,
        "meta_info" => meta: Meta<'a>,
        "error" => error: Present,
    }
}

record! {
    /// What the server tells about a reply so far.
    Meta<'a> {
        "finish_reason" => finish: Finish<'a>,
        "prompt_tokens" => prompt: Count,
        "completion_tokens" => completion: Count,
        "cached_tokens" => cached: Count,
        "cached_tokens_details" => cached_parts: CachedParts<'a>,
        "spec_accept_length" => accept_length: Number,
        "spec_verify_ct" => verify_steps: Count,
        "e2e_latency" => latency: Number,
        "routed_experts" => routed_experts: Text<'a>,
    }
}

/// Reads the frames of one reply.
#[derive(Debug, Default)]
struct NativeReading {
    choices: Choices<Transcript>,
}

impl Reading for NativeReading {
    fn frame(&mut self, at: Stamp, data: &[u8], reply: &mut Reply) -> Result<(), Problem> {
        if let Some(frame) = strict(data) {
            self.take(at, &frame, reply);
            return Ok(());
        }
        let value = crate::json::value(data).map_err(Problem::Unreadable)?;
        // Several choices without streaming come as a list.
        if let Value::Array(frames) = &value {
            for (index, value) in (0..).zip(frames) {
                let mut frame = Frame::loose(value);
                frame.index = Count(Some(index));
                self.take_loose(at, value, &frame, reply)?;
            }
            return Ok(());
        }
        self.take_loose(at, &value, &Frame::loose(&value), reply)
    }

    fn finished(&self) -> Option<usize> {
        self.choices.finished()
    }
}

/// Reads a frame strictly. `None` for what needs a second look: errors, and frames without anything to
/// measure, which may be errors.
fn strict(data: &[u8]) -> Option<Frame<'_>> {
    let frame: Frame<'_> = field::strict(data)?;
    let ordinary = !frame.text.is_empty() || frame.meta.completion.0.is_some();
    (ordinary && !frame.error.0).then_some(frame)
}

impl NativeReading {
    fn take_loose(
        &mut self,
        at: Stamp,
        value: &Value,
        frame: &Frame<'_>,
        reply: &mut Reply,
    ) -> Result<(), Problem> {
        if let Some(failure) = server_error::in_frame(value) {
            return Err(Problem::Failed(failure));
        }
        self.take(at, frame, reply);
        Ok(())
    }

    /// A frame brings tokens when its count rises; without counts, when its text changes.
    fn take(&mut self, at: Stamp, frame: &Frame<'_>, reply: &mut Reply) {
        let meta = &frame.meta;
        let index = frame.index.0.unwrap_or(0);
        let choice = self.choices.at(index);
        let known = choice.counted;
        let rise = choice.count(meta.completion.0);
        let is_repeat = meta.completion.0.is_some_and(|total| total <= known);
        let is_last = !meta.finish.reason().is_empty();
        let change = choice.state.take(&frame.text.0, is_repeat, is_last);
        let tokens = match rise {
            Rise::Tokens(tokens) => Some(Some(tokens)),
            Rise::Nothing => None,
            Rise::Unknown => (change != Change::Nothing).then_some(None),
        };
        if meta.completion.0.is_none() && tokens.is_some() {
            choice.note_uncounted();
        }
        match change {
            Change::Nothing => {}
            Change::Grown(from) => reply.text.push_str(&choice.state.text()[from..]),
            Change::Rewritten => self.rewrite(reply),
        }
        if let Some(tokens) = tokens {
            reply.push_stamp(at, tokens, index);
        }
        self.note_meta(index, meta, reply);
    }

    /// Writes the texts of all choices anew, one after the other.
    fn rewrite(&self, reply: &mut Reply) {
        reply.text.clear();
        for choice in self.choices.iter() {
            reply.text.push_str(choice.state.text());
        }
        let end = u32::try_from(reply.text.len()).unwrap_or(u32::MAX);
        for piece in &mut reply.pieces {
            *piece = end.min(*piece);
        }
    }

    /// Notes counts and finish reason; what a frame leaves out stays as it was.
    fn note_meta(&mut self, index: u32, meta: &Meta<'_>, reply: &mut Reply) {
        self.choices.at(index).finish(&meta.finish, reply);
        if let Some(prompt) = meta.prompt.0.filter(|&n| n > 0) {
            reply.prompt_tokens = Some(prompt);
        }
        if meta.completion.0.is_some() {
            reply.completion_tokens = Some(self.choices.counted());
        }
        let parts = meta.cached_parts.note(reply);
        if let Some(cached) = meta.cached.0.map(u64::from).or(parts) {
            reply.cached_tokens = Some(cached);
        }
        if let Some(latency) = meta.latency.0.filter(|_| index == 0) {
            reply.server_latency = Some(latency as f32);
        }
        if !meta.routed_experts.is_empty() && index == 0 {
            reply.rare_mut().routed_experts = Some(meta.routed_experts.0.as_ref().into());
        }
        let steps = meta.verify_steps.0.filter(|&steps| steps > 0);
        let by_steps = || Some(f64::from(meta.completion.0?) / f64::from(steps?));
        if let Some(length) = meta.accept_length.0.or_else(by_steps) {
            reply.rare_mut().accept_length = Some(length);
        }
    }
}
