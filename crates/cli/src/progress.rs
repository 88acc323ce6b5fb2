//! Progress of a phase, drawn by a thread of its own that only reads counters.

use crate::Io;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use servebench_run::{Progress, Silence};
use servebench_tokens::Tokenizer;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the bar is redrawn.
const REDRAW: Duration = Duration::from_millis(125);
/// How often a line is written where there is no terminal.
const LINE: Duration = Duration::from_secs(5);
/// How often it is looked whether anything still comes.
const WATCH: Duration = Duration::from_millis(250);

/// How long the preparation may take before it is spoken of.
const PATIENCE: Duration = Duration::from_secs(1);

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
        let (io, progress) = (io.clone(), Arc::clone(progress));
        Self::spawn(move |stopped| {
            if io.is_terminal() {
                let bar = bar(total);
                tick(stopped, REDRAW, || {
                    bar.set_message(message(&progress));
                    bar.set_position(progress.finished() as u64);
                });
                bar.finish_and_clear();
            } else {
                let mut last = 0;
                tick(stopped, LINE, || {
                    let finished = progress.finished();
                    if finished != last {
                        last = finished;
                        io.say(format_args!("{finished}/{total} requests{}", message(&progress)));
                    }
                });
            }
        })
    }

    /// Says what a run waits for when nothing comes any more: after a while, and whenever the silence has
    /// become twice as long.
    pub(crate) fn watchdog(io: &Io, progress: &Arc<Progress>) -> Self {
        let (io, progress) = (io.clone(), Arc::clone(progress));
        Self::spawn(move |stopped| {
            let mut next = Duration::ZERO;
            while stopped.recv_timeout(WATCH) == Err(RecvTimeoutError::Timeout) {
                match progress.silence() {
                    Some(silence) if silence.lasts >= next => {
                        io.say(told(&silence));
                        next = silence.lasts * 2;
                    }
                    Some(_) => {}
                    None => next = Duration::ZERO,
                }
            }
        })
    }

    /// Shows that requests are being prepared, once that takes long.
    pub(crate) fn preparing(io: &Io, tokenizer: &Tokenizer) -> Self {
        let (io, tokenizer) = (io.clone(), tokenizer.clone());
        Self::spawn(move |stopped| preparing(&io, stopped, PATIENCE, || tokenizer.texts()))
    }

    fn spawn(draw: impl FnOnce(&Receiver<()>) + Send + 'static) -> Self {
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new().name("progress".into());
        Self { stop: Some(stop), thread: thread.spawn(move || draw(&stopped)).ok() }
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

/// Says how many texts have been tokenized: nothing before `patience` is over.
fn preparing(io: &Io, stopped: &Receiver<()>, patience: Duration, texts: impl Fn() -> u64) {
    if stopped.recv_timeout(patience) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    if io.is_terminal() {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{spinner} preparing: {msg} [{elapsed_precise}]");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        let bar = bar.with_elapsed(patience);
        tick(stopped, REDRAW, || bar.set_message(format!("{} texts tokenized", texts())));
        bar.finish_and_clear();
    } else {
        io.say(format_args!("still preparing: {} texts tokenized", texts()));
        while stopped.recv_timeout(LINE) == Err(RecvTimeoutError::Timeout) {
            io.say(format_args!("still preparing: {} texts tokenized", texts()));
        }
    }
}

/// Calls `show` every `period`, and once more when the other end is gone.
fn tick(stopped: &Receiver<()>, period: Duration, mut show: impl FnMut()) {
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

/// What is said of a silence.
fn told(silence: &Silence) -> String {
    let Silence { lasts, under_way, oldest } = silence;
    let mut text = format!(
        "nothing has come for {:.0} s, and the run waits for {under_way} request(s):",
        lasts.as_secs_f64()
    );
    for request in oldest {
        let age = request.age.as_secs_f64();
        let come = if request.has_begun {
            format!("the last that came for it, {:.0} s ago", request.silent.as_secs_f64())
        } else {
            "nothing has come for it".to_owned()
        };
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  request {}: sent {age:.0} s ago; {come}", request.id);
    }
    if *under_way > oldest.len() {
        let _ = write!(text, "\n  and {} sent later", under_way - oldest.len());
    }
    text
}

fn message(progress: &Progress) -> String {
    let under_way = progress.sent().saturating_sub(progress.finished());
    match progress.failed() {
        0 => format!(", {under_way} under way"),
        failed => format!(", {under_way} under way, {failed} failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use servebench_run::UnderWay;
    use std::cell::Cell;

    #[test]
    fn a_silence_is_told_with_the_requests_that_are_waited_for() {
        let seconds = Duration::from_secs;
        let stopped = UnderWay { id: 7, age: seconds(64), silent: seconds(31), has_begun: true };
        let mute = UnderWay { id: 9, age: seconds(40), silent: seconds(40), has_begun: false };
        let silence = Silence {
            lasts: Duration::from_millis(31_200),
            under_way: 5,
            oldest: vec![stopped, mute],
        };
        assert_eq!(
            told(&silence),
            "nothing has come for 31 s, and the run waits for 5 request(s):\n  \
             request 7: sent 64 s ago; the last that came for it, 31 s ago\n  \
             request 9: sent 40 s ago; nothing has come for it\n  \
             and 3 sent later"
        );
    }

    #[test]
    fn a_short_preparation_is_not_spoken_of() {
        let (io, captured) = Io::captured();
        let (stop, stopped) = mpsc::channel();
        drop(stop);
        preparing(&io, &stopped, Duration::ZERO, || 7);
        assert_eq!(captured.err(), "");
    }

    #[test]
    fn a_long_preparation_is_spoken_of() {
        let (io, captured) = Io::captured();
        let (stop, stopped) = mpsc::channel();
        let stop = Cell::new(Some(stop));
        // It ends when it is first spoken of.
        preparing(&io, &stopped, Duration::ZERO, || {
            drop(stop.take());
            7
        });
        assert_eq!(captured.err(), "still preparing: 7 texts tokenized\n");
    }
}
