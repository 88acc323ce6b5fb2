//! Bodies of the fuzz targets: any bytes in, no panic, and what comes out keeps the promises.

use crate::records::{Batch, RecordLog, RecordWriter};
use crate::{Ending, Reader, Writer};
use serde_json::Value;

/// Any bytes are read as a log or refused; the frames that were read, and the bytes that are said to be lost, make
/// up the whole; and the frames written anew are the same bytes.
pub fn journal(data: &[u8]) {
    let Ok(mut reader) = Reader::open(data) else { return };
    let begin = reader.offset();
    let mut again = Writer::resume(Vec::new());
    while let Ok(Some(frame)) = reader.next_frame() {
        assert!(again.push(frame).is_ok());
    }
    let end = reader.offset();
    assert_eq!(data.get(begin as usize..end as usize), Some(again.into_inner().as_slice()));
    let ending = reader.ending();
    assert_ne!(ending, None, "reading from memory does not fail");
    let lost = ending.and_then(Ending::loss);
    assert!(lost.is_none_or(|loss| loss.at == end && loss.bytes > 0));
    assert_eq!(end + lost.map_or(0, |loss| loss.bytes), data.len() as u64);
}

/// Any bytes are read as a log of records or refused; the records that were read, written anew, are the same
/// ones.
pub fn records(data: &[u8]) {
    let Ok(log) = RecordLog::read(data) else { return };
    let mut again = Vec::new();
    let written = write(&log, &mut again);
    assert_eq!(written.ok().and_then(|()| RecordLog::read(again.as_slice()).ok()), {
        let (ending, offset) = (Ending::Whole, again.len() as u64);
        Some(RecordLog { ending, offset, ..log })
    });
}

/// Frames of a log of records, whose checksums are right whatever is in them.
pub fn record_frames(data: &[u8]) {
    let Ok(mut writer) = Writer::create(Vec::new(), &crate::Header::new("records", 1)) else {
        return;
    };
    for frame in data.split(|byte| *byte == b'\n') {
        assert!(writer.push(frame).is_ok());
    }
    records(&writer.into_inner());
}

fn write(log: &RecordLog, to: &mut Vec<u8>) -> Result<(), crate::JournalError> {
    let mut writer = RecordWriter::create(to, &log.metadata)?;
    for part in &log.parts {
        writer.begin_part(&part.facts)?;
        for kept in &part.records {
            let mut batch = Batch::default();
            batch.push(&kept.record, kept.end);
            writer.push(&batch)?;
        }
        part.end_facts.as_ref().map_or(Ok(()), |facts: &Value| writer.end_part(facts))?;
    }
    writer.counts(log.counts.values())
}
