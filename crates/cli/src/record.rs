//! A recording of a run, while it goes on.

use crate::args::RecordArgs;
use crate::exit::OrCode;
use crate::raw_log::{EndFacts, PartFacts, unix_ms};
use crate::{Code, Failure, Io};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use servebench_core::{Record, Stamp};
use servebench_http::Observe;
use servebench_journal::JournalError;
use servebench_journal::records::{Batch, Counted, RecordWriter};
use servebench_recording::{Recorder, RecorderOptions, noted};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// What is recorded.
#[derive(Clone, Debug, Serialize)]
pub struct RecordPlan {
    /// Where.
    pub file: PathBuf,
    /// With prompts.
    pub prompts: bool,
}

impl RecordPlan {
    /// What was asked for, if anything was.
    pub(crate) fn new(args: RecordArgs) -> Option<Self> {
        let prompts = args.record_prompts;
        args.record.map(|file| Self { file, prompts })
    }
}

/// What a recording says of itself when it begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// The backend whose decoders read it.
    pub(crate) backend: String,
    /// The endpoint, where the backend is one of `bench-vllm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) endpoint: Option<String>,
    /// What a raw log of the run would say of itself...
    pub(crate) run: Value,
    /// ...and of the part that begins.
    pub(crate) part: Value,
}

/// The file of a recording that is to begin.
#[derive(Debug)]
pub(crate) struct Blank {
    file: File,
    plan: RecordPlan,
}

/// A recording in the making.
#[derive(Debug)]
pub(crate) struct Recording {
    recorder: Recorder,
    path: PathBuf,
    run: Value,
}

impl Blank {
    /// Makes the file, which must not be there yet.
    pub(crate) fn create(plan: &RecordPlan) -> Result<Self, Failure> {
        let path = plan.file.display();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&plan.file);
        let found = file.and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length, file) = found.map_err(|error| {
            let error = anyhow::Error::new(error).context(format!("--record {path}"));
            Failure::new(Code::Output, error)
        })?;
        if length > 0 {
            let error = anyhow::anyhow!("--record: {path} is there already");
            return Err(Failure::new(Code::Output, error)
                .hint("give a new name: a recording is of one run"));
        }
        Ok(Self { file, plan: plan.clone() })
    }

    /// Begins the recording; `run` is what a raw log would say of the run.
    pub(crate) fn begin(
        self,
        backend: &str,
        endpoint: Option<&str>,
        run: Value,
        io: &Io,
    ) -> Result<Recording, Failure> {
        let Self { file, plan: RecordPlan { file: path, prompts } } = self;
        let part = PartFacts { started_at_unix_ms: unix_ms() };
        let begin = Begin {
            backend: backend.to_owned(),
            endpoint: endpoint.map(str::to_owned),
            run,
            part: json!(part),
        };
        let options = RecorderOptions { prompts, ..RecorderOptions::default() };
        let (talk, name) = (io.clone(), path.clone());
        let recorder = Recorder::start(file, json!(begin), options, move |error| {
            talk.say(format_args!(
                "warning: {}: {error}; the run goes on, its recording ends here",
                name.display()
            ));
        });
        let recorder = recorder.or_code(Code::Output)?;
        Ok(Recording { recorder, path, run: begin.run })
    }
}

impl Recording {
    /// An observer for one worker's backend.
    pub(crate) fn observer(&self) -> Rc<dyn Observe> {
        self.recorder.observer()
    }

    /// Ends the recording with what is known of the run beside the replies. What keeps it from being written is
    /// said: the run's result does not depend on it.
    pub(crate) fn finish(self, records: &[Record], counts: &[Counted], end: &EndFacts, io: &Io) {
        let Self { recorder, path, run } = self;
        let log = |out: &mut Vec<u8>| write_log(out, &run, records, counts, end);
        match recorder.finish(log) {
            Ok(done) if done.lost > 0 => io.say(format_args!(
                "warning: {}: the disk was too slow: {} events are not in the recording",
                path.display(),
                done.lost
            )),
            Ok(done) => io.say(format_args!(
                "recording written to {} ({} bytes)",
                path.display(),
                done.bytes
            )),
            Err(error) => say_incomplete(&path, &error, io),
        }
    }
}

fn say_incomplete(path: &Path, error: &servebench_recording::RecordingError, io: &Io) {
    io.say(format_args!("warning: the recording {} is incomplete: {error}", path.display()));
}

fn write_log(
    out: &mut Vec<u8>,
    run: &Value,
    records: &[Record],
    counts: &[Counted],
    end: &EndFacts,
) -> Result<(), JournalError> {
    let mut writer = RecordWriter::create(out, run)?;
    let started_at_unix_ms = end.started_at_unix_ms;
    writer.begin_part(&json!(PartFacts { started_at_unix_ms }))?;
    let mut batch = Batch::default();
    for record in records {
        // When its request was over follows from what was received.
        batch.push(&noted(record), Stamp(0));
    }
    writer.push(&batch)?;
    writer.counts(counts)?;
    writer.end_part(&json!(end))
}
