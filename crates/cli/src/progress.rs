//! Progress of a phase, drawn by a thread of its own that only reads counters.

use crate::Io;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use servebench_run::Progress;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the bar is redrawn.
const REDRAW: Duration = Duration::from_millis(125);
/// How often a line is written where there is no terminal.
const LINE: Duration = Duration::from_secs(5);

/// Shows a phase's progress until it is dropped: a bar on a terminal, a line now and then elsewhere.
#[derive(Debug)]
pub(crate) struct Ticker {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Shows nothing.
    pub(crate) fn silent() -> Self {
        Self { stop: None, thread: None }
    }

    /// Shows `progress` towards `total` requests.
    pub(crate) fn start(io: &Io, progress: &Arc<Progress>, total: usize) -> Self {
        let (stop, stopped) = mpsc::channel();
        let (io, progress) = (io.clone(), Arc::clone(progress));
        let draw = move || {
            if io.is_terminal() {
                let bar = bar(total);
                tick(&stopped, REDRAW, || {
                    bar.set_message(message(&progress));
                    bar.set_position(progress.finished() as u64);
                });
                bar.finish_and_clear();
            } else {
                let mut last = 0;
                tick(&stopped, LINE, || {
                    let finished = progress.finished();
                    if finished != last {
                        last = finished;
                        io.say(format_args!("{finished}/{total} requests{}", message(&progress)));
                    }
                });
            }
        };
        let thread = std::thread::Builder::new().name("progress".into()).spawn(draw).ok();
        Self { stop: Some(stop), thread }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            // A bar that cannot be drawn is no reason to stop.
        }
    }
}

/// Calls `show` every `period`, and once more when the other end is gone.
fn tick(stopped: &mpsc::Receiver<()>, period: Duration, mut show: impl FnMut()) {
    while stopped.recv_timeout(period) == Err(RecvTimeoutError::Timeout) {
        show();
    }
    show();
}

fn bar(total: usize) -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:30} {pos}/{len} requests{msg} [{elapsed_precise}, {per_sec}, {eta} left]",
    )
    .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
    bar.with_style(style)
}

fn message(progress: &Progress) -> String {
    let under_way = progress.sent().saturating_sub(progress.finished());
    match progress.failed() {
        0 => format!(", {under_way} under way"),
        failed => format!(", {under_way} under way, {failed} failed"),
    }
}
