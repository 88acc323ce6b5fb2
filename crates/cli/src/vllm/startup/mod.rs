//! `startup`: how long a server takes until it is ready, with empty caches and with full ones.

mod args;
mod figures;
mod log;

pub use args::{STARTUP_FLAGS, StartupArgs};

use super::offline::{check, save};
use super::plain;
use super::sweep::{quoted, split, url};
use crate::exit::OrCode;
use crate::launch::{Launch, Launched, Prints};
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{CommandFactory, Parser};
use figures::{Phase, blocks, keys};
use log::Compilation;
use serde_json::{Map, Value, json};
use servebench_report::vllm::{pytorch_record, write};
use servebench_run::Stop;
use std::ffi::OsString;
use std::io::{Read, Seek};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const TOOL: &str = "vllm bench startup";
/// Variables that name the folders of caches, and our folders for a cold start.
const CACHES: [(&str, &str); 3] = [
    ("VLLM_CACHE_ROOT", "vllm"),
    ("TORCHINDUCTOR_CACHE_DIR", "inductor"),
    ("TRITON_CACHE_DIR", "triton"),
];
/// Lines of a failed server's output that are shown.
const SHOWN: usize = 30;

/// Reads arguments (without program and subcommand) the way `vllm bench startup` does: what is not ours is
/// an option of the engine, and comes second.
///
/// # Errors
///
/// A usage failure whose message names the flag.
pub fn parse_startup<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<(A, Vec<String>)>, Failure> {
    let (ours, engine) = args::part(plain(arguments, STARTUP_FLAGS, io)?)?;
    let text = |word: OsString| {
        word.into_string()
            .map_err(|word| Failure::usage(format!("{} is no text", word.to_string_lossy())))
    };
    let engine: Vec<String> = engine.into_iter().map(text).collect::<Result<_, _>>()?;
    Ok(parse_as(ours, TOOL, STARTUP_FLAGS, io)?.map(|args| (args, engine)))
}

/// Starts a server again and again, and prints how long it took until it was ready.
///
/// `engine` are options of vLLM's engine, for `vllm serve`; there are none where a command is given.
///
/// # Errors
///
/// A server that does not start, or a result that cannot be written.
pub fn startup(
    args: &StartupArgs,
    engine: &[String],
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let server = Server::new(args, engine)?;
    if args.dry_run {
        io.print(quoted(&server.command)).or_code(Code::Output)?;
        return Ok(Code::Done);
    }
    let path = args.output_json.as_deref();
    check(path)?;
    let said = "interrupted: the server is stopped";
    let interrupts = Interrupts::listen_saying(&Stop::default(), io, said).or_code(Code::Bug)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_code(Code::Bug)?;
    // From here on there is something to stop.
    interrupts.begin_measuring();
    let machine = Machine { server: &server, runtime: &runtime, interrupts: &interrupts, io };

    io.say(format_args!("server: {}", quoted(&server.command)));
    let cold = machine.starts("cold start", args.num_iters_cold, true)?;
    machine.starts("start that fills the caches", args.num_iters_warmup, false)?;
    let warm = machine.starts("warm start", args.num_iters_warm, false)?;

    let compiled = |start: &Start| start.compilation.is_some_and(|it| it.encoder > 0.0);
    let encoders = cold.iter().chain(&warm).any(compiled);
    let phases = [Phase::of("cold", &cold, encoders), Phase::of("warm", &warm, encoders)];
    let phases: Vec<Phase> = phases.into_iter().flatten().collect();
    let printed = io.print(blocks(&phases));
    let mut result = keys(&phases);
    result.insert("servebench".to_owned(), server.own());
    save(path, &Value::Object(result), io)?;
    if let Some(path) = path
        && environment.get("SAVE_TO_PYTORCH_BENCHMARK_FORMAT").is_some()
    {
        records(&phases, &server, path)?;
    }
    printed.or_code(Code::Output)?;
    Ok(Code::Done)
}

/// What is started.
struct Server {
    /// How it was given, for messages.
    flag: &'static str,
    command: Vec<String>,
    url: String,
    limit: Duration,
}

impl Server {
    fn new(args: &StartupArgs, engine: &[String]) -> Result<Self, Failure> {
        if args.num_iters_cold == 0 && args.num_iters_warm == 0 {
            let text = "--num-iters-cold, --num-iters-warm: nothing is left to measure";
            return Err(Failure::usage(text));
        }
        let (flag, mut command) = match &args.serve_cmd {
            Some(line) => ("--serve-cmd", split(line, "--serve-cmd")?),
            None => ("vllm serve", args::vllm_serve(engine)?),
        };
        if args.serve_cmd.is_some()
            && let Some(word) = engine.first()
        {
            let text = format!("{word} is not ours, and the server's command is given");
            return Err(Failure::usage(text).hint("put it into --serve-cmd"));
        }
        let names_port =
            |word: &String| word == "-p" || word == "--port" || word.starts_with("--port=");
        if args.serve_cmd.is_none() && !command.iter().any(names_port) {
            let port = free_port().or_code(Code::Server)?;
            let address = ["--host", "127.0.0.1", "--port", &port.to_string()].map(str::to_owned);
            command.extend(address);
        }
        let limit = Duration::from_secs(args.server_ready_timeout.into());
        Ok(Self { flag, url: url(&command), command, limit })
    }

    /// What a result says beside the Python tool's keys.
    fn own(&self) -> Value {
        json!({
            "over_http": true,
            "version": env!("CARGO_PKG_VERSION"),
            "command": self.command,
            "ready": format!("{}/health", self.url),
            "cold": CACHES.map(|(variable, _)| variable),
        })
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// One start of a server.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Start {
    /// From the command's start until the server was ready.
    seconds: f64,
    /// `None` if the server's log does not tell.
    compilation: Option<Compilation>,
}

/// What starts and ends processes.
struct Machine<'a> {
    server: &'a Server,
    runtime: &'a Runtime,
    interrupts: &'a Interrupts,
    io: &'a Io,
}

impl Machine<'_> {
    fn starts(&self, what: &str, count: u32, cold: bool) -> Result<Vec<Start>, Failure> {
        (1..=count)
            .map(|number| {
                self.io.say(format_args!("{what} {number} of {count}"));
                // Gone when the server is, whatever becomes of the start.
                let caches = cold.then(|| TempDir::with_prefix("startup-cold-")).transpose();
                let caches = caches.or_code(Code::Output)?;
                let start = self.start(caches.as_ref().map(TempDir::path))?;
                if let Some(caches) = caches {
                    caches.close().or_code(Code::Output)?;
                }
                self.io.say(format_args!("{what} {number} of {count}: {:.2} s", start.seconds));
                Ok(start)
            })
            .collect()
    }

    /// Starts the server, waits until it is ready, and stops it.
    fn start(&self, caches: Option<&Path>) -> Result<Start, Failure> {
        let folders: Vec<(&str, PathBuf)> = caches
            .into_iter()
            .flat_map(|root| CACHES.map(|(variable, name)| (variable, root.join(name))))
            .collect();
        let mut variables = Vec::new();
        for (variable, folder) in &folders {
            let text = folder.to_str().ok_or_else(|| {
                Failure::usage(format!(
                    "{}: the folder of temporary files is no text",
                    folder.display()
                ))
            })?;
            variables.push((*variable, text));
        }
        let mut log = tempfile::tempfile().or_code(Code::Output)?;
        let launch = Launch {
            flag: self.server.flag,
            command: &format!("{} 2>&1", quoted(&self.server.command)),
            prints: Prints::Kept(&log),
            variables: &variables,
            timeout_flag: Some("--server-ready-timeout"),
        };
        let Server { url, limit, .. } = self.server;
        let ready = Launched::server(&launch, url, *limit, self.runtime, self.interrupts, self.io);
        let took = ready.map(|(server, took)| {
            drop(server);
            took
        });
        let mut bytes = Vec::new();
        log.rewind().and_then(|()| log.read_to_end(&mut bytes)).or_code(Code::Bug)?;
        let said = String::from_utf8_lossy(&bytes);
        let took = took.inspect_err(|failure| {
            if failure.code == Code::Server {
                self.show_end(&said);
            }
        })?;
        Ok(Start { seconds: took.as_secs_f64(), compilation: Compilation::read(&said) })
    }

    /// Shows the last lines that a server said.
    fn show_end(&self, said: &str) {
        let lines: Vec<&str> = said.lines().collect();
        for line in &lines[lines.len().saturating_sub(SHOWN)..] {
            self.io.say(line);
        }
    }
}

/// Writes one file for each figure, in the format of PyTorch's benchmark database.
fn records(phases: &[Phase], server: &Server, path: &Path) -> Result<(), Failure> {
    let arguments = Map::from_iter([("serve_cmd".to_owned(), json!(server.command))]);
    let model = server.command.get(2).filter(|_| server.flag == "vllm serve");
    for figure in phases.iter().flat_map(Phase::figures) {
        let name = format!("avg_{}_time", figure.key);
        let record = pytorch_record(
            &json!(model),
            &arguments,
            &name,
            &json!(figure.average),
            &figure.further(),
        );
        let file = path.with_extension(format!("{}.pytorch.json", figure.key));
        write(&file, &json!([record]).to_string(), false).or_code(Code::Output)?;
    }
    Ok(())
}

/// Reads bytes from outside, for fuzzing: a server's log.
pub(super) fn read_foreign_bytes(text: &str) {
    if let Some(compilation) = Compilation::read(text) {
        assert!(compilation.model >= 0.0 && compilation.encoder >= 0.0, "no time is negative");
    }
}
