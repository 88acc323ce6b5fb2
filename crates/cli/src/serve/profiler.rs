//! The server's profiler around a run, or those of the workers of a split server.

use super::server::Server;
use crate::exit::OrCode;
use crate::profiler::absolute_folder;
use crate::{Code, Failure, Io, ProfilePlan};
use serde_json::{Value, json};
use servebench_control::{Control, ControlError, Family, ProfileRequest};
use servebench_http::TcpConnect;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, LocalSet};

/// What is asked of a profiler that starts at `now`, in seconds since 1970, of the worker `label`.
fn request(profile: &ProfilePlan, now: f64, label: Option<&str>) -> ProfileRequest {
    // With a fraction always, as the Python tool writes it.
    let mut folder = format!("{}/{now:?}", absolute_folder(&profile.output_dir));
    if let Some(label) = label {
        folder = format!("{folder}/{label}");
    }
    ProfileRequest {
        activities: profile.activities.clone(),
        num_steps: profile.num_steps,
        profile_by_stage: profile.by_stage,
        profile_stages: (!profile.stages.is_empty()).then(|| profile.stages.clone()),
        output_dir: Some(folder),
        profile_prefix: profile.prefix.clone(),
        start_step: profile.start_step,
        ..ProfileRequest::default()
    }
}

/// Profilers that were started.
pub(super) struct Profiler {
    running: Vec<Running>,
    /// Whether they are those of workers.
    split: bool,
    /// What became of each worker, for the result.
    report: Vec<Value>,
}

/// One that runs, or has run.
struct Running {
    /// What it is called.
    name: String,
    control: Control<TcpConnect>,
    /// Whether its server ends the profile by itself.
    counts: bool,
}

impl Running {
    fn new(name: String, control: &Control<TcpConnect>, profile: &ProfilePlan) -> Self {
        // vLLM is given a number of steps at its own start, and none here.
        let counts = profile.num_steps.is_some() && control.family() != Family::Vllm;
        Self { name, control: control.clone(), counts }
    }
}

impl Profiler {
    /// Starts the profiler of the server that is measured, or those of the workers of the plan.
    ///
    /// A worker that refuses is said and left out; if the measured server does, there is no run.
    pub(super) fn start(
        profile: &ProfilePlan,
        server: &Server,
        now: f64,
        runtime: &Runtime,
        io: &Io,
    ) -> Result<Self, Failure> {
        let split = !profile.workers.is_empty();
        let mut this = Self { running: Vec::new(), split, report: Vec::new() };
        if !split {
            let request = request(profile, now, None);
            runtime.block_on(server.control.start_profile(&request)).map_err(|error| {
                Failure::new(Code::Server, error).hint("leave --profile out to measure without it")
            })?;
            io.say(format_args!(
                "profiler started; traces go to {} on the server",
                request.output_dir.as_deref().unwrap_or("its default folder")
            ));
            this.running.push(Running::new(String::new(), &server.control, profile));
            return Ok(this);
        }
        for (worker, reached) in profile.workers.iter().zip(&server.workers) {
            let name = format!("{} at {}", worker.label, worker.url);
            let request = request(profile, now, Some(&worker.label));
            let started = match reached {
                Ok(control) => runtime
                    .block_on(control.start_profile(&request))
                    .map(|()| control)
                    .map_err(|error| chain(&error)),
                Err(failure) => Err(format!("{:#}", failure.error)),
            };
            this.report.push(json!({
                "label": worker.label,
                "url": worker.url.to_string(),
                "error": started.as_ref().err(),
            }));
            match started {
                Ok(control) => {
                    io.say(format_args!(
                        "profiler started for {name}; traces go to {} there",
                        request.output_dir.as_deref().unwrap_or("its default folder")
                    ));
                    this.running.push(Running::new(name, control, profile));
                }
                Err(error) => io.say(format_args!("no profile of {name}: {error}")),
            }
        }
        if this.running.is_empty() {
            io.say("warning: no worker is profiled; the run goes on without");
        }
        Ok(this)
    }

    /// What became of each worker; `None` where the measured server was profiled.
    pub(super) fn report(&self) -> Option<Value> {
        self.split.then(|| json!(self.report))
    }

    /// Tells the servers to stop that do not do so by themselves; after an interrupt all of them, since
    /// the steps that they were to profile may never come.
    pub(super) fn stop(self, interrupted: bool) -> Option<Stopping> {
        let stopped: Vec<Running> =
            self.running.into_iter().filter(|it| interrupted || !it.counts).collect();
        (!stopped.is_empty()).then(|| Stopping::start(stopped, self.split))
    }
}

/// Profilers that are being stopped. That takes as long as their servers write traces; a result does
/// not wait for ever. Dropping this waits for the end.
pub(crate) struct Stopping {
    stopped: Receiver<Answer>,
    /// The answer, once it has come.
    answer: Option<Answer>,
    split: bool,
    thread: Option<JoinHandle<()>>,
}

/// What each server answered, by its name; or why none was asked.
type Answer = Result<Vec<(String, Result<(), ControlError>)>, Failure>;

impl Stopping {
    /// Tells all of them to stop, at the same time.
    fn start(running: Vec<Running>, split: bool) -> Self {
        let (done, stopped) = mpsc::channel();
        let stop = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let answer = runtime
                .or_code(Code::Bug)
                .map(|runtime| LocalSet::new().block_on(&runtime, stop_all(running)));
            if done.send(answer).is_err() {
                // Nobody waits any more.
            }
        };
        let thread = std::thread::Builder::new().name("profiler".into()).spawn(stop).ok();
        Self { stopped, answer: None, split, thread }
    }

    /// Waits for the answers, but no longer than `limit`; true if they have come.
    pub(super) fn wait_for(&mut self, limit: Duration) -> bool {
        if self.answer.is_none() {
            self.answer = self.stopped.recv_timeout(limit).ok();
        }
        self.answer.is_some()
    }

    /// Waits until the servers have stopped. Of workers it is said who did not; of the measured server
    /// it is a failure.
    pub(super) fn wait(mut self, io: &Io) -> Result<(), Failure> {
        let answer = self.answer.take().or_else(|| self.stopped.recv().ok());
        let answers = answer.unwrap_or_else(|| {
            Err(Failure::new(Code::Bug, anyhow::anyhow!("the profiler could not be told to stop")))
        })?;
        for (name, stopped) in answers {
            match stopped {
                Err(error) if !self.split => return Err(Failure::new(Code::Server, error)),
                Err(error) => {
                    let error = chain(&error);
                    io.say(format_args!("the profiler of {name} did not stop: {error}"));
                }
                Ok(()) if self.split => io.say(format_args!("profiler stopped for {name}")),
                Ok(()) => {}
            }
        }
        Ok(())
    }
}

impl Drop for Stopping {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            // The run has failed for another reason, which is being reported.
        }
    }
}

async fn stop_all(running: Vec<Running>) -> Vec<(String, Result<(), ControlError>)> {
    let mut stops = JoinSet::new();
    for (place, Running { name, control, counts }) in running.into_iter().enumerate() {
        stops.spawn_local(async move {
            let stopped = match control.stop_profile().await {
                // So servers answer when there is nothing to stop: the profile has ended by itself.
                Err(ControlError::Refused { status: 400 | 500, .. }) if counts => Ok(()),
                stopped => stopped,
            };
            (place, name, stopped)
        });
    }
    let mut answers = stops.join_all().await;
    answers.sort_by_key(|(place, ..)| *place);
    answers.into_iter().map(|(_, name, stopped)| (name, stopped)).collect()
}

/// An error with its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"))
}
