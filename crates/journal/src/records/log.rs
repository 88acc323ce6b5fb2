//! Reading a log of records.

use super::codec::Decoder;
use super::{Counted, KIND, Kept, VERSION, record, tag};
use crate::{Ending, JournalError, Reader};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;

/// All that can be read of a log of records.
///
/// ```
/// use servebench_core::{Record, Stamp};
/// use servebench_journal::records::{Batch, RecordLog, RecordWriter};
/// use servebench_journal::Ending;
/// use serde_json::json;
///
/// let mut file = Vec::new();
/// let mut writer = RecordWriter::create(&mut file, &json!({"model": "m"}))?;
/// writer.begin_part(&json!({"started_at_unix": 1.8e9}))?;
/// for id in 0..3 {
///     let mut batch = Batch::default();
///     batch.push(&Record { id, ..Record::default() }, Stamp::from_millis(10 * id));
///     writer.push(&batch)?;
/// }
///
/// // Killed amid the last record.
/// let cut = file.len() - 2;
/// let log = RecordLog::read(&file[..cut])?;
/// assert_eq!(log.metadata["model"], "m");
/// assert_eq!(log.parts[0].records.len(), 2);
/// assert_eq!(log.parts[0].end_facts, None);
/// assert!(matches!(log.ending, Ending::Torn(_)));
/// # Ok::<(), servebench_journal::JournalError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct RecordLog {
    /// What all parts have in common.
    pub metadata: Value,
    /// The parts, in the order in which they were run.
    pub parts: Vec<Part>,
    /// What was counted after the run, by the records' ids.
    pub counts: BTreeMap<u64, Counted>,
    /// How the file ends.
    pub ending: Ending,
    /// Where the file can be gone on with.
    pub offset: u64,
}

/// One run, or what there is of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// What was known when it began.
    pub facts: Value,
    /// Its records, in the order in which their requests were over. All stamps count from the part's start.
    pub records: Vec<Kept>,
    /// What was known when it was over; `None` of a part that was cut.
    pub end_facts: Option<Value>,
}

impl RecordLog {
    /// Reads a log as far as it goes.
    ///
    /// # Errors
    ///
    /// When the input cannot be read, is no log of records, a newer one, or holds a frame that is whole and
    /// yet no record. A cut or damaged file is no error: see [`ending`](Self::ending).
    pub fn read(input: impl Read) -> Result<Self, JournalError> {
        let mut reader = Reader::open(input)?;
        reader.header().expect(KIND, VERSION)?;
        let mut this = Self {
            metadata: Value::Null,
            parts: Vec::new(),
            counts: BTreeMap::new(),
            ending: Ending::Whole,
            offset: 0,
        };
        loop {
            let at = reader.offset();
            let Some(frame) = reader.next_frame()? else { break };
            this.add(frame).ok_or(JournalError::Content(at))?;
        }
        this.ending = reader.ending().unwrap_or(Ending::Whole);
        this.offset = reader.offset();
        Ok(this)
    }

    /// Takes one frame in; `None` for one that was not written by this version.
    fn add(&mut self, frame: &[u8]) -> Option<()> {
        let (tag, payload) = frame.split_first()?;
        match *tag {
            tag::METADATA => self.metadata = facts(payload)?,
            tag::PART => {
                let facts = facts(payload)?;
                self.parts.push(Part { facts, ..Part::default() });
            }
            tag::RECORDS => {
                let part = self.parts.last_mut()?;
                entries(payload, |entry| {
                    part.records.push(record::decode(entry)?);
                    Some(())
                })?;
            }
            tag::COUNTS => entries(payload, |entry| {
                let counted = record::decode_counted(entry)?;
                self.counts.insert(counted.id, counted);
                Some(())
            })?,
            tag::CLOSE => {
                self.parts.last_mut()?.end_facts = Some(facts(payload)?);
            }
            _ => {}
        }
        Some(())
    }
}

fn facts(payload: &[u8]) -> Option<Value> {
    ciborium::from_reader(payload).ok()
}

fn entries(payload: &[u8], mut each: impl FnMut(&[u8]) -> Option<()>) -> Option<()> {
    let mut rest = Decoder::plain(payload);
    while !rest.is_empty() {
        each(rest.bytes()?)?;
    }
    Some(())
}
