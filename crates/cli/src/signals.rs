//! Ctrl-C and SIGTERM.

use crate::{Code, Io};
use servebench_run::Stop;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::SeqCst};
use std::task::Poll;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

/// How long requests under way may take after the first signal.
const GRACE: Duration = Duration::from_secs(3);

/// What signals did to a run.
///
/// The first signal ends the measurement early: nothing more is sent, requests under way get a
/// short grace, a complete result is written and marked. The second leaves at once, and so does the
/// first while there is nothing measured yet, or when the result is written. The listener ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Interrupts {
    shared: Shared,
    /// Dropped with the run, which tells the listener that it is over.
    _run: oneshot::Sender<()>,
}

/// What the run and the listener both see.
#[derive(Clone, Debug, Default)]
struct Shared {
    /// The exit code that the first signal asks for, 0 before.
    code: Arc<AtomicU8>,
    measuring: Arc<AtomicBool>,
}

impl Interrupts {
    /// Listens from now on; without a listener the signals keep their usual effect.
    pub(crate) fn listen(stop: &Stop, io: &Io) -> io::Result<Self> {
        Self::listen_saying(
            stop,
            io,
            "interrupted: no more requests are sent; those under way get 3s. \
             Once more to leave at once",
        )
    }

    /// As [`listen`](Self::listen), for a command whose first signal does something else, which
    /// `said` tells.
    pub(crate) fn listen_saying(stop: &Stop, io: &Io, said: &'static str) -> io::Result<Self> {
        let shared = Shared::default();
        let (run, mut over) = oneshot::channel();
        let this = Self { shared: shared.clone(), _run: run };
        let (stop, io) = (stop.clone(), io.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("signals".into()).spawn(move || {
            runtime.block_on(async {
                let interrupt = signal(SignalKind::interrupt());
                let terminate = signal(SignalKind::terminate());
                if let (Ok(interrupt), Ok(terminate)) = (interrupt, terminate) {
                    let mut handled = pin!(shared.handle(interrupt, terminate, &stop, said, &io));
                    poll_fn(|cx| match Pin::new(&mut over).poll(cx) {
                        Poll::Ready(_) => Poll::Ready(()),
                        Poll::Pending => handled.as_mut().poll(cx),
                    })
                    .await;
                }
            });
        })?;
        Ok(this)
    }

    /// From now on there is something to lose.
    pub(crate) fn begin_measuring(&self) {
        self.shared.measuring.store(true, SeqCst);
    }

    /// From now on what there was to lose is written.
    pub(crate) fn end_measuring(&self) {
        self.shared.measuring.store(false, SeqCst);
    }

    /// The code to end with, if a signal came.
    pub(crate) fn code(&self) -> Option<Code> {
        [Code::Interrupted, Code::Terminated]
            .into_iter()
            .find(|code| code.number() == self.shared.code.load(SeqCst))
    }
}

impl Shared {
    async fn handle(
        &self,
        mut interrupt: Signal,
        mut terminate: Signal,
        stop: &Stop,
        said: &str,
        io: &Io,
    ) {
        let first = next(&mut interrupt, &mut terminate).await;
        if !self.measuring.load(SeqCst) {
            leave(first);
        }
        self.code.store(first.number(), SeqCst);
        stop.drain();
        io.say(said);
        let second = next(&mut interrupt, &mut terminate);
        if let Ok(code) = tokio::time::timeout(GRACE, second).await {
            leave(code);
        }
        stop.abort();
        leave(next(&mut interrupt, &mut terminate).await);
    }
}

async fn next(interrupt: &mut Signal, terminate: &mut Signal) -> Code {
    poll_fn(|cx| {
        if interrupt.poll_recv(cx).is_ready() {
            return Poll::Ready(Code::Interrupted);
        }
        terminate.poll_recv(cx).map(|_| Code::Terminated)
    })
    .await
}

#[expect(clippy::exit, reason = "asked to leave at once, with nothing left to save")]
#[expect(clippy::disallowed_methods, reason = "asked to leave at once, with nothing left to save")]
fn leave(code: Code) -> ! {
    std::process::exit(i32::from(code.number()))
}
