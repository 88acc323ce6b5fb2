//! The load engine: phases, schedule, concurrency, workers and stop rules over any backend.
//!
//! A [`Job`] is fixed before the clock starts: encoded requests, due times, a cap. The engine
//! takes the requests in plan order, waits until each is due and a slot is free, sends it through
//! a [`Backend`](servebench_core::Backend) and keeps one [`Record`](servebench_core::Record) for
//! each. It knows nothing of HTTP, tokenizers or command lines.
//!
//! * Late is recorded, never skipped and never re-anchored.
//! * A request belongs to one worker from dispatch to record; nothing is locked per token.
//! * A request that panics is one failed request.
//!
//! # Example
//!
//! Any backend will do; this one answers after 5 ms with one token:
//!
//! ```
//! use servebench_core::{Backend, Clock, Reply, Request, Stamp};
//! use servebench_run::{Job, Progress, Stop, TokioClock, run_on_threads};
//!
//! struct Echo(TokioClock);
//!
//! impl Backend for Echo {
//!     async fn send(&self, _request: &Request, reply: &mut Reply) {
//!         let due = Stamp::from(self.0.now().offset() + std::time::Duration::from_millis(5));
//!         self.0.sleep_until(due).await;
//!         reply.push_chunk(self.0.now(), Some(1), 0, "hi");
//!     }
//! }
//!
//! let requests = (0..8).map(|id| Request { id, ..Request::default() }).collect();
//! let job = Job { max_concurrency: Some(2), ..Job::burst(requests) };
//! let done = run_on_threads(&job, 1, Echo, &Default::default(), &Stop::default())?;
//! assert_eq!(done.records.len(), 8);
//! assert!(done.end >= Stamp::from_millis(20), "two at a time, four rounds of 5 ms");
//! # Ok::<(), servebench_run::RunError>(())
//! ```

mod bodies;
mod clients;
mod clock;
mod endings;
mod engine;
mod job;
mod oversight;
mod pacer;
#[cfg(target_os = "linux")]
mod precise;
mod progress;
mod stop;
#[cfg(target_os = "linux")]
mod timer;
mod watch;
mod witness;
mod worker;

pub use bodies::Encoder;
pub use clients::{Choice, Clients};
pub use clock::TokioClock;
pub use endings::{EndedBy, Endings};
pub use engine::{Finished, run_here, run_on_threads};
pub use job::{Job, RunError};
pub use progress::{Progress, Silence, UnderWay};
pub use stop::Stop;
pub use watch::LoopHealth;
pub use witness::Witness;
