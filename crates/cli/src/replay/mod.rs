//! Makes of a recording what was made of the run.

mod show;

use crate::args::{LookArgs, ReplayArgs};
use crate::exit::OrCode;
use crate::raw_log::another;
use crate::record::Begin;
use crate::{Code, Environment, Failure, Io, ServingArgs, analyze};
use clap::{CommandFactory, Parser};
use serde::Deserialize;
use servebench_backends::vllm::{VllmBackend, VllmOptions};
use servebench_backends::{BackendKind, GenerateOptions};
use servebench_core::Protocol;
use servebench_journal::Ending;
use servebench_journal::records::{Part, RecordLog};
use servebench_recording::{Played, Recording, play, redact};
use show::Story;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter};
use std::path::Path;
use std::sync::Arc;

/// Most ids of requests that are named.
const NAMED: usize = 20;

/// Sends what a recording holds through the decoders, and reports as the run did; or shows one request, or makes a
/// redacted copy.
///
/// `A` is the command line of the run.
///
/// # Errors
///
/// When the file cannot be read, or what was asked for not be written.
pub fn replay<A: Parser + CommandFactory + Into<ServingArgs>>(
    args: &ReplayArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let path = &args.analyze.past.file;
    let whose = |begin: &Begin| match begin.endpoint {
        None => Ok(()),
        Some(_) => Err(another(path.display(), "bench-vllm", "replay")),
    };
    play_back(path, &args.look, whose, io, |log| {
        analyze::report::<A>(log, &args.analyze, environment, io)
    })
}

/// Plays the recording at `path`, of which `report` makes the table if `may_report` lets it.
pub(crate) fn play_back(
    path: &Path,
    look: &LookArgs,
    may_report: impl FnOnce(&Begin) -> Result<(), Failure>,
    io: &Io,
    report: impl FnOnce(RecordLog) -> Result<Code, Failure>,
) -> Result<Code, Failure> {
    let mut recording = open(path)?;
    let begin = Begin::deserialize(recording.metadata()).map_err(|error| {
        Failure::new(Code::Data, anyhow::anyhow!("{}: {error}", path.display()))
            .hint("it was written by another program, or by another version of this one")
    })?;
    let protocol = protocol(&begin)?;
    if let Some(copy) = &look.redact {
        return write_redacted(&mut recording, &protocol, copy, io);
    }
    if look.only.is_none() {
        may_report(&begin)?;
    }
    let mut story = Story::default();
    let played = play(&mut recording, &protocol, |id, event, reply| {
        if look.only == Some(id) {
            story.take(event, reply);
        }
    });
    let played = played.map_err(|error| at(path, error))?;
    say_gaps(path, &played, io);
    if let Some(only) = look.only {
        let Some(told) = story.told() else {
            let error = anyhow::anyhow!("--only {only}: {} has no such request", path.display());
            return Err(Failure::new(Code::Data, error));
        };
        io.print(told.trim_end()).or_code(Code::Output)?;
        return Ok(Code::Done);
    }
    report(log(&begin, played))
}

fn open(path: &Path) -> Result<Recording<BufReader<File>>, Failure> {
    let file = File::open(path).map_err(|error| at(path, error))?;
    Recording::open(BufReader::new(file)).map_err(|error| {
        at(path, error).hint("replay reads what --record wrote; analyze reads what --raw-log wrote")
    })
}

fn at(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Failure {
    let error = anyhow::Error::new(error).context(path.display().to_string());
    Failure::new(Code::Data, error)
}

/// The decoders of the run.
fn protocol(begin: &Begin) -> Result<Arc<dyn Protocol>, Failure> {
    // What was sent is over: of the options, decoders know none.
    if let Some(endpoint) = &begin.endpoint {
        let backend: VllmBackend = begin.backend.parse().or_code(Code::Data)?;
        return Ok(backend.protocol(endpoint, VllmOptions::default()));
    }
    let kind: BackendKind = begin.backend.parse().or_code(Code::Data)?;
    Ok(kind.protocol(GenerateOptions::default()))
}

/// Says what is not in a recording.
fn say_gaps(path: &Path, played: &Played, io: &Io) {
    let path = path.display();
    if let Some(loss) = played.torn {
        io.say(format_args!("warning: {path} was cut: its last {} bytes are no use", loss.bytes));
    }
    if played.log.is_none() {
        io.say(format_args!(
            "warning: {path} has no end (was the run killed, or the disk full?): when requests were due is not \
             known"
        ));
    }
    if played.lost > 0 {
        let damaged = played.exchanges.iter().filter(|exchange| exchange.is_damaged).count();
        io.say(format_args!(
            "warning: {path} lacks {} events, which came faster than the disk took them; {damaged} requests \
             may be wrong",
            played.lost
        ));
    }
}

/// The log of records that the run would have left, with the replies that were played.
fn log(begin: &Begin, played: Played) -> RecordLog {
    let records = played.records();
    let mut log = played.log.unwrap_or_else(|| RecordLog {
        metadata: begin.run.clone(),
        parts: vec![Part { facts: begin.part.clone(), ..Part::default() }],
        counts: std::collections::BTreeMap::new(),
        ending: Ending::Whole,
        offset: 0,
    });
    if let Some(part) = log.parts.last_mut() {
        part.records = records;
    }
    log
}

fn write_redacted(
    recording: &mut Recording<BufReader<File>>,
    protocol: &Arc<dyn Protocol>,
    copy: &Path,
    io: &Io,
) -> Result<Code, Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(copy).map_err(|error| {
        let error = anyhow::Error::new(error).context(format!("--redact {}", copy.display()));
        Failure::new(Code::Output, error)
    })?;
    let redacted = redact(recording, protocol, BufWriter::new(file)).or_code(Code::Output)?;
    let copy = copy.display();
    io.say(format_args!("{copy}: {} replies without what they said", redacted.exchanges));
    let replaced = &redacted.replaced;
    if !replaced.is_empty() {
        let named = replaced.iter().take(NAMED).map(u64::to_string).collect::<Vec<_>>().join(", ");
        let more = if replaced.len() > NAMED { ", …" } else { "" };
        io.say(format_args!(
            "warning: {} of them became filler altogether, since their text could not be told from the rest: \
             requests {named}{more}",
            replaced.len()
        ));
    }
    Ok(Code::Done)
}
