//! Records of LLM requests to numbers: TTFT, TPOT, ITL, throughput, goodput, percentiles.
//!
//! Pure mathematics: no clock, no I/O. Each number's documentation is its formula. Where the Python
//! tool computes something else under the same name, both are here: [`Aggregates::own`] and
//! [`Aggregates::upstream`].
//!
//! [`verdict`] weighs what is known of the client, and says whose limit the numbers show.
//!
//! Invariant: a run's numbers are a function of the set of its records. How they were split over
//! workers, and in which order they were added, changes not a bit.
//!
//! # Example
//!
//! ```
//! use servebench_core::{Record, Stamp};
//! use servebench_metrics::{ItlRule, Measured, Options, aggregate};
//!
//! let mut record = Record { prompt_len: 8, output_len: 5, ..Record::default() };
//! for (ms, tokens) in [(500, 1), (900, 3), (1000, 1)] {
//!     record.reply.push_chunk(Stamp::from_millis(ms), Some(tokens), 0, "text");
//! }
//! record.reply.last_line = Some(Stamp::from_millis(1200));
//! record.reply.completion_tokens = Some(5);
//!
//! let options = Options { itl_rule: ItlRule::SpreadOverTokens, ..Options::default() };
//! let run = aggregate([Measured::from(&record)], &options);
//! assert_eq!(run.ttft.map(|ttft| ttft.mean), Some(0.5));
//! assert_eq!(run.own.e2e.map(|e2e| e2e.mean), Some(1.0));
//! assert_eq!(run.own.tpot.map(|tpot| tpot.mean), Some(0.125));
//! // The Python tool's latency ends with the last line of the stream.
//! assert_eq!(run.upstream.tpot.map(|tpot| tpot.mean), Some(0.175));
//! ```

mod aggregates;
mod cache;
mod counted;
mod fold;
mod gaps;
mod goodput;
mod measured;
mod peaks;
mod reception;
mod series;
mod stats;
mod steady;
mod streams;
mod sums;
pub mod verdict;

pub use aggregates::{Aggregates, FailureTally, View};
pub use cache::{CachePlaces, CacheReport};
pub use fold::{Aggregate, Options, aggregate};
pub use gaps::{Gap, ItlRule};
pub use goodput::{Goodput, Slo, SloMetric};
pub use measured::{Measured, OutputCount};
pub use peaks::{peak_overlap, peak_per_second};
pub use reception::{Bounds, EXACT_WITHIN, Reception};
pub use series::Series;
pub use stats::{Distribution, percentile};
pub use steady::{SteadyError, SteadyState, SteadyWindow};
