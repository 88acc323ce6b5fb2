//! Recordings of what a load client received, byte by byte with its times, to be decoded once more.
//!
//! A [`Recorder`] gives each worker's backend an observer
//! ([`HttpBackend::with_observer`](servebench_http::HttpBackend::with_observer)) and writes what they see to a
//! log (`servebench-journal`), in a thread of its own. [`play`] sends the same bytes, with the same stamps, through
//! a protocol's decoders: that gives the same replies, and tells what another version of a decoder makes of them.
//! Keys are never recorded, and prompts only when they are asked for.
//!
//! Invariant: a reply that is played is the reply that was received, as long as the decoders are the same; and
//! no bytes panic.
//!
//! # Example
//!
//! ```
//! use serde_json::json;
//! use servebench_backends::{BackendKind, GenerateOptions};
//! use servebench_core::{Request, Stamp};
//! use servebench_http::{Ended, Event, Head, Receipt};
//! use servebench_journal::records::RecordWriter;
//! use servebench_recording::{Recorder, RecorderOptions, Recording, play};
//! use std::borrow::Cow;
//!
//! let file = tempfile();
//! let recorder = Recorder::start(file.clone(), json!({"model": "m"}), RecorderOptions::default(), |_| {})?;
//!
//! // What a backend tells its observer:
//! let (observer, request) = (recorder.observer(), Request::default());
//! let receipt = Receipt { at: Stamp::from_millis(40), after: None, is_told: false };
//! let bytes = b"data: {\"choices\":[{\"text\":\" you\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
//! let head = Cow::Owned(Head { status: 200, ..Head::default() });
//! let (at, sent, lag) = (receipt.at, Some(Stamp(0)), None);
//! observer.note(&request, &Event::Began { at: Stamp(0), target: None, keep_pieces: false });
//! observer.note(&request, &Event::Head { at, head });
//! observer.note(&request, &Event::Data { receipt, bytes });
//! observer.note(&request, &Event::Over { at, ended: Cow::Owned(Ended::Complete), sent, lag });
//! recorder.finish(|log| RecordWriter::create(log, &json!({})).map(drop))?;
//!
//! let bytes = file.0.lock().unwrap().clone();
//! let mut recording = Recording::open(bytes.as_slice())?;
//! assert_eq!(recording.metadata()["model"], "m");
//! let protocol = BackendKind::Vllm.protocol(GenerateOptions::default());
//! let played = play(&mut recording, &protocol, |_, _, _| {})?;
//! assert_eq!(played.exchanges[0].reply.text, " you");
//! assert_eq!(played.exchanges[0].reply.first_token(), Some(Stamp::from_millis(40)));
//!
//! # #[derive(Clone, Default)]
//! # struct Shared(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
//! # impl std::io::Write for Shared {
//! #     fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> { self.0.lock().unwrap().write(bytes) }
//! #     fn flush(&mut self) -> std::io::Result<()> { Ok(()) }
//! # }
//! # fn tempfile() -> Shared { Shared::default() }
//! # Ok::<(), servebench_recording::RecordingError>(())
//! ```

mod error;
mod events;
mod frames;
#[doc(hidden)]
pub mod fuzzing;
mod octets;
mod play;
mod recorder;
mod redact;

pub use error::{Malformed, RecordingError};
pub use frames::{Asked, Events, Frame, KIND, Recording, VERSION};
pub use play::{Exchange, Played, noted, play};
pub use recorder::{Recorded, Recorder, RecorderOptions};
pub use redact::{Redacted, redact};

/// The README's example is compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
