//! When requests start: burst, constant, Poisson and gamma arrival schedules for load tests.
//!
//! A schedule is an iterator of absolute offsets since the start of the run. It knows no clock and
//! never looks at what the server does: the whole schedule is fixed before the first request is
//! sent, and whoever waits for the offsets waits for `start + offset`, so that one late request
//! never moves the next one.
//!
//! Invariant: offsets never decrease, and an open-ended schedule never runs out.
//!
//! # Example
//!
//! ```
//! use servebench_arrival::{Constant, Poisson, Rate};
//! use servebench_core::{Stamp, random::NumpyLegacy};
//!
//! let rate: Rate = "10".parse()?;
//! let even: Vec<Stamp> = Constant::new(rate).take(3).collect();
//! assert_eq!(even, [0, 100, 200].map(Stamp::from_millis));
//!
//! // The schedule of SGLang's benchmark tool with `--seed 42 --request-rate 10`.
//! let mut draws = NumpyLegacy::new(42);
//! let random: Vec<Stamp> = Poisson::new(rate, &mut draws).take(3).collect();
//! assert_eq!(random, [0, 46_926_809, 347_938_952].map(Stamp));
//! # Ok::<(), servebench_arrival::ArrivalError>(())
//! ```

mod gamma;
mod planned;
mod rate;
mod schedule;

pub use gamma::{Burstiness, Gamma, GammaGaps};
pub use planned::{Ramp, RampShape, stretched};
pub use rate::{ArrivalError, Rate};
pub use schedule::{Burst, Constant, Poisson, PoissonGaps, Timeline};
