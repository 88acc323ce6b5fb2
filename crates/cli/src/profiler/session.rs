//! Profiles under way: started together, waited for, stopped on every way out.

use super::live::LiveServer;
use super::traces::{self, TraceFile, expected};
use crate::exit::OrCode;
use crate::signals::Interrupts;
use crate::{Code, Failure, Io};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use servebench_control::{Control, ControlError, Family, ProfileRequest};
use servebench_http::TcpConnect;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How often files and signals are looked at.
const LOOK: Duration = Duration::from_millis(100);
/// How often something is said where there is no terminal.
const SAY: Duration = Duration::from_secs(5);
/// Files that have not changed for this long are complete when all are there.
const SETTLED: Duration = Duration::from_millis(700);
/// Files that have not changed for this long are complete when there may be more.
const QUIET: Duration = Duration::from_secs(10);
/// When it is said that a server without work does nothing to profile.
const IDLE: Duration = Duration::from_secs(3);

/// One server to profile.
pub(crate) struct Worker {
    /// Its name in messages, as in `Prefill-0`; empty when there is only one.
    pub(crate) label: String,
    pub(crate) server: LiveServer,
    pub(crate) request: ProfileRequest,
    /// What the server told about itself.
    pub(crate) info: Option<Value>,
}

impl Worker {
    /// The server's folder for this profile.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.request.output_dir.as_deref().map(Path::new)
    }

    /// Its name and address, for messages.
    pub(crate) fn name(&self) -> String {
        let base = self.server.target.base();
        if self.label.is_empty() { base.to_string() } else { format!("{} ({base})", self.label) }
    }

    async fn start(&self) -> Result<(), ControlError> {
        match self.server.control.family() {
            Family::Vllm => self.server.control.start_configured_profile().await,
            _ => self.server.control.start_profile(&self.request).await,
        }
    }
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// What was waited for has come.
    Complete,
    /// The time was up.
    TimeUp,
    /// A signal came.
    Interrupted,
}

/// Running profiles. Dropping this stops those that still run.
pub(crate) struct Session<'a> {
    runtime: &'a Runtime,
    io: &'a Io,
    workers: Vec<Worker>,
    /// How many of them, from the first on, may still be profiling.
    running: usize,
}

impl<'a> Session<'a> {
    /// Starts the profiler of every worker. If one refuses, the others are stopped again.
    pub(crate) fn start(
        runtime: &'a Runtime,
        workers: Vec<Worker>,
        io: &'a Io,
    ) -> Result<Self, Failure> {
        let mut this = Self { runtime, io, workers, running: 0 };
        for at in 0..this.workers.len() {
            let worker = &this.workers[at];
            this.runtime.block_on(worker.start()).map_err(|error| {
                let hint = start_hint(&error);
                let error = anyhow::Error::new(error);
                let error = if worker.label.is_empty() {
                    error
                } else {
                    error.context(format!("cannot profile {}", worker.name()))
                };
                Failure { code: Code::Server, error, hint: Some(hint.into()) }
            })?;
            this.running = at + 1;
            this.io.say(format_args!("profiler started at {}", this.workers[at].name()));
        }
        Ok(this)
    }

    /// The first of the workers.
    pub(crate) fn first(&self) -> &LiveServer {
        &self.workers[0].server
    }

    /// The first worker's folder.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.workers.first()?.folder()
    }

    /// The workers' folders that hold traces which can be seen from here.
    fn folders(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.workers.iter().filter_map(|worker| worker.folder().map(Path::to_owned))
    }

    /// The trace files there are by now.
    pub(crate) fn files(&self) -> Vec<TraceFile> {
        self.folders().flat_map(|folder| traces::in_folder(&folder)).collect()
    }

    /// Waits until every server has written its traces, but no longer than `limit`.
    pub(crate) fn wait_for_traces(&mut self, limit: Duration, interrupts: &Interrupts) -> Ended {
        let wanted = |worker: &Worker| expected(&worker.request, worker.info.as_ref());
        let wanted: usize = self.workers.iter().map(wanted).sum();
        let by_stage = self.workers.iter().any(|worker| worker.request.profile_by_stage);
        if wanted == 0 {
            return Ended::Complete;
        }
        let (mut last, mut changed) = (Vec::new(), Duration::ZERO);
        let mut told = false;
        let io = self.io;
        let ended = self.wait(limit, interrupts, |waited| {
            let files = self.files();
            if files != last {
                (last, changed) = (files, waited);
            }
            if last.is_empty() && waited >= IDLE && !std::mem::replace(&mut told, true) {
                io.say(
                    "nothing is written yet: steps are counted only while the server has work, so \
                     send it requests (send-one, bench-serving); its idle loop is recorded \
                     meanwhile, which makes large traces",
                );
            }
            let still = waited.saturating_sub(changed);
            let written = !last.is_empty() && last.iter().all(|file| file.bytes > 0);
            let all = last.len() >= wanted && still >= SETTLED;
            // A profile by stage may wait long for its second stage, but ends with decode: prefill is
            // left out where decoding was under way already.
            let last_stage = !by_stage || last.iter().any(TraceFile::is_decode);
            let enough = last_stage && still >= QUIET;
            let bytes = last.iter().map(|file| file.bytes).sum();
            let state = format!("{} of {wanted} trace files, {}", last.len(), traces::size(bytes));
            (written && (all || enough), state)
        });
        if ended == Ended::Complete {
            self.running = 0;
        }
        ended
    }

    /// Lets the profiles run for `duration`.
    pub(crate) fn run_for(&self, duration: Duration, interrupts: &Interrupts) -> Ended {
        let seconds = duration.as_secs_f64();
        self.wait(duration, interrupts, |_| (false, format!("profiling for {seconds} s")))
    }

    /// Looks again and again until `look` is content, the time is up or a signal comes, and shows
    /// what `look` says.
    fn wait(
        &self,
        limit: Duration,
        interrupts: &Interrupts,
        mut look: impl FnMut(Duration) -> (bool, String),
    ) -> Ended {
        let _inside = self.runtime.enter();
        let began = now();
        let bar = self.io.is_terminal().then(spinner);
        let mut said = Duration::ZERO;
        let ended = loop {
            let waited = began.elapsed();
            let (content, state) = look(waited);
            if content {
                break Ended::Complete;
            }
            if interrupts.code().is_some() {
                break Ended::Interrupted;
            }
            if waited >= limit {
                break Ended::TimeUp;
            }
            match &bar {
                Some(bar) => bar.set_message(state),
                None if waited >= said + SAY => {
                    said = waited;
                    self.io.say(format_args!("{state} after {} s", waited.as_secs()));
                }
                None => {}
            }
            self.runtime.block_on(tokio::time::sleep(LOOK.min(limit.saturating_sub(waited))));
        };
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        ended
    }

    /// Leaves the profiles to the servers, which end them after their number of steps.
    pub(crate) fn leave(&mut self) {
        self.running = 0;
    }

    /// Stops every profile that may still run, and returns once the servers have written their
    /// traces. Every server is told, whatever others answer.
    pub(crate) fn stop(&mut self) -> Result<(), Failure> {
        let running = std::mem::take(&mut self.running);
        if running == 0 {
            return Ok(());
        }
        self.io.say("stopping the profiler; the server answers once its traces are written");
        let mut result = Ok(());
        for worker in self.workers.iter().take(running) {
            let stopped = stop_saying(&worker.server.control, self.io);
            match self.runtime.block_on(stopped) {
                Ok(()) => self.io.say(format_args!("profiler stopped at {}", worker.name())),
                // So servers answer when there is nothing to stop.
                Err(ControlError::Refused { status: 400 | 500, body, .. })
                    if worker.request.num_steps.is_some() =>
                {
                    self.io.say(format_args!(
                        "{} has nothing to stop ({body}): its profile has ended by itself",
                        worker.name()
                    ));
                }
                Err(error) => result = result.and(Err(error).or_code(Code::Server)),
            }
        }
        result.map_err(|failure: Failure| {
            failure.hint("the server may still be profiling; `profiler stop` tries again")
        })
    }
}

/// Stops a server's profiler, and says now and then that it is not done yet: exporting traces takes
/// a server from seconds to minutes.
pub(super) async fn stop_saying(
    control: &Control<TcpConnect>,
    io: &Io,
) -> Result<(), ControlError> {
    let mut stopped = pin!(control.stop_profile());
    let mut seconds = 0;
    loop {
        if let Ok(answer) = tokio::time::timeout(SAY, stopped.as_mut()).await {
            return answer;
        }
        seconds += SAY.as_secs();
        io.say(format_args!("still writing traces after {seconds} s"));
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if let Err(failure) = self.stop() {
            // Another failure is on its way out already.
            self.io.say(format_args!("warning: {}", failure.error));
        }
    }
}

fn start_hint(error: &ControlError) -> &'static str {
    match error {
        ControlError::Unauthorized { .. } => {
            "give the server's key in OPENAI_API_KEY; a server with an admin key takes only that \
             one here: --header \"Authorization=Bearer KEY\""
        }
        ControlError::Refused { status: 400 | 500, .. } => {
            "a profile may already be in progress: `profiler stop` ends it; the server's log has more"
        }
        ControlError::Call(_) => "check --url; is the server up?",
        _ => "check --url and --server",
    }
}

fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg} [{elapsed}]");
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.enable_steady_tick(Duration::from_millis(120));
    bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
}

#[expect(clippy::disallowed_methods, reason = "a stopwatch for a person, not a measurement")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
