//! Logs of request records: what a benchmark measured, request by request, while it went on.
//!
//! A run that was cut and gone on with has several *parts*, each with a clock of its own. Facts beside the
//! records are the business of who writes them; they are kept as CBOR, which changes no digit of a number.

mod batch;
mod codec;
mod log;
mod record;
mod writer;

pub use batch::Batch;
pub use log::{Part, RecordLog};
pub use writer::RecordWriter;

use servebench_core::{Record, Stamp};

/// Kind of these logs, in their [`Header`](crate::Header).
pub const KIND: &str = "records";
/// Version of these logs that is written; the only one so far.
pub const VERSION: u32 = 1;

/// First byte of a frame: what is in it. Frames that begin with another byte are skipped.
mod tag {
    pub(super) const METADATA: u8 = 0;
    pub(super) const RECORDS: u8 = 1;
    pub(super) const PART: u8 = 2;
    pub(super) const CLOSE: u8 = 3;
    pub(super) const COUNTS: u8 = 4;
}

/// A record as it is logged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// The record.
    pub record: Record,
    /// When its request was over for the client: of a success the end of its response, of a failure when it
    /// was noticed.
    pub end: Stamp,
}

/// What was counted of a record after its run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// The record's [`id`](Record::id).
    pub id: u64,
    /// Prompt tokens as the dataset counted them; of a turn of a conversation, with all that was said before.
    pub prompt_len: u32,
    /// Tokens of the prompt by the client's tokenizer, for prompts whose length is only nominal.
    pub prompt: Option<u32>,
    /// Tokens of the reply's text by the client's tokenizer.
    pub text: Option<u32>,
    /// The same of each chunk's text, where that was needed.
    pub pieces: Option<Vec<u32>>,
}
