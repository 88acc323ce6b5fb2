//! `vllm bench`: its flags, its table and its result, over the parts that all front ends share.
//!
//! [`plain`] puts a command line into the form that clap reads; [`args`] are the groups of flags; they
//! become a [`VllmPlan`], whose [`run`](VllmPlan::run) is the [`Plan`](crate::Plan) of all front ends;
//! [`serve`] carries it out.

mod analyze;
pub mod args;
mod arguments;
mod beside;
mod counters;
mod dataset;
mod latency;
mod offline;
mod plan;
mod plots;
mod prepare;
mod result;
mod run;
mod sent;
mod server;
mod session;
mod startup;
pub mod sweep;
mod throughput;
mod values;
mod workloads;

pub use analyze::{analyze, replay};
pub use arguments::plain;
pub use latency::{LATENCY_FLAGS, LatencyArgs, latency, parse_latency};
pub use offline::{AroundArgs, OfflineArgs};
pub use plan::{RampPlan, VllmLoadPlan, VllmPlan, VllmReportPlan, VllmServeArgs};
pub use run::serve;
pub use startup::{STARTUP_FLAGS, StartupArgs, parse_startup, startup};
pub use throughput::{THROUGHPUT_FLAGS, ThroughputArgs, parse_throughput, throughput};
pub use workloads::{
    CONVERT_SHAREGPT_FLAGS, ConversationSampling, ConvertShareGptArgs, MULTI_TURN_FLAGS,
    MultiTurnArgs, MultiTurnLoadArgs, MultiTurnReportArgs, MultiTurnTargetArgs, convert_sharegpt,
    multi_turn, parse_convert_sharegpt, parse_multi_turn,
};
pub use workloads::{
    LONG_DOCUMENT_QA_FLAGS, LongDocumentQaArgs, PREFIX_CACHING_FLAGS, PRIORITIZATION_FLAGS,
    PrefixCachingArgs, PrioritizationArgs, RepeatMode, STRUCTURED_OUTPUT_FLAGS,
    StructuredOutputArgs, long_document_qa, parse_long_document_qa, parse_prefix_caching,
    parse_prioritization, parse_structured_output, prefix_caching, prioritization,
    structured_output,
};

use crate::command::understood;
use crate::raw_log::logged_arguments;
use crate::{Failure, Io, parse_as};
use args::VLLM_FLAGS;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;

/// Reads arguments (without program and subcommand) the way `vllm bench serve` does, and gives beside them what a
/// log keeps of the command line.
///
/// `Ok(None)` when all that was asked for, as with `--help`, has been printed.
///
/// # Errors
///
/// A usage failure whose message names the flag.
pub fn parse_serve<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<(A, Vec<String>)>, Failure> {
    let plain = plain(arguments, VLLM_FLAGS, io)?;
    let parsed = parse_as(plain.clone(), "vllm bench serve", VLLM_FLAGS, io)?;
    let logged = |args| Ok((args, logged_arguments(&understood::<A>(&plain, VLLM_FLAGS)?)));
    parsed.map(logged).transpose()
}

/// Reads bytes from outside, for fuzzing: a `--config` file, a page of counters, a server's log.
#[doc(hidden)]
pub fn read_foreign_bytes(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    drop(arguments::entries(&text));
    drop(counters::Counters::read(&text));
    startup::read_foreign_bytes(&text);
}
