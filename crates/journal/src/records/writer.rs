//! Writing a log of records.

use super::batch::append;
use super::{Batch, Counted, KIND, VERSION, record, tag};
use crate::{Header, JournalError, Writer};
use serde_json::Value;
use std::io::Write;

/// Writes a log of records, which [`RecordLog`](super::RecordLog) reads.
///
/// Errors of all methods: that something cannot be written; then nothing can be any more.
#[derive(Debug)]
pub struct RecordWriter<W> {
    log: Writer<W>,
}

/// Frames of counts are begun anew beyond this size, in bytes.
const COUNTS: usize = 1 << 20;

impl<W: Write> RecordWriter<W> {
    /// Begins a log, with whatever all its parts have in common.
    pub fn create(out: W, metadata: &Value) -> Result<Self, JournalError> {
        let mut this = Self { log: Writer::create(out, &Header::new(KIND, VERSION))? };
        this.facts(tag::METADATA, metadata)?;
        Ok(this)
    }

    /// Goes on with a log; `out` must stand at its [`offset`](super::RecordLog::offset), with nothing behind.
    pub fn resume(out: W) -> Self {
        Self { log: Writer::resume(out) }
    }

    /// Begins a part, whose stamps count from its own start. `facts` are what is known of it then.
    pub fn begin_part(&mut self, facts: &Value) -> Result<(), JournalError> {
        self.facts(tag::PART, facts)
    }

    /// Appends records of the part that was begun last.
    pub fn push(&mut self, batch: &Batch) -> Result<(), JournalError> {
        if batch.is_empty() { Ok(()) } else { self.log.push(batch.payload()) }
    }

    /// Appends what was counted; of counts with one id the last one stands.
    pub fn counts<'a>(
        &mut self,
        counts: impl IntoIterator<Item = &'a Counted>,
    ) -> Result<(), JournalError> {
        let (mut payload, mut entry) = (Vec::new(), Vec::new());
        for counted in counts {
            entry.clear();
            record::encode_counted(counted, &mut entry);
            append(&mut payload, tag::COUNTS, &entry);
            if payload.len() >= COUNTS {
                self.log.push(&payload)?;
                payload.clear();
            }
        }
        if payload.is_empty() { Ok(()) } else { self.log.push(&payload) }
    }

    /// Ends the part that was begun last. `facts` are what is known of it then.
    pub fn end_part(&mut self, facts: &Value) -> Result<(), JournalError> {
        self.facts(tag::CLOSE, facts)
    }

    /// Flushes what the output gathers.
    pub fn flush(&mut self) -> Result<(), JournalError> {
        self.log.flush()
    }

    /// The output.
    pub fn get_ref(&self) -> &W {
        self.log.get_ref()
    }

    fn facts(&mut self, tag: u8, facts: &Value) -> Result<(), JournalError> {
        let mut payload = vec![tag];
        ciborium::into_writer(facts, &mut payload).map_err(std::io::Error::other)?;
        self.log.push(&payload)
    }
}
