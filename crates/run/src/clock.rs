//! The run's clock.

use servebench_core::{Clock, Stamp};
use std::future::Future;
use std::sync::{Arc, OnceLock};
use tokio::time::Instant;

/// tokio's clock, counted from the start of the run: real time in production, virtual time in a
/// test whose runtime is paused.
///
/// A clock that has not been started stands at 0, so that everything that stamps can be built
/// before the run begins. Clones share one start.
#[derive(Clone, Debug, Default)]
pub struct TokioClock {
    start: Arc<OnceLock<Instant>>,
}

impl TokioClock {
    /// Starts the run now; later calls change nothing.
    #[expect(clippy::disallowed_methods, reason = "this is the clock that others read")]
    pub fn start(&self) {
        self.start.get_or_init(Instant::now);
    }
}

impl Clock for TokioClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock that others read")]
    fn now(&self) -> Stamp {
        self.start.get().map_or(Stamp(0), |start| Stamp::from(Instant::now() - *start))
    }

    fn sleep_until(&self, at: Stamp) -> impl Future<Output = ()> {
        let start = self.start.get().copied();
        async move {
            match start {
                Some(start) => tokio::time::sleep_until(start + at.offset()).await,
                // Nothing is due on a clock that does not run.
                None => std::future::pending().await,
            }
        }
    }
}
