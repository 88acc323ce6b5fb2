//! The result line.

use crate::Report;
use crate::columns::{COLUMNS, Column, Row, Source};
use serde::Serialize;
use serde_json::{Map, Value};
use servebench_metrics::Measured;

/// The result as one JSON object on one line, without a line end.
///
/// Every key of the Python tool is there, in its order and with its meaning, then ours, then
/// [`RunInfo::extra`](crate::RunInfo::extra), then the details. The JSON is strict: what was not
/// measured is `null`, and so is a number that is not finite; an infinite rate is the string `inf`.
/// The details are written in order of request id, straight from the records.
pub fn json_line(report: &Report<'_>) -> String {
    let mut rows: Vec<&Measured<'_>> = report.details.unwrap_or_default().iter().collect();
    rows.sort_by_key(|request| request.record.id);
    let (details, scalars): (Vec<&Column>, Vec<&Column>) = COLUMNS
        .iter()
        .filter(|column| column.doc.presence.applies(report))
        .partition(|column| column.doc.is_per_request());
    let mut out = Object::new();
    for column in scalars {
        put_value(out.key(&column.doc.key), report, column.source);
    }
    for (key, value) in &report.info.extra {
        let own = |column: &Column| column.doc.key == *key && !column.source.is_extra();
        if !COLUMNS.iter().any(own) {
            put(out.key(key), value);
        }
    }
    for column in details {
        if let Source::PerRequest(write) = column.source {
            put_rows(out.key(&column.doc.key), report, &rows, write);
        }
    }
    out.finish()
}

/// The keys that are ours and not one tool's: neither the Python tool's nor its twins, those of its peak
/// figures excepted. For a result with another tool's keys.
pub(crate) fn own_keys(report: &Report<'_>) -> Map<String, Value> {
    const PEAKS: [&str; 2] =
        ["upstream_max_output_tokens_per_s", "upstream_max_concurrent_requests"];
    let ours = COLUMNS.iter().filter(|column| {
        let (doc, key) = (&column.doc, &*column.doc.key);
        let twin = key.starts_with("upstream_") && !PEAKS.contains(&key);
        let written = !doc.upstream && !doc.is_per_request() && !column.source.is_extra();
        written && !twin && doc.presence.applies(report)
    });
    let value = |column: &Column| {
        let mut out = Vec::new();
        put_value(&mut out, report, column.source);
        let value = serde_json::from_slice(&out).unwrap_or_default();
        (column.doc.key.to_string(), value)
    };
    ours.map(value).collect()
}

fn put_value(out: &mut Vec<u8>, report: &Report<'_>, source: Source) {
    match source {
        Source::Count(of) => put(out, &of(report)),
        Source::OptionalCount(of) => put(out, &of(report)),
        Source::Number(of) => put(out, &of(report)),
        Source::Text(of) => put(out, &of(report)),
        Source::Flag(of) => put(out, &of(report)),
        Source::Value(of) => put(out, &of(report)),
        Source::Statistic(family, of) => put(out, &family(report).map(|d| of(&d) * 1e3)),
        Source::Extra | Source::PerRequest(_) => put(out, &()),
    }
}

fn put_rows(
    out: &mut Vec<u8>,
    report: &Report<'_>,
    rows: &[&Measured<'_>],
    write: fn(Row<'_>, &mut Vec<u8>),
) {
    out.push(b'[');
    for (i, request) in rows.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        write(Row { request, rule: report.itl_rule }, out);
    }
    out.push(b']');
}

/// Appends `value` as JSON.
pub(crate) fn put(out: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(out, value).expect("plain data always serializes");
}

/// A JSON object while it is written.
struct Object(Vec<u8>);

impl Object {
    fn new() -> Self {
        Self(vec![b'{'])
    }

    /// Writes a key; the value goes to what is returned.
    fn key(&mut self, key: &str) -> &mut Vec<u8> {
        if self.0.len() > 1 {
            self.0.push(b',');
        }
        put(&mut self.0, key);
        self.0.push(b':');
        &mut self.0
    }

    fn finish(mut self) -> String {
        self.0.push(b'}');
        String::from_utf8(self.0).expect("serde_json writes UTF-8")
    }
}
