//! The server's profiler around a run.

use crate::exit::OrCode;
use crate::profiler::absolute_folder;
use crate::{Code, Failure, ProfilePlan};
use servebench_control::{Control, ProfileRequest};
use servebench_http::TcpConnect;
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is asked of a profiler that starts at `now`, in seconds since 1970.
pub(super) fn request(profile: &ProfilePlan, now: f64) -> ProfileRequest {
    ProfileRequest {
        activities: profile.activities.clone(),
        num_steps: profile.num_steps,
        profile_by_stage: profile.by_stage,
        profile_stages: (!profile.stages.is_empty()).then(|| profile.stages.clone()),
        // With a fraction always, as the Python tool writes it.
        output_dir: Some(format!("{}/{now:?}", absolute_folder(&profile.output_dir))),
        profile_prefix: profile.prefix.clone(),
        start_step: profile.start_step,
        ..ProfileRequest::default()
    }
}

/// A profiler that is being stopped. That takes as long as its server writes traces; a result does
/// not wait for ever. Dropping this waits for the end.
pub(super) struct Stopping {
    stopped: Receiver<Result<(), Failure>>,
    /// The answer, once it has come.
    answer: Option<Result<(), Failure>>,
    thread: Option<JoinHandle<()>>,
}

impl Stopping {
    /// Tells the server to stop.
    pub(super) fn start(control: &Control<TcpConnect>) -> Self {
        let control = control.clone();
        let (done, stopped) = mpsc::channel();
        let stop = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let answer = runtime
                .or_code(Code::Bug)
                .and_then(|runtime| runtime.block_on(control.stop_profile()).or_code(Code::Server));
            if done.send(answer).is_err() {
                // Nobody waits any more.
            }
        };
        let thread = std::thread::Builder::new().name("profiler".into()).spawn(stop).ok();
        Self { stopped, answer: None, thread }
    }

    /// Waits for the answer, but no longer than `limit`; true if it has come.
    pub(super) fn wait_for(&mut self, limit: Duration) -> bool {
        if self.answer.is_none() {
            self.answer = self.stopped.recv_timeout(limit).ok();
        }
        self.answer.is_some()
    }

    /// Waits until the server has stopped.
    pub(super) fn wait(mut self) -> Result<(), Failure> {
        let answer = self.answer.take().or_else(|| self.stopped.recv().ok());
        answer.unwrap_or_else(|| {
            Err(Failure::new(Code::Bug, anyhow::anyhow!("the profiler could not be told to stop")))
        })
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
