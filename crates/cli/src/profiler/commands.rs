//! The profiler's subcommands: single calls to live servers.

use super::args::{ConnectionArgs, ServersArgs, WhatArgs};
use super::live::LiveServer;
use super::profile::{refuse_fields, runtime};
use super::session::{Session, Worker, stop_saying};
use crate::args::values;
use crate::exit::OrCode;
use crate::{Code, Environment, Failure, Io};
use clap::Args;
use serde_json::{Map, Value};
use servebench_control::{Family, ProfileRequest};
use std::time::Duration;

/// Where SGLang listens.
pub(crate) const DEFAULT_URL: &str = "http://localhost:30000";
/// Steps that a profile by stage gets when nothing else is asked for: it must have an end.
const STEPS_BY_STAGE: u64 = 5;

/// A server and the name it goes by in messages.
pub(super) struct Labelled {
    pub(super) label: String,
    pub(super) server: LiveServer,
}

/// Finds all servers that the flags name, in their order.
pub(super) async fn reach(
    args: &ServersArgs,
    environment: &Environment,
) -> Result<Vec<Labelled>, Failure> {
    let lists = [
        ("--url", "Worker", &args.url),
        ("--profile-prefill-url", "Prefill", &args.profile_prefill_url),
        ("--profile-decode-url", "Decode", &args.profile_decode_url),
    ];
    let given = lists.into_iter().find(|(_, _, urls)| !urls.is_empty());
    if args.connection.simulate
        && let Some((flag, ..)) = given
    {
        return Err(Failure::usage(format!("--simulate starts its own server: drop {flag}"))
            .hint("leave --simulate out to call the server at that address"));
    }
    let default = vec![DEFAULT_URL.to_owned()];
    let (flag, role, urls) = given.unwrap_or(("--url", "Worker", &default));
    let mut reached = Vec::new();
    for (index, url) in urls.iter().enumerate() {
        let server = reach_one(url, flag, args, environment).await?;
        reached.push(Labelled { label: format!("{role}-{index}"), server });
    }
    Ok(reached)
}

async fn reach_one(
    url: &str,
    flag: &str,
    args: &ServersArgs,
    environment: &Environment,
) -> Result<LiveServer, Failure> {
    let connection: &ConnectionArgs = &args.connection;
    LiveServer::reach(url, flag, args.server, connection, environment).await
}

/// Starts profilers and leaves them running: only what was given is sent.
///
/// # Errors
///
/// A usage failure, or a server that cannot be reached or refuses; the others are then stopped.
pub fn start(
    servers: &ServersArgs,
    what: &WhatArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    if what.is_nothing() {
        return Err(Failure::usage("--no-cpu and --no-gpu leave nothing to profile"));
    }
    let runtime = runtime()?;
    let reached = runtime.block_on(reach(servers, environment))?;
    let several = reached.len() > 1;
    let mut workers = Vec::new();
    for Labelled { label, server } in reached {
        if server.control.family() == Family::Vllm {
            refuse_fields(what)?;
        }
        let request = start_request(what, several.then_some(label.as_str()));
        let label = if several { label } else { String::new() };
        workers.push(Worker { label, server, request, info: None });
    }
    if what.profile_by_stage && what.num_steps.is_none() {
        io.say(format_args!(
            "{STEPS_BY_STAGE} steps of each stage: a server does not survive a profile by stage \
             without an end; --num-steps changes that"
        ));
    }
    let endless = workers.iter().any(|worker| worker.request.num_steps.is_none());
    let mut session = Session::start(&runtime, workers, io)?;
    session.leave();
    if endless {
        io.say("the server profiles until `profiler stop`; its memory fills meanwhile");
    }
    Ok(Code::Done)
}

/// The fields that were given. Several workers that share a folder get one each below it.
fn start_request(what: &WhatArgs, label: Option<&str>) -> ProfileRequest {
    let mut request = what.request();
    if request.profile_by_stage {
        request.num_steps = request.num_steps.or(Some(STEPS_BY_STAGE));
    }
    // A server would look for a relative folder below its own.
    if let Some(folder) = &mut request.output_dir {
        *folder = super::profile::absolute_folder(folder);
        if let Some(label) = label {
            *folder = format!("{}/{label}", folder.trim_end_matches('/'));
        }
    }
    request
}

/// Stops profilers and waits until their traces are written. Every server is told, whatever others
/// answer.
///
/// # Errors
///
/// A server that cannot be reached or has nothing to stop.
pub fn stop(servers: &ServersArgs, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    let runtime = runtime()?;
    let reached = runtime.block_on(reach(servers, environment))?;
    let mut result = Ok(Code::Done);
    for Labelled { server, .. } in reached {
        if server.simulated.is_some() {
            // A server that has just begun has nothing to stop.
            let request = ProfileRequest::default();
            runtime.block_on(server.control.start_profile(&request)).or_code(Code::Server)?;
        }
        let base = server.target.base();
        io.say(format_args!("stopping the profiler at {base}; this takes as long as it writes"));
        match runtime.block_on(stop_saying(&server.control, io)) {
            Ok(()) => io.print(format_args!("profiler stopped at {base}")).or_code(Code::Output)?,
            Err(error) => {
                let failure = Failure::new(Code::Server, error).hint(
                    "the server may have no profile in progress: one with a number of steps stops \
                     by itself",
                );
                result = result.and(Err(failure));
            }
        }
    }
    result
}

/// How the cache is flushed.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Flush")]
pub struct FlushArgs {
    /// Seconds an SGLang server may take to become idle [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = values::positive_time)]
    pub timeout: Option<f64>,
}

/// Empties servers' prefix caches.
///
/// # Errors
///
/// A server that cannot be reached, cannot flush or stays busy.
pub fn flush_cache(
    servers: &ServersArgs,
    flush: &FlushArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let runtime = runtime()?;
    let timeout = Duration::from_secs_f64(flush.timeout.unwrap_or(60.0));
    for Labelled { server, .. } in runtime.block_on(reach(servers, environment))? {
        runtime.block_on(server.control.flush_cache(timeout)).or_code(Code::Server)?;
        let base = server.target.base();
        io.print(format_args!("cache flushed at {base}")).or_code(Code::Output)?;
    }
    Ok(Code::Done)
}

/// Prints what servers tell about themselves, as JSON; of several, an object by URL.
///
/// # Errors
///
/// A server that cannot be reached or tells nothing.
pub fn server_info(
    servers: &ServersArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let runtime = runtime()?;
    let mut reached = runtime.block_on(reach(servers, environment))?;
    let ask = |server: &LiveServer| {
        let info = runtime.block_on(server.control.server_info());
        info.map_err(|error| {
            Failure::new(Code::Server, error)
                .hint("vLLM tells it only when started with VLLM_SERVER_DEV_MODE=1")
        })
    };
    let info = match (reached.pop(), reached.is_empty()) {
        (Some(only), true) => ask(&only.server)?,
        (last, _) => {
            let mut all = Map::new();
            for Labelled { server, .. } in reached.iter().chain(&last) {
                all.insert(server.target.base().to_string(), ask(server)?);
            }
            Value::Object(all)
        }
    };
    let text = serde_json::to_string_pretty(&info).or_code(Code::Bug)?;
    io.print(text).or_code(Code::Output)?;
    Ok(Code::Done)
}
