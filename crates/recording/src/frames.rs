//! What the frames of a recording hold.
//!
//! A frame's first byte says what it is; see the README for all of them.

use crate::events::Before;
use crate::octets::{Put, Rest};
use crate::{Malformed, RecordingError};
use bytes::Bytes;
use serde_json::Value;
use servebench_backends::without_prompt;
use servebench_core::Request;
use servebench_http::Event;
use servebench_journal::records::RecordLog;
use servebench_journal::{Ending, Header, Reader};
use std::io::Read;

/// The kind of a recording's log.
pub const KIND: &str = "recording";
/// Version of what is in its frames.
pub const VERSION: u32 = 1;

const REQUESTS: u8 = 1;
const EVENTS: u8 = 2;
const END: u8 = 3;

/// The header of a recording with these metadata.
pub(crate) fn header(metadata: Value) -> Header {
    Header { metadata, ..Header::new(KIND, VERSION) }
}

/// One frame of a recording.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// Requests whose events follow.
    Requests(Vec<Asked>),
    /// What happened.
    Events(Events<'a>),
    /// The recording is complete. What was known of its requests beside their replies is a log of records,
    /// as it was begun once the run was over.
    End(Box<RecordLog>),
    /// Something that this version does not know.
    Unknown,
}

/// A request, as far as it is recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Place in the plan, from 0.
    pub id: u64,
    /// Prompt tokens as the dataset counted them.
    pub prompt_len: u32,
    /// Output tokens asked for.
    pub output_len: u32,
    /// Whether `body` is the request's whole body.
    pub is_whole: bool,
    /// The body, or of it what its reply's decoder looks up: never the prompt.
    pub body: Bytes,
}

impl Asked {
    /// What is recorded of `request`: with its prompt, or without.
    pub(crate) fn of(request: &Request, with_prompt: bool) -> Self {
        Self {
            id: request.id,
            prompt_len: request.prompt_len,
            output_len: request.output_len,
            is_whole: with_prompt,
            body: request.body.clone(),
        }
    }

    /// The request, for a decoder.
    pub fn request(&self) -> Request {
        Request {
            id: self.id,
            body: self.body.clone(),
            prompt_len: self.prompt_len,
            output_len: self.output_len,
            ..Request::default()
        }
    }
}

/// The events of one worker, in the order in which they happened.
#[derive(Clone, Debug)]
pub struct Events<'a> {
    /// Which worker.
    pub worker: u64,
    /// Events of this worker behind these that were lost, since they came faster than they could be
    /// written.
    pub lost: u64,
    rest: Rest<'a>,
    before: Before,
}

impl<'a> Iterator for Events<'a> {
    type Item = Result<(u64, Event<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let event = self.before.read(&mut self.rest);
        if event.is_err() {
            self.rest = Rest(&[]);
        }
        Some(event)
    }
}

/// The frame of requests. Bodies that are not to be recorded lose their prompts here.
pub(crate) fn requests(asked: &[Asked]) -> Vec<u8> {
    let mut frame = vec![REQUESTS];
    for Asked { id, prompt_len, output_len, is_whole, body } in asked {
        frame.number(*id);
        frame.number((*prompt_len).into());
        frame.number((*output_len).into());
        frame.push(u8::from(*is_whole));
        if *is_whole { frame.bytes(body) } else { frame.bytes(&without_prompt(body)) }
    }
    frame
}

/// The beginning of a frame of events.
pub(crate) fn events(worker: u64, lost: u64, events: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(events.len() + 16);
    frame.push(EVENTS);
    frame.number(worker);
    frame.number(lost);
    frame.extend_from_slice(events);
    frame
}

/// The beginning of the frame that ends a recording: a log of records follows.
pub(crate) fn end() -> Vec<u8> {
    vec![END]
}

/// Reads a frame.
pub(crate) fn frame(payload: &[u8]) -> Result<Frame<'_>, Malformed> {
    let mut rest = Rest(payload);
    Ok(match rest.byte()? {
        REQUESTS => {
            let mut asked = Vec::new();
            while !rest.is_empty() {
                asked.push(Asked {
                    id: rest.number()?,
                    prompt_len: rest.small()?,
                    output_len: rest.small()?,
                    is_whole: rest.byte()? & 1 == 1,
                    body: Bytes::copy_from_slice(rest.bytes()?),
                });
            }
            Frame::Requests(asked)
        }
        EVENTS => {
            let (worker, lost) = (rest.number()?, rest.number()?);
            Frame::Events(Events { worker, lost, rest, before: Before::default() })
        }
        END => Frame::End(Box::new(RecordLog::read(rest.0).map_err(|_| Malformed)?)),
        _ => Frame::Unknown,
    })
}

/// A recording that is read frame by frame.
#[derive(Debug)]
pub struct Recording<R> {
    reader: Reader<R>,
    frame: u64,
}

impl<R: Read> Recording<R> {
    /// Begins to read a recording; wrap a file in a `BufReader`.
    ///
    /// # Errors
    ///
    /// When the input is no recording, or one of a newer version.
    pub fn open(input: R) -> Result<Self, RecordingError> {
        let reader = Reader::open(input)?;
        reader.header().expect(KIND, VERSION)?;
        Ok(Self { reader, frame: 0 })
    }

    /// What was known when the recording began.
    pub fn metadata(&self) -> &Value {
        &self.reader.header().metadata
    }

    /// The next frame; `None` at the end of what can be read.
    ///
    /// # Errors
    ///
    /// When the input cannot be read, or the frame makes no sense.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, RecordingError> {
        self.frame += 1;
        let number = self.frame;
        let Some(payload) = self.reader.next_frame()? else { return Ok(None) };
        let read = frame(payload);
        read.map(Some).map_err(|error| RecordingError::Frame { frame: number, error })
    }

    /// How the file ends, once all was read.
    pub fn ending(&self) -> Option<Ending> {
        self.reader.ending()
    }

    /// The place of the frame read last, behind the header, from 1.
    pub(crate) fn place(&self) -> u64 {
        self.frame
    }
}
