//! The command lines of `profiler` and its subcommands.

use clap::Parser;
use servebench_cli::profiler::{FlushArgs, LengthArgs, ServersArgs, WhatArgs};

/// Profiles a running LLM inference server for some steps and says where the traces are
///
/// Takes the flags of `python -m sglang.profiler`, unique prefixes of them included, and defaults to
/// what it does: 5 forward steps of CPU and GPU. Unlike it, it waits for the traces where their
/// folder can be seen from here, lists them, and stops the profiler on every way out, Ctrl-C too.
///
/// A server counts steps only while it has work: start the load first, or profile one request with
/// `send-one --profile`.
///
/// The first word may be a command of its own, each with a --help:
///
///   start        start the profiler and leave it running; every field can be set
///   stop         stop it and wait until its traces are written
///   flush-cache  empty the prefix cache
///   server-info  print what the server tells about itself, as JSON
#[derive(Parser, Debug)]
#[command(
    name = "profiler",
    version,
    after_help = PROFILE_EXAMPLES,
    verbatim_doc_comment,
    max_term_width = 100,
    args_override_self = true
)]
pub struct Profile {
    /// Which servers.
    #[command(flatten)]
    pub servers: ServersArgs,
    /// What is profiled.
    #[command(flatten)]
    pub what: WhatArgs,
    /// How long.
    #[command(flatten)]
    pub length: LengthArgs,
}

const PROFILE_EXAMPLES: &str = "\
Examples:
  # Try it without a server: a simulated one, kept busy, with real trace files:
  profiler --simulate --output-dir traces

  # The SGLang server on this machine, while something else sends it requests:
  profiler --num-steps 10 --output-dir /tmp/profiles

  # Prefill and decode apart, of the two decode workers of a split server:
  profiler --profile-decode-url http://d0:30001 http://d1:30001 --profile-by-stage

  # A vLLM server that was started with --profiler-config, for ten seconds:
  profiler --url http://localhost:8000 --duration 10

  # From start to stop, by hand:
  profiler start --start-step 300 --activities CUDA_PROFILER && profiler stop

The traces open in https://ui.perfetto.dev and in chrome://tracing.

Exit codes: 0 done, 1 bug, 2 usage, 3 bad data, 4 server not reached or refused, 7 output not
written, 130/143 interrupted (the profiler was stopped).";

/// Starts the profiler of running servers and leaves it running
///
/// Only what is given is sent: the rest is the server's own default. Without --num-steps it runs
/// until `profiler stop`.
#[derive(Parser, Debug)]
#[command(
    name = "profiler start",
    version,
    after_help = START_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct Start {
    /// Which servers.
    #[command(flatten)]
    pub servers: ServersArgs,
    /// What is profiled.
    #[command(flatten)]
    pub what: WhatArgs,
}

const START_EXAMPLES: &str = "\
Examples:
  profiler start                                        # until `profiler stop`
  profiler start --num-steps 10                         # stops by itself
  profiler start --num-steps 10 --detailed-annotations --output-dir /tmp/profiles
  profiler start --start-step 5 --num-steps 10 --activities CPU GPU
  profiler start --num-steps 10 --merge-profiles        # one more file, of all ranks";

/// Stops the profiler of running servers and waits until its traces are written
#[derive(Parser, Debug)]
#[command(
    name = "profiler stop",
    version,
    after_help = "Examples:\n  profiler stop\n  profiler stop --url http://host:30000",
    max_term_width = 100,
    args_override_self = true
)]
pub struct Stop {
    /// Which servers.
    #[command(flatten)]
    pub servers: ServersArgs,
}

/// Empties the prefix cache of running servers
///
/// SGLang is given time to become idle. vLLM offers this only when started with
/// VLLM_SERVER_DEV_MODE=1.
#[derive(Parser, Debug)]
#[command(
    name = "profiler flush-cache",
    version,
    after_help = "Examples:\n  profiler flush-cache\n  \
        profiler flush-cache --url http://localhost:8000 --server vllm",
    max_term_width = 100,
    args_override_self = true
)]
pub struct FlushCache {
    /// Which servers.
    #[command(flatten)]
    pub servers: ServersArgs,
    /// How.
    #[command(flatten)]
    pub flush: FlushArgs,
}

/// Prints what running servers tell about themselves, as JSON without their keys and passwords
#[derive(Parser, Debug)]
#[command(
    name = "profiler server-info",
    version,
    after_help = "Examples:\n  profiler server-info > server.json\n  \
        profiler server-info --url http://host:30000",
    max_term_width = 100,
    args_override_self = true
)]
pub struct ServerInfo {
    /// Which servers.
    #[command(flatten)]
    pub servers: ServersArgs,
}
