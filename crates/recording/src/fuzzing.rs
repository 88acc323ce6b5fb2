//! What must hold for all bytes, as functions that a fuzzer and the property tests share.

use crate::frames::{self, Frame};
use crate::octets::Rest;
use crate::{Recording, play, redact};
use serde_json::Value;
use servebench_backends::{BackendKind, GenerateOptions};
use servebench_core::Protocol;
use servebench_http::Event;
use servebench_journal::Writer;
use std::sync::Arc;

/// Any bytes are played as a recording, or refused: as a file, and as the frames of one, each behind its
/// length. The first byte chooses the backend.
pub fn recording(data: &[u8]) {
    let Some((&choice, bytes)) = data.split_first() else { return };
    let kinds: Vec<BackendKind> = BackendKind::all().collect();
    let kind = kinds[usize::from(choice) % kinds.len()];
    let protocol = kind.protocol(GenerateOptions::default());
    played(bytes, &protocol);
    let Ok(mut writer) = Writer::create(Vec::new(), &frames::header(Value::Null)) else { return };
    let mut rest = Rest(bytes);
    while let Ok(payload) = rest.bytes() {
        assert!(writer.push(payload).is_ok());
        events_survive(payload);
    }
    played(&writer.into_inner(), &protocol);
}

fn played(file: &[u8], protocol: &Arc<dyn Protocol>) {
    let Ok(mut recording) = Recording::open(file) else { return };
    let Ok(played) = play(&mut recording, protocol, |_, _, _| {}) else { return };
    assert_eq!(played.records().len(), played.exchanges.len());
    let (Ok(mut recording), mut copy) = (Recording::open(file), Vec::new()) else { return };
    let redacted = redact(&mut recording, protocol, &mut copy);
    assert!(redacted.is_ok_and(|it| it.exchanges == played.exchanges.len() as u64));
    let Ok(mut recording) = Recording::open(copy.as_slice()) else {
        unreachable!("it was written")
    };
    let again = play(&mut recording, protocol, |_, _, _| {});
    assert!(again.is_ok_and(|again| again.exchanges.len() == played.exchanges.len()));
}

/// Events that were read are the same when they are written and read again.
fn events_survive(payload: &[u8]) {
    let Ok(Frame::Events(events)) = frames::frame(payload) else { return };
    let (worker, lost) = (events.worker, events.lost);
    let read: Vec<(u64, Event<'_>)> = events.map_while(Result::ok).collect();
    let (mut bytes, mut before) = (Vec::new(), crate::events::Before::default());
    for (id, event) in &read {
        before.write(*id, event, &mut bytes);
    }
    let again = frames::events(worker, lost, &bytes);
    let Ok(Frame::Events(again)) = frames::frame(&again) else { unreachable!("it was written") };
    let again: Vec<(u64, Event<'_>)> = again.map_while(Result::ok).collect();
    assert_eq!(read, again);
}
