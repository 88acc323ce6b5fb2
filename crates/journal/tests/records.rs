//! Records come back from a log as they were, however much of it is left.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use serde_json::json;
use servebench_core::{
    CachedDetails, Chunks, Failure, FailureKind, Rare, ReadLag, Record, Reply, Stamp,
};
use servebench_journal::records::{Batch, Counted, Kept, RecordLog, RecordWriter};
use servebench_journal::{Ending, Header, JournalError, Writer, fuzzing};
use std::fmt::Write;
use std::time::Duration;

fn stamp() -> impl Strategy<Value = Stamp> {
    prop_oneof![(0..1u64 << 40).prop_map(Stamp), any::<u64>().prop_map(Stamp)]
}

fn time() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_nanos)
}

fn text() -> impl Strategy<Value = Box<str>> {
    ".{0,20}".prop_map(Into::into)
}

fn maybe<T: std::fmt::Debug>(of: impl Strategy<Value = T>) -> impl Strategy<Value = Option<T>> {
    prop::option::of(of)
}

fn chunks() -> impl Strategy<Value = Chunks> {
    let chunk = (0..1u64 << 30, maybe(any::<u32>()), 0..3u32);
    prop::collection::vec(chunk, 0..20).prop_map(|list| {
        let (mut chunks, mut now) = (Chunks::default(), 0);
        for (gap, tokens, choice) in list {
            now += gap;
            chunks.push(Stamp(now), tokens, choice);
        }
        chunks.shrink();
        chunks
    })
}

fn failure() -> impl Strategy<Value = Failure> {
    use FailureKind::*;
    let kinds = [
        Connect, Timeout, Status, Server, Aborted, Protocol, Reset, Truncated, Empty, Cancelled,
        Client,
    ];
    (prop::sample::select(kinds.to_vec()), ".{0,40}")
        .prop_map(|(kind, text)| Failure::new(kind, text))
}

fn rare() -> impl Strategy<Value = Rare> {
    let details =
        (any::<u64>(), any::<u64>(), maybe(any::<u64>()), maybe(".{0,9}")).prop_map(|it| {
            CachedDetails { device: it.0, host: it.1, storage: it.2, storage_backend: it.3 }
        });
    let counts = (any::<u32>(), any::<u32>(), maybe(any::<u32>()));
    let rest = (maybe(time()), maybe(time()), maybe(0.0..9.0), maybe(details), maybe(text()));
    (counts, rest).prop_map(
        |((reconnects, retries, target), (connect, tls, accept_length, details, experts))| Rare {
            connect,
            tls,
            reconnects,
            accept_length,
            cached_details: details,
            target,
            routed_experts: experts,
            retries,
        },
    )
}

fn reply() -> impl Strategy<Value = Reply> {
    let stamps = (maybe(stamp()), maybe(stamp()), maybe(stamp()));
    let counts = (
        maybe(any::<u16>()),
        maybe(any::<u32>()),
        maybe(any::<u32>()),
        maybe(any::<u64>()),
        maybe(any::<f32>().prop_filter("a number", |it| !it.is_nan())),
    );
    let lag =
        (0..u32::MAX, time(), time(), any::<u32>()).prop_map(|(reads, longest, total, error)| {
            ReadLag::from_parts(reads, longest, total, Duration::from_nanos(error.into())).unwrap()
        });
    let pieces = maybe(prop::collection::vec(any::<u32>(), 0..9));
    let rest =
        (chunks(), ".{0,60}", pieces, maybe(text()), maybe(failure()), maybe(lag), maybe(rare()));
    (stamps, counts, rest).prop_map(|(stamps, counts, rest)| Reply {
        sent: stamps.0,
        headers: stamps.1,
        last_line: stamps.2,
        status: counts.0,
        prompt_tokens: counts.1,
        completion_tokens: counts.2,
        cached_tokens: counts.3,
        server_latency: counts.4,
        chunks: rest.0,
        text: rest.1,
        keep_pieces: rest.2.is_some(),
        pieces: rest.2.unwrap_or_default(),
        finish_reason: rest.3,
        failure: rest.4,
        read_lag: rest.5,
        rare: rest.6.map(Box::new),
    })
}

fn kept() -> impl Strategy<Value = Kept> {
    let stamps = (stamp(), stamp(), stamp());
    let counts = (any::<u64>(), any::<u32>(), any::<u32>());
    (stamps, counts, maybe(time()), maybe(time()), reply()).prop_map(
        |(
            (intended, dispatched, end),
            (id, prompt_len, output_len),
            lateness,
            turnaround,
            reply,
        )| {
            let record = Record {
                id,
                intended,
                dispatched,
                lateness,
                turnaround,
                prompt_len,
                output_len,
                reply,
            };
            Kept { record, end }
        },
    )
}

/// A log with one frame for each record.
fn log(parts: &[Vec<Kept>], counts: &[Counted]) -> Vec<u8> {
    let mut writer = RecordWriter::create(
        Vec::new(),
        &json!({"a": 0.1 + 0.2, "b": [1e300, -1, u64::MAX, null]}),
    )
    .unwrap();
    for (place, part) in parts.iter().enumerate() {
        writer.begin_part(&json!(place)).unwrap();
        for kept in part {
            let mut batch = Batch::default();
            batch.push(&kept.record, kept.end);
            writer.push(&batch).unwrap();
        }
        writer.end_part(&json!({"place": place})).unwrap();
    }
    writer.counts(counts).unwrap();
    writer.get_ref().clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_logged_is_read(
        parts in prop::collection::vec(prop::collection::vec(kept(), 0..4), 0..3),
        counts in prop::collection::btree_map(
            any::<u64>(),
            (any::<u32>(), maybe(any::<u32>()), maybe(any::<u32>()), maybe(prop::collection::vec(any::<u32>(), 0..5))),
            0..4,
        ),
    ) {
        let counts: Vec<Counted> = counts.into_iter().map(|(id, (prompt_len, prompt, text, pieces))| {
            Counted { id, prompt_len, prompt, text, pieces }
        }).collect();
        let file = log(&parts, &counts);
        let read = RecordLog::read(file.as_slice()).unwrap();
        prop_assert_eq!(read.metadata, json!({"a": 0.1 + 0.2, "b": [1e300, -1, u64::MAX, null]}));
        prop_assert_eq!(read.parts.len(), parts.len());
        for (place, (read, part)) in read.parts.iter().zip(&parts).enumerate() {
            prop_assert_eq!(&read.records, part);
            prop_assert_eq!(&read.facts, &json!(place));
            prop_assert_eq!(&read.end_facts, &Some(json!({"place": place})));
        }
        prop_assert_eq!(read.counts.into_values().collect::<Vec<_>>(), counts);
        prop_assert_eq!((read.ending, read.offset), (Ending::Whole, file.len() as u64));
        fuzzing::records(&file);
    }

    #[test]
    fn a_batch_is_one_frame(records in prop::collection::vec(kept(), 0..6)) {
        let mut batch = Batch::default();
        for kept in &records {
            batch.push(&kept.record, kept.end);
        }
        prop_assert_eq!(batch.records(), records.len());
        let mut writer = RecordWriter::create(Vec::new(), &json!(null)).unwrap();
        writer.begin_part(&json!(0)).unwrap();
        let before = writer.get_ref().len();
        writer.push(&batch).unwrap();
        let frame = writer.get_ref().len() - before;
        prop_assert_eq!(frame, if records.is_empty() { 0 } else { batch.size() + 12 });
        let read = RecordLog::read(writer.get_ref().as_slice()).unwrap();
        prop_assert_eq!(&read.parts[0].records, &records);
    }

    #[test]
    fn a_cut_log_holds_its_first_records(
        records in prop::collection::vec(kept(), 0..5), cut in any::<prop::sample::Index>(),
    ) {
        let file = log(std::slice::from_ref(&records), &[]);
        let cut = cut.index(file.len());
        let Ok(read) = RecordLog::read(&file[..cut]) else { return Ok(()) };
        let found = read.parts.first().map(|part| &part.records[..]).unwrap_or_default();
        prop_assert!(records.starts_with(found));
        fuzzing::records(&file[..cut]);
    }

    #[test]
    fn any_frames_are_records_or_refused(
        frames in prop::collection::vec(any::<u8>(), 0..60), kept in kept(),
        at in any::<prop::sample::Index>(), flip in any::<u8>(),
    ) {
        fuzzing::record_frames(&frames);
        fuzzing::record_frames(&[b"\x02\xf6\n", &frames[..]].concat());
        // A record with one byte changed, under a right checksum.
        let mut batch = Batch::default();
        batch.push(&kept.record, kept.end);
        let mut inner = Vec::new();
        let mut writer = RecordWriter::create(&mut inner, &json!(null)).unwrap();
        writer.push(&batch).unwrap();
        let mut payload = inner[inner.len() - batch.size()..].to_vec();
        let at = at.index(payload.len());
        payload[at] ^= flip;
        let mut writer = Writer::create(Vec::new(), &Header::new("records", 1)).unwrap();
        writer.push(b"\x02\xf6").unwrap();
        writer.push(&payload).unwrap();
        fuzzing::records(&writer.into_inner());
    }
}

#[test]
fn frames_of_later_versions_are_skipped_and_nonsense_is_told() {
    let mut writer = Writer::create(Vec::new(), &Header::new("records", 1)).unwrap();
    writer.push(b"\x09something").unwrap();
    writer.push(b"\x02\xa0").unwrap();
    let whole = writer.get_ref().len() as u64;
    let read = RecordLog::read(writer.get_ref().as_slice()).unwrap();
    assert_eq!((read.parts.len(), read.offset), (1, whole));
    writer.push(b"\x01\x05abc").unwrap();
    let error = RecordLog::read(writer.get_ref().as_slice()).unwrap_err();
    assert!(matches!(error, JournalError::Content(at) if at == whole), "{error}");
}

/// The bytes of version 1: what an old log holds is read by each later program.
#[test]
fn version_one_stays_what_it_is() {
    let mut reply = Reply { text: "ab".into(), ..Reply::default() };
    for (ms, tokens) in [(110, 1), (120, 2), (131, 1)] {
        reply.push_stamp(Stamp::from_millis(ms), Some(tokens), 0);
    }
    reply.chunks.shrink();
    reply.last_line = Some(Stamp::from_millis(131));
    reply.completion_tokens = Some(4);
    let (intended, dispatched) = (Stamp::from_millis(90), Stamp::from_millis(100));
    let record = Record {
        id: 7,
        intended,
        dispatched,
        prompt_len: 3,
        output_len: 4,
        reply,
        ..Record::default()
    };
    let mut batch = Batch::default();
    batch.push(&record, Stamp::from_millis(131));
    let mut writer = RecordWriter::create(Vec::new(), &json!(null)).unwrap();
    writer.begin_part(&json!(null)).unwrap();
    writer.push(&batch).unwrap();
    let file = writer.get_ref();
    let payload = &file[file.len() - batch.size()..];
    let mut hex = String::new();
    for byte in payload {
        write!(hex, "{byte:02x}").unwrap();
    }
    assert_eq!(
        hex,
        "0130200200000780c2d72fffd9c4098097c81d030403b4891310ff88c07ff4ff3fa125a6e07f141b3781026162\
         8097c81d04"
    );
    let end = Stamp::from_millis(131);
    assert_eq!(RecordLog::read(file.as_slice()).unwrap().parts[0].records, [Kept { record, end }]);
}
