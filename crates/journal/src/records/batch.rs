//! Records on their way to a log.

use super::{codec, record, tag};
use servebench_core::{Record, Stamp};

/// Records, encoded, that will be one frame of a log. What is in memory is about what will be on the disk.
#[derive(Debug, Default)]
pub struct Batch {
    payload: Vec<u8>,
    records: usize,
    entry: Vec<u8>,
}

impl Batch {
    /// Appends a record whose request was over at `end`.
    pub fn push(&mut self, record: &Record, end: Stamp) {
        self.entry.clear();
        record::encode(record, end, &mut self.entry);
        append(&mut self.payload, tag::RECORDS, &self.entry);
        self.records += 1;
    }

    /// Number of records.
    pub fn records(&self) -> usize {
        self.records
    }

    /// True without a record.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// Bytes that the frame will have, but for its head.
    pub fn size(&self) -> usize {
        self.payload.len()
    }

    /// Removes all records and keeps the memory.
    pub fn clear(&mut self) {
        self.payload.clear();
        self.records = 0;
    }

    pub(super) fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// Appends an entry to a frame of entries.
pub(super) fn append(payload: &mut Vec<u8>, tag: u8, entry: &[u8]) {
    if payload.is_empty() {
        payload.push(tag);
    }
    codec::number(payload, entry.len() as u64);
    payload.extend_from_slice(entry);
}
