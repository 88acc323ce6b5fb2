//! Going on with a run that was cut.

use crate::names::Names;
use crate::prepare::Prepared;
use crate::raw_log::{self, EndFacts, History, LogFile, Metadata, RawLog, RunPart, Whole};
use crate::serve::MeasuredRun;
use crate::{Code, Failure, Io, Plan};
use serde_json::{Map, Value, json};
use servebench_core::{FailureKind, Stamp};
use servebench_journal::records::{Kept, RecordLog};
use servebench_run::Job;
use servebench_tokens::Tokenizer;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

/// A raw log that is open before it is known what is to be sent.
pub(crate) enum Opened {
    /// Of a run that begins.
    New(LogFile),
    /// Of a run that is gone on with.
    Again(LogFile, Box<RecordLog>),
}

/// A raw log and what was done before it was gone on with.
pub(crate) struct Logged {
    pub(crate) log: RawLog,
    past: Option<History>,
}

impl Opened {
    /// The log that the plan wants, if it wants one.
    pub(crate) fn of(plan: &Plan) -> Result<Option<Self>, Failure> {
        if let Some(path) = &plan.log.resume {
            let (file, log) = LogFile::reopen(path)?;
            return Ok(Some(Self::Again(file, Box::new(log))));
        }
        let create = |path: &PathBuf| LogFile::create(path).map(Self::New);
        plan.log.raw_log.as_ref().map(create).transpose()
    }

    /// Begins to write it, and leaves of `sent` what is still to be sent.
    pub(crate) fn begin(
        self,
        plan: &Plan,
        names: &Names,
        tokenizer: &Tokenizer,
        sent: &mut Prepared,
        io: &Io,
    ) -> Result<Logged, Failure> {
        let metadata = Metadata::new(plan, names, tokenizer, sent);
        let logged = match self {
            Self::New(file) => Logged { log: file.begin(&metadata, io)?, past: None },
            Self::Again(file, log) => {
                let history = History::of(*log, file.path(), io)?;
                check(&history.metadata, &metadata)?;
                let all = sent.job.requests.len();
                sent.job = rest(&sent.job, &history);
                let left = sent.job.requests.len();
                if left == 0 {
                    let error =
                        anyhow::anyhow!("nothing is left to send: all {all} requests are over");
                    return Err(Failure::new(Code::Data, error).hint(format!(
                        "bench-serving analyze {} makes its result",
                        file.path().display()
                    )));
                }
                io.say(format_args!(
                    "going on with the run of {}: {left} of {all} requests are left",
                    file.path().display()
                ));
                Logged { log: file.go_on(io), past: Some(history) }
            }
        };
        sent.job.witness = Some(logged.log.witness());
        Ok(logged)
    }
}

/// A run that is over, further keys of its result, and what is still to be written to its log.
pub(crate) type Ended = (MeasuredRun, Map<String, Value>, Option<(RawLog, EndFacts)>);

impl Logged {
    /// The whole run: this part of it, and all before it.
    pub(crate) fn end(
        self,
        mut run: MeasuredRun,
        workers: u64,
        interrupted: bool,
        total: usize,
    ) -> Ended {
        let facts = EndFacts::new(&run, workers, interrupted);
        let log = Some((self.log, facts));
        let Some(past) = self.past else { return (run, Map::new(), log) };
        let records = std::mem::take(&mut run.finished.records);
        // When each was over is of no use any more.
        let records = records.into_iter().map(|record| Kept { record, end: Stamp(0) }).collect();
        let mut parts = past.parts;
        parts.push(RunPart { run, records, workers: Some(workers), interrupted, beside: None });
        let whole = Whole::of(parts, total);
        (whole.run, part_keys(whole.parts), log)
    }
}

/// What the result of a run of several parts says of that.
pub(crate) fn part_keys(parts: usize) -> Map<String, Value> {
    let keys = [("resumed", json!(true)), ("parts", json!(parts))];
    keys.into_iter().filter(|_| parts > 1).map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The command line of a run that is gone on with: what is said of it now, and else what was said then.
///
/// # Errors
///
/// When the log cannot be read.
pub fn resumed_arguments(arguments: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let Some(path) = resumed(&arguments) else { return Ok(arguments) };
    let log = raw_log::open(&path)?;
    let logged = Metadata::read(&log.metadata)?.arguments;
    Ok(logged.into_iter().map(OsString::from).chain(arguments).collect())
}

/// The last value of `--resume`.
fn resumed(arguments: &[OsString]) -> Option<PathBuf> {
    const FLAG: &str = "--resume";
    let at = |(place, word): (usize, &OsString)| {
        if word == FLAG {
            return arguments.get(place + 1).map(PathBuf::from);
        }
        word.to_str()?.strip_prefix(FLAG)?.strip_prefix('=').map(PathBuf::from)
    };
    arguments.iter().enumerate().rev().find_map(at)
}

/// Parts of the plan that may differ between the parts of a run: who is asked, and what is reported.
const MAY_DIFFER: [&str; 10] = [
    "/report",
    "/client",
    "/log",
    "/ready_check_timeout_s",
    "/profile",
    "/base_url",
    "/network",
    "/load/workers",
    "/load/warmup_requests",
    "/load/endings",
];

/// Checks that the requests are those of the log.
fn check(before: &Metadata, now: &Metadata) -> Result<(), Failure> {
    let mut differ = Vec::new();
    differences("", &before.plan, &now.plan, &mut differ);
    let names = [
        ("model", &before.model, &now.model),
        ("served model name", &before.served_model_name, &now.served_model_name),
    ];
    for (what, before, now) in names {
        if before != now {
            differ.push(format!("{what}: {before} then, {now} now"));
        }
    }
    if before.tokenizer != now.tokenizer {
        let name = |it: &Option<String>| it.clone().unwrap_or_else(|| "the built-in one".into());
        let (before, now) = (name(&before.tokenizer), name(&now.tokenizer));
        differ.push(format!("tokenizer: {before} then, {now} now"));
    }
    if before.plan_sha256 != now.plan_sha256 && differ.is_empty() {
        differ.push(if before.version == now.version {
            "the plan's hash alone: the dataset's or the tokenizer's files have changed".to_owned()
        } else {
            format!("the program's version: {} then, {} now", before.version, now.version)
        });
    }
    if differ.is_empty() {
        return Ok(());
    }
    let error = anyhow::anyhow!("--resume: this is not the run of the log: {}", differ.join("; "));
    Err(Failure::new(Code::Data, error)
        .hint("flags need not be given again, but for --header, whose values are not in the log"))
}

/// Collects where two plans differ, as `path: before then, after now`.
fn differences(path: &str, before: &Value, now: &Value, found: &mut Vec<String>) {
    if MAY_DIFFER.contains(&path) || before == now {
        return;
    }
    if let (Value::Object(before), Value::Object(now)) = (before, now) {
        let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        for key in keys {
            let of =
                |map: &serde_json::Map<String, Value>| map.get(key).cloned().unwrap_or_default();
            differences(&format!("{path}/{key}"), &of(before), &of(now), found);
        }
        return;
    }
    found.push(format!(
        "{}: {before} then, {now} now",
        path.trim_start_matches('/').replace('/', ".")
    ));
}

/// What is left of a job: the requests that were not sent, and those that were cut off. A conversation is
/// left as a whole, since each of its turns follows from the replies before.
fn rest(job: &Job, history: &History) -> Job {
    let over = |kept: &&Kept| {
        let failure = kept.record.reply.failure.as_ref();
        failure.is_none_or(|failure| failure.kind != FailureKind::Cancelled)
    };
    let records = history.parts.iter().flat_map(|part| &part.records);
    let over: BTreeSet<u64> = records.filter(over).map(|kept| kept.record.id).collect();
    let is_left = |place: &usize| {
        let request = &job.requests[*place];
        (request.id..request.id + request.turns() as u64).any(|id| !over.contains(&id))
    };
    let places: Vec<usize> = (0..job.requests.len()).filter(is_left).collect();
    // As if the run had stood still in between; what should have been sent by now is sent at once.
    let start = history.span();
    let due = |place: &usize| Stamp::from(job.schedule[*place].since(start));
    Job {
        requests: places.iter().map(|place| job.requests[*place].clone()).collect(),
        schedule: places.iter().map(due).collect(),
        encoder: job.encoder.as_ref().map(|encoder| encoder.at(places.clone())),
        ..job.clone()
    }
}
