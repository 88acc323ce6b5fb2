//! Command-line parts of servebench: arguments, plan, progress, exit codes.
//!
//! A command is made of groups of flags ([`args`]), which become a [`Plan`] (validated,
//! serializable, no I/O), which [`serve`] carries out: prepare, ready check, warm-up, measure,
//! report. This is the only library of the workspace that knows clap, reads the environment
//! ([`Environment`]) and talks to a person ([`Io`]).
//!
//! # Example
//!
//! ```
//! use servebench_cli::{Environment, Plan, ServingArgs};
//!
//! let mut args = ServingArgs::default();
//! args.own.simulate = true;
//! args.load.request_rate = Some("50".into());
//! let plan = Plan::new(args, &Environment::default())?;
//! assert_eq!(plan.dataset.num_prompts, 200);
//! assert_eq!(plan.load.request_rate.get(), 50.0);
//!
//! let mut args = ServingArgs::default();
//! args.load.request_rate = Some("-1".into());
//! let failure = Plan::new(args, &Environment::default()).unwrap_err();
//! assert_eq!(failure.code.number(), 2);
//! # Ok::<(), servebench_cli::Failure>(())
//! ```

mod abbreviate;
mod analyze;
pub mod args;
mod command;
mod data;
mod endings;
mod environment;
mod exit;
mod fetching;
#[doc(hidden)]
pub mod fuzzing;
pub mod hash;
mod hidden;
mod io;
mod launch;
mod limits;
mod names;
mod network;
pub mod one_batch;
mod plan;
mod prepare;
pub mod profiler;
mod progress;
mod raw_log;
mod reach;
mod record;
mod refused;
mod replay;
mod replica;
mod resume;
pub mod send_one;
mod serve;
mod signals;
pub mod vllm;

pub use abbreviate::plain_arguments;
pub use analyze::analyze;
pub use command::{main, parse, parse_as};
pub use endings::EndingPlan;
pub use environment::{Environment, VARIABLES};
pub use exit::{Code, Failure};
pub use hidden::{Header, Hidden};
pub use io::{Captured, Io};
pub use limits::LimitPlan;
pub use plan::{
    Calibrate, ClientPlan, LoadPlan, LogPlan, Plan, ProfilePlan, ProfiledWorker, ReportPlan,
    SamplingPlan, ServingArgs,
};
pub use reach::NetworkPlan;
pub use record::RecordPlan;
pub use refused::{REFUSED, Refused, RefusedFlags};
pub use replay::replay;
pub use resume::resumed_arguments;
pub use serve::serve;
