//! The profiler's main command: start, wait, list.

use super::args::{LengthArgs, ServersArgs, WhatArgs};
use super::commands::{Labelled, reach};
use super::live::LiveServer;
use super::session::{Ended, Session, Worker};
use super::traces;
use crate::exit::OrCode;
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io};
use serde_json::Value;
use servebench_backends::{BackendKind, GenerateOptions};
use servebench_control::{Family, ProfileRequest};
use servebench_core::{Prompt, Request, Sample};
use servebench_http::{HttpBackend, Limits};
use servebench_run::{Job, Stop, TokioClock, run_on_threads};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Steps that are profiled unless something else is asked for.
const STEPS: u64 = 5;
/// How long a server is profiled that cannot count steps.
const DURATION: Duration = Duration::from_secs(5);
/// How long traces are waited for.
pub(super) const WAIT: Duration = Duration::from_mins(5);

/// What the first Ctrl-C does.
const INTERRUPTED: &str = "interrupted: the profiler is being stopped. Once more to leave at once";

/// Profiles live servers and says where the traces are.
///
/// # Errors
///
/// A usage failure, or a server that cannot be reached or refuses; what was started is stopped
/// again.
pub fn profile(
    servers: &ServersArgs,
    what: &WhatArgs,
    length: &LengthArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    if what.is_nothing() {
        return Err(Failure::usage("--no-cpu and --no-gpu leave nothing to profile"));
    }
    let interrupts = Interrupts::listen_saying(&Stop::default(), io, INTERRUPTED);
    let interrupts = interrupts.or_code(Code::Bug)?;
    let runtime = runtime()?;
    let reached = runtime.block_on(reach(servers, environment))?;
    let mut workers = Vec::new();
    let began = unix_seconds();
    let several = reached.len() > 1;
    for Labelled { label, server } in reached {
        let request = request(&server, what, length, environment)?;
        let info = runtime.block_on(server.control.server_info()).ok();
        let label = if several { label } else { String::new() };
        workers.push(worker(label, server, request, info, began, io)?);
    }
    if what.merge_profiles && what.profile_prefix.is_some() {
        io.say("warning: servers find nothing to merge when --profile-prefix is given");
    }
    let seen = runtime.block_on(all_here(&workers));
    let simulated = servers.connection.simulate;
    let can_count = workers.iter().all(|worker| worker.request.num_steps.is_some());
    interrupts.begin_measuring();
    let work = simulated.then(|| Load::start(&workers)).flatten();
    let mut session = Session::start(&runtime, workers, io)?;
    let ended = match (length.duration, can_count) {
        (Some(seconds), _) => {
            let ended = session.run_for(Duration::from_secs_f64(seconds), &interrupts);
            Some(ended)
        }
        (None, false) => {
            io.say(format_args!("profiling for {DURATION:?}; --duration changes that"));
            Some(session.run_for(DURATION, &interrupts))
        }
        (None, true) => {
            let wait = length.wait.map(|seconds| Duration::from_secs(seconds.into()));
            match wait.unwrap_or(if seen { WAIT } else { Duration::ZERO }) {
                Duration::ZERO => None,
                limit => Some(session.wait_for_traces(limit, &interrupts)),
            }
        }
    };
    drop(work);
    finish(&mut session, ended, seen, &interrupts, io)
}

/// Ends a session in the way that its wait ended, and tells what there is to see.
pub(super) fn finish(
    session: &mut Session<'_>,
    ended: Option<Ended>,
    seen: bool,
    interrupts: &Interrupts,
    io: &Io,
) -> Result<Code, Failure> {
    match ended {
        None => {
            session.leave();
            io.say(
                "the server stops by itself after its number of steps; `profiler stop` ends the \
                 profile sooner",
            );
        }
        Some(Ended::Complete) => session.leave(),
        Some(Ended::TimeUp | Ended::Interrupted) => session.stop()?,
    }
    let files = session.files();
    if !files.is_empty() {
        io.say("trace files:");
        for file in &files {
            let line = format!("{}  {}", file.path.display(), traces::size(file.bytes));
            io.print(line).or_code(Code::Output)?;
        }
        io.say(opening(&files));
    } else if ended.is_some() && seen {
        io.say(
            "no trace file is to be seen: the server may have had no work, or write to a file \
             system of its own (a container's)",
        );
    } else if !seen {
        io.say("the traces are on the server's machine, where it was told to put them");
    }
    Ok(interrupts.code().unwrap_or(Code::Done))
}

/// What opens these files.
fn opening(files: &[traces::TraceFile]) -> String {
    let is_memory = |file: &traces::TraceFile| file.path.extension().is_some_and(|e| e == "pickle");
    let mut said = Vec::new();
    if files.iter().any(|file| !is_memory(file)) {
        said.push("open traces with https://ui.perfetto.dev, or chrome://tracing in Chrome");
    }
    if files.iter().any(is_memory) {
        said.push("open .pickle files with https://pytorch.org/memory_viz");
    }
    if files.iter().any(|file| file.bytes > 100_000_000) {
        said.push(
            "files above 100 MB are too much for browsers: profile fewer steps, or smaller batches",
        );
    }
    said.join("\n")
}

/// What is asked of one server: what was given, and the Python tool's defaults for the rest.
fn request(
    server: &LiveServer,
    what: &WhatArgs,
    length: &LengthArgs,
    environment: &Environment,
) -> Result<ProfileRequest, Failure> {
    let mut request = what.request();
    if server.control.family() == Family::Vllm {
        refuse_fields(what)?;
        return Ok(request);
    }
    // A profile by stage must have an end, whatever else ends it: the server's loop breaks without.
    if length.duration.is_none() || request.profile_by_stage {
        request.num_steps = request.num_steps.or(Some(STEPS));
    }
    Ok(complete(request, environment))
}

/// A request with the Python tool's defaults for what was not given.
pub(super) fn complete(mut request: ProfileRequest, environment: &Environment) -> ProfileRequest {
    if request.activities.is_empty() {
        request.activities = vec!["CPU".into(), "GPU".into()];
    }
    request.merge_profiles = request.merge_profiles.or(Some(false));
    let folder = || environment.get("SGLANG_TORCH_PROFILER_DIR").unwrap_or("/tmp").to_owned();
    request.output_dir = request.output_dir.or_else(|| Some(folder()));
    request
}

/// vLLM is told what to profile when it is started, not when its profiler is.
pub(super) fn refuse_fields(what: &WhatArgs) -> Result<(), Failure> {
    match what.given().first() {
        None => Ok(()),
        Some(flag) => Err(Failure::usage(format!("{flag} means nothing to vLLM's profiler"))
            .hint("vLLM is told what to profile at its start, by --profiler-config")),
    }
}

/// Puts a worker together: gives it a folder of its own and writes down what server it is.
pub(super) fn worker(
    label: String,
    server: LiveServer,
    mut request: ProfileRequest,
    info: Option<Value>,
    began: f64,
    io: &Io,
) -> Result<Worker, Failure> {
    if let Some(base) = request.output_dir.take() {
        // With a fraction always, as the Python tool writes it.
        let mut folder = format!("{}/{began:?}", absolute_folder(&base));
        if !label.is_empty() {
            folder = format!("{folder}/{label}");
        }
        io.print(format_args!("Dump profiling traces to {folder}")).or_code(Code::Output)?;
        if let (Some(steps), false) = (request.num_steps, request.profile_by_stage) {
            io.say(format_args!("waiting for {steps} steps and the traces"));
        } else if let Some(steps) = request.num_steps {
            io.say(format_args!("waiting for {steps} steps of each stage and the traces"));
        }
        match &info {
            Some(info) => write_server_args(Path::new(&folder), info, io),
            None => {
                io.say(
                    "warning: the server has no /server_info, so no server_args.json is written",
                );
            }
        }
        request.output_dir = Some(folder);
    }
    Ok(Worker { label, server, request, info })
}

/// Writes what the server told about itself beside the traces, unless it is there already. The
/// folder may make sense on the server's machine only, so failing is no reason to stop.
fn write_server_args(folder: &Path, info: &Value, io: &Io) {
    let path = folder.join("server_args.json");
    if path.exists() {
        return;
    }
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, serde_json::to_string(info)?));
    if let Err(error) = written {
        io.say(format_args!("warning: cannot write {}: {error}", path.display()));
    }
}

/// Whether all servers run on this machine and write to folders that are known.
pub(super) async fn all_here(workers: &[Worker]) -> bool {
    for worker in workers {
        if worker.folder().is_none() || !worker.server.is_here().await {
            return false;
        }
    }
    true
}

/// The folder as the Python tool would name it: absolute, from this machine's point of view, and
/// without `..`, which a server on another machine could take elsewhere.
pub(crate) fn absolute_folder(folder: &str) -> String {
    let mut plain = PathBuf::new();
    for part in std::path::absolute(folder).unwrap_or_else(|_| folder.into()).components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain.to_string_lossy().trim_end_matches('/').to_owned()
}

/// Wall-clock time, to the microsecond.
pub(super) fn unix_seconds() -> f64 {
    jiff::Timestamp::now().as_microsecond() as f64 / 1e6
}

pub(super) fn runtime() -> Result<Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().or_code(Code::Bug)
}

/// Requests for simulated servers, so that there is something to profile. Dropping this ends them.
struct Load {
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    /// Requests at once, and how many in all: enough for any number of steps one may try.
    const AT_ONCE: usize = 4;
    const REQUESTS: u64 = 400;

    fn start(workers: &[Worker]) -> Option<Self> {
        let server = &workers.first()?.server;
        let protocol = BackendKind::Sglang.protocol(GenerateOptions::default());
        let sample = Sample {
            prompt: Prompt::Text("What does a profiler see? ".repeat(8)),
            output_len: 64,
            ..Sample::default()
        };
        let body = protocol.encode(&sample, None);
        let request = |id| Request { id, body: body.clone(), output_len: 64, ..Request::default() };
        let requests = (0..Self::REQUESTS).map(request).collect();
        let job = Job { max_concurrency: Some(Self::AT_ONCE), ..Job::burst(requests) };
        let (connect, target) = (server.connect.clone(), server.target.clone());
        let stop = Stop::default();
        let ending = stop.clone();
        let send = move || {
            let make = |clock: TokioClock| {
                let limits = Limits::default();
                HttpBackend::new(clock, connect.clone(), &target, Arc::clone(&protocol), limits)
            };
            // What becomes of these requests is nobody's concern.
            drop(run_on_threads(&job, 1, make, &Arc::default(), &ending));
        };
        let thread = std::thread::Builder::new().name("load".into()).spawn(send).ok();
        Some(Self { stop, thread })
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.abort();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            // It was only there to keep the server busy.
        }
    }
}
