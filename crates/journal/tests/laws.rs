//! What a log promises, whatever is done to its bytes.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use servebench_journal::{Ending, Header, JournalError, Loss, Reader, Writer, fuzzing};

fn log(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut writer = Writer::create(Vec::new(), &Header::new("test", 3)).unwrap();
    for frame in frames {
        writer.push(frame).unwrap();
    }
    let written = writer.written();
    let file = writer.into_inner();
    assert_eq!(written, file.len() as u64);
    file
}

fn read(file: &[u8]) -> Result<(Vec<Vec<u8>>, u64, Ending), JournalError> {
    let mut reader = Reader::open(file)?;
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame()? {
        frames.push(frame.to_vec());
    }
    assert_eq!(reader.next_frame()?, None);
    Ok((frames, reader.offset(), reader.ending().unwrap()))
}

fn frames() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)
}

proptest! {
    #[test]
    fn what_was_written_is_read(frames in frames()) {
        let file = log(&frames);
        prop_assert_eq!(read(&file).unwrap(), (frames, file.len() as u64, Ending::Whole));
    }

    #[test]
    fn a_cut_log_gives_its_first_frames_and_can_be_gone_on_with(
        frames in frames(), cut in any::<prop::sample::Index>(),
    ) {
        let file = log(&frames);
        let cut = cut.index(file.len() + 1);
        let Ok((found, offset, ending)) = read(&file[..cut]) else {
            // Only where not even the header is whole.
            prop_assert!(cut < log(&[]).len());
            return Ok(());
        };
        prop_assert!(frames.starts_with(&found));
        let lost = cut as u64 - offset;
        let torn = Ending::Torn(Loss { at: offset, bytes: lost });
        prop_assert_eq!(ending, if lost == 0 { Ending::Whole } else { torn });

        let mut again = file[..offset as usize].to_vec();
        let mut writer = Writer::resume(&mut again);
        for frame in &frames[found.len()..] {
            writer.push(frame).unwrap();
        }
        prop_assert_eq!(again, file);
    }

    #[test]
    fn a_changed_byte_gives_no_wrong_frame_and_is_told(
        frames in frames(), at in any::<prop::sample::Index>(), flip in 1..=u8::MAX,
    ) {
        let mut file = log(&frames);
        let at = at.index(file.len());
        file[at] ^= flip;
        let Ok((found, offset, ending)) = read(&file) else {
            prop_assert!(at < log(&[]).len());
            return Ok(());
        };
        prop_assert!(frames.starts_with(&found) && found.len() < frames.len());
        prop_assert!(offset as usize <= at);
        let bytes = file.len() as u64 - offset;
        prop_assert_eq!(ending, Ending::Damaged(Loss { at: offset, bytes }));
    }

    #[test]
    fn any_bytes_are_a_log_or_none(bytes in prop::collection::vec(any::<u8>(), 0..200), whole in frames()) {
        fuzzing::journal(&bytes);
        fuzzing::journal(&[log(&whole), bytes].concat());
    }
}

#[test]
fn bytes_are_as_documented() {
    let file = log(&[b"123456789".to_vec()]);
    let header = br#"{"kind":"test","version":3,"metadata":null}"#;
    let frame = &file[12 + 12 + header.len()..];
    assert_eq!(&file[..12], b"\x89SBJ\r\n\x1a\n\x01\0\0\0");
    assert_eq!(&file[24..24 + header.len()], header);
    assert_eq!(frame[..4], 9_u32.to_le_bytes());
    // The check value of CRC-32C.
    assert_eq!(frame[4..8], 0xe306_9283_u32.to_le_bytes());
    assert_eq!(&frame[12..], b"123456789");
}

#[test]
fn zeros_behind_the_last_frame_are_a_cut() {
    let whole = log(&[b"a".to_vec()]);
    for zeros in [1, 12, 100_000] {
        let file = [whole.clone(), vec![0; zeros]].concat();
        let loss = Loss { at: whole.len() as u64, bytes: zeros as u64 };
        assert_eq!(read(&file).unwrap(), (vec![b"a".to_vec()], loss.at, Ending::Torn(loss)));
    }
}

#[test]
fn what_is_no_log_is_refused_in_words() {
    let mut newer = log(&[]);
    newer[8] = 2;
    let cases: [(&[u8], &str); 5] = [
        (b"", "the log's header is incomplete or damaged"),
        (b"{\"kind\": 1}", "this is not a log of servebench"),
        (b"\x89SBJ", "the log's header is incomplete or damaged"),
        (&log(&[])[..30], "the log's header is incomplete or damaged"),
        (&newer, "the log has format version 2, and this program reads versions up to 1"),
    ];
    for (bytes, words) in cases {
        assert_eq!(Reader::open(bytes).unwrap_err().to_string(), words);
    }
    let header = Header::new("test", 3);
    assert!(header.expect("test", 3).is_ok());
    assert!(matches!(header.expect("wire", 3), Err(JournalError::Kind { .. })));
    assert!(matches!(header.expect("test", 2), Err(JournalError::KindVersion { found: 3, .. })));
}

/// Takes so many bytes, then fails.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = bytes.len().min(self.0);
        self.0 -= count;
        if count == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(count) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn nothing_is_appended_after_a_failed_write() {
    let mut writer = Writer::create(Full(log(&[]).len() + 5), &Header::new("test", 3)).unwrap();
    assert!(matches!(writer.push(b"x"), Err(JournalError::Io(_))));
    assert!(matches!(writer.push(b""), Err(JournalError::Broken)));
    assert!(matches!(writer.flush(), Err(JournalError::Broken)));
}
