//! The trace file of a profile: the engine's steps in the format of Chrome's trace viewer.

use crate::engine::StepSpan;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Where a real server writes when it is not told.
const DEFAULT_FOLDER: &str = "/tmp";

/// What a profile's start says about its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TraceOrder {
    pub(crate) folder: Option<String>,
    pub(crate) prefix: Option<String>,
    /// First part of the names; the server's own clock if not given.
    pub(crate) id: Option<String>,
    pub(crate) by_stage: bool,
    pub(crate) merge: bool,
    /// Steps between the request and the first one captured.
    pub(crate) skip: usize,
    /// Steps captured, of each stage; all if not given.
    pub(crate) steps: Option<usize>,
}

impl TraceOrder {
    /// Writes the files that a server with one rank writes.
    pub(crate) fn write(&self, spans: &[StepSpan]) -> io::Result<()> {
        let spans = spans.get(self.skip..).unwrap_or_default();
        let limit = self.steps.unwrap_or(usize::MAX);
        if !self.by_stage {
            return self.write_one("", spans.iter().take(limit));
        }
        let prefills = |span: &&StepSpan| span.prefill_tokens > 0;
        self.write_one("-EXTEND", spans.iter().filter(prefills).take(limit))?;
        self.write_one("-DECODE", spans.iter().filter(|span| !prefills(span)).take(limit))
    }

    fn write_one<'a>(
        &self,
        stage: &str,
        spans: impl Iterator<Item = &'a StepSpan>,
    ) -> io::Result<()> {
        let folder = PathBuf::from(self.folder.as_deref().unwrap_or(DEFAULT_FOLDER));
        std::fs::create_dir_all(&folder)?;
        let id = self.id.as_deref().unwrap_or("0");
        let prefix = self.prefix.as_ref().map_or_else(String::new, |prefix| format!("{prefix}-"));
        let text = document(spans).to_string();
        let mut names = vec![format!("{prefix}{id}-TP-0{stage}.trace.json.gz")];
        // A prefix keeps a real server from finding what to merge.
        if self.merge && prefix.is_empty() && stage != "-DECODE" {
            names.push(format!("merged-{id}.trace.json.gz"));
        }
        for name in names {
            let mut file = GzEncoder::new(File::create(folder.join(name))?, Compression::fast());
            file.write_all(text.as_bytes())?;
            file.finish()?;
        }
        Ok(())
    }
}

fn document<'a>(spans: impl Iterator<Item = &'a StepSpan>) -> Value {
    let mut events = vec![
        json!({"ph": "M", "name": "process_name", "pid": 0, "tid": 0,
            "args": {"name": "servebench-sim"}}),
        json!({"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "steps"}}),
    ];
    events.extend(spans.map(|span| {
        json!({"ph": "X", "cat": "user_annotation", "name": name(span), "pid": 0, "tid": 0,
            "ts": span.begin as f64 / 1e3, "dur": (span.end - span.begin) as f64 / 1e3,
            "args": {"prefill_tokens": span.prefill_tokens, "decode_tokens": span.decode_tokens}})
    }));
    json!({"schemaVersion": 1, "displayTimeUnit": "ms", "simulated": true, "traceEvents": events})
}

/// A step as SGLang labels it.
fn name(span: &StepSpan) -> String {
    let StepSpan { batch, prefill_tokens, decode_tokens, .. } = span;
    match (prefill_tokens, decode_tokens) {
        (1.., 0) => format!("step[EXTEND bs={batch} toks={prefill_tokens}]"),
        (1.., 1..) => format!("step[MIXED bs={batch}]"),
        _ => format!("step[DECODE bs={batch}]"),
    }
}
