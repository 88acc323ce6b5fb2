//! Runs to report on.

#![allow(dead_code, clippy::unwrap_used, reason = "each test binary uses its part")]

use servebench_core::{CachedDetails, Failure, FailureKind, Record, Stamp};
use servebench_metrics::{ItlRule, Measured, Options, Slo, SloMetric, aggregate};
use servebench_report::{Report, RunInfo};

/// Four tokens: 100, 150, 200 and 250 ms after dispatch at `start` ms, `[DONE]` at 300 ms.
pub(crate) fn success(id: u64, start: u64) -> Record {
    let mut record = Record { id, prompt_len: 8, output_len: 4, ..Record::default() };
    record.intended = Stamp::from_millis(start);
    record.dispatched = record.intended;
    for (ms, text) in [(100, "a"), (150, "b\n"), (200, "\"c\""), (250, "é🙂")] {
        record.reply.push_chunk(Stamp::from_millis(start + ms), Some(1), 0, text);
    }
    record.reply.last_line = Some(Stamp::from_millis(start + 300));
    record.reply.completion_tokens = Some(4);
    record.reply.finish_reason = Some("length".into());
    record
}

/// Fails before its first token.
pub(crate) fn refused(id: u64) -> Record {
    let mut record = Record { id, prompt_len: 9, output_len: 4, ..Record::default() };
    record.reply.fail(Failure::new(FailureKind::Status, "503: busy"));
    record
}

/// Breaks after two tokens.
pub(crate) fn broken(id: u64) -> Record {
    let mut record = Record { id, prompt_len: 9, output_len: 4, ..Record::default() };
    record.reply.push_chunk(Stamp::from_millis(100), Some(1), 0, "x");
    record.reply.push_chunk(Stamp::from_millis(130), Some(1), 0, "y");
    record.reply.last_line = Some(Stamp::from_millis(130));
    record.reply.fail(Failure::new(FailureKind::Reset, "connection reset"));
    record
}

pub(crate) fn cached(mut record: Record, device: u64, storage: Option<u64>) -> Record {
    record.reply.cached_tokens = Some(device + storage.unwrap_or(0));
    let storage_backend = storage.map(|_| "X".to_owned());
    let details = CachedDetails { device, host: 0, storage, storage_backend };
    record.reply.rare_mut().cached_details = Some(details);
    record
}

pub(crate) fn slos() -> Vec<Slo> {
    [(SloMetric::Ttft, 500.0), (SloMetric::Tpot, 50.0), (SloMetric::E2el, 3.0)]
        .map(|(metric, limit_ms)| Slo { metric, limit_ms })
        .to_vec()
}

pub(crate) fn info() -> RunInfo {
    RunInfo {
        backend: "sglang".into(),
        dataset_name: "random-ids".into(),
        version: "0.1.0".into(),
        ..RunInfo::default()
    }
}

pub(crate) fn measured(records: &[Record]) -> Vec<Measured<'_>> {
    records
        .iter()
        .map(|record| Measured { retokenized: Some(5), ..Measured::from(record) })
        .collect()
}

pub(crate) fn report<'a>(
    requests: &'a [Measured<'a>],
    options: &Options,
    info: RunInfo,
) -> Report<'a> {
    let aggregates = aggregate(requests.iter().copied(), options);
    Report { info, aggregates, itl_rule: ItlRule::SpreadOverTokens, details: None }
}

pub(crate) fn options() -> Options {
    Options { itl_rule: ItlRule::SpreadOverTokens, ..Options::default() }
}
