//! Commands started for a run, and stopped with all their children.

use crate::exit::OrCode;
use crate::signals::Interrupts;
use crate::{Code, Failure, Io};
use rustix::process::{Pid, Signal, kill_process_group};
use servebench_control::{Control, ControlError, Family};
use servebench_core::Clock;
use servebench_http::{BaseUrl, Caller, Method, Target, TcpConnect, TlsOptions};
use servebench_run::TokioClock;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How often the server is asked whether it is there: how exactly the time until it is ready is known.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is said that it is not.
const SAY: Duration = Duration::from_secs(10);
/// How long a command may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);
/// How often a command is asked whether it has ended.
const GLANCE: Duration = Duration::from_millis(20);

/// Runs the command (its first argument) in the process group of this shell, and ends the group when
/// standard input closes: when the benchmark is gone, in whatever way it went.
const KEEPER: &str = "\
exec 3<&0
( trap '' TERM INT HUP; cat >/dev/null; kill -TERM 0; sleep 10; kill -KILL 0 ) <&3 3<&- &
exec sh -c \"$1\" </dev/null 3<&-";

/// How a server tells that it is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ready {
    /// It lists its models, or asks for a key.
    Models,
    /// It answers 200 at `/health`.
    Health,
}

/// A command to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    /// The flag it was given with, for messages.
    pub(crate) flag: &'static str,
    /// For the shell.
    pub(crate) command: &'a str,
    /// What becomes of what it prints. What it says on standard error is always shown.
    pub(crate) prints: Prints<'a>,
    /// Variables of its environment beside ours.
    pub(crate) variables: &'a [(&'a str, &'a str)],
    /// Of a server: the flag that says how long it may take to be ready.
    pub(crate) timeout_flag: Option<&'static str>,
}

/// What becomes of what a command prints on standard output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prints<'a> {
    /// It is dropped.
    Dropped,
    /// It is shown, on standard error.
    Shown,
    /// It goes into this file.
    Kept(&'a File),
}

impl Prints<'_> {
    /// Shown if the user asked for it.
    pub(crate) fn shown_if(asked: bool) -> Self {
        if asked { Self::Shown } else { Self::Dropped }
    }

    fn stdio(self) -> std::io::Result<Stdio> {
        Ok(match self {
            Self::Dropped => Stdio::null(),
            Self::Shown => Stdio::from(std::io::stderr()),
            Self::Kept(file) => Stdio::from(file.try_clone()?),
        })
    }
}

/// A running command and its children. Dropping this stops them.
pub(crate) struct Launched<'a> {
    child: Child,
    /// Since it was started.
    clock: TokioClock,
    flag: &'static str,
    timeout_flag: Option<&'static str>,
    runtime: &'a Runtime,
    io: &'a Io,
}

impl<'a> Launched<'a> {
    /// Starts a command in a process group of its own.
    pub(crate) fn start(
        launch: &Launch<'_>,
        runtime: &'a Runtime,
        io: &'a Io,
    ) -> Result<Self, Failure> {
        let Launch { flag, command, prints, variables, timeout_flag } = *launch;
        let clock = TokioClock::default();
        clock.start();
        let child = prints.stdio().and_then(|stdout| {
            Command::new("sh")
                .args(["-c", KEEPER, "launch", command])
                .envs(variables.iter().copied())
                .stdin(Stdio::piped())
                .stdout(stdout)
                .process_group(0)
                .spawn()
        });
        let child = child
            .map_err(|error| Failure::new(Code::Server, anyhow::Error::new(error).context(flag)))?;
        Ok(Self { child, clock, flag, timeout_flag, runtime, io })
    }

    /// Starts a server and waits until it is ready, unless one is there already.
    pub(crate) fn server(
        launch: &Launch<'_>,
        url: &str,
        limit: Duration,
        runtime: &'a Runtime,
        interrupts: &Interrupts,
        io: &'a Io,
    ) -> Result<(Self, Duration), Failure> {
        let base: BaseUrl = url.parse().or_code(Code::Usage)?;
        if runtime.block_on(answers(&base, Ready::Health)) {
            let flag = launch.flag;
            let error = anyhow::anyhow!("{flag}: a server answers at {base} already");
            return Err(Failure::new(Code::Server, error)
                .hint("that one would be measured: stop it, or choose another --port"));
        }
        let mut server = Self::start(launch, runtime, io)?;
        let took = server.wait_ready(url, Ready::Health, limit, interrupts)?;
        Ok((server, took))
    }

    /// Waits until the server at `url` is ready, and tells how long after its start that was; fails at once
    /// when the command has ended.
    pub(crate) fn wait_ready(
        &mut self,
        url: &str,
        ready: Ready,
        limit: Duration,
        interrupts: &Interrupts,
    ) -> Result<Duration, Failure> {
        let base: BaseUrl = url.parse().or_code(Code::Usage)?;
        let flag = self.flag;
        let mut said = SAY;
        loop {
            let waited = self.clock.now().offset();
            if let Some(status) = self.child.try_wait().or_code(Code::Server)? {
                let error =
                    anyhow::anyhow!("{flag}: the command ended ({status}) before {url} answered");
                return Err(Failure::new(Code::Server, error)
                    .hint("what it said is above; it must stay in the foreground"));
            }
            if let Some(code) = interrupts.code() {
                let error = anyhow::anyhow!("interrupted before the server was ready");
                return Err(Failure::new(code, error));
            }
            if self.runtime.block_on(answers(&base, ready)) {
                let took = self.clock.now().offset();
                self.io.say(format_args!("{url} is ready after {} s", took.as_secs()));
                return Ok(took);
            }
            if waited >= limit {
                let error = anyhow::anyhow!("{flag}: {url} did not answer within {limit:?}");
                let timeout_flag = self.timeout_flag.unwrap_or(flag);
                return Err(Failure::new(Code::Server, error).hint(format!(
                    "does the command listen at that address? {timeout_flag} changes the wait"
                )));
            }
            if waited >= said {
                said += SAY;
                self.io.say(format_args!("waiting for {url} after {} s", waited.as_secs()));
            }
            self.pause(LOOK);
        }
    }

    /// Waits until the command has ended by itself; a signal to us ends the wait with a failure.
    pub(crate) fn wait_end(&mut self, interrupts: &Interrupts) -> Result<ExitStatus, Failure> {
        loop {
            if let Some(status) = self.child.try_wait().or_code(Code::Bug)? {
                return Ok(status);
            }
            if let Some(code) = interrupts.code() {
                let error = anyhow::anyhow!("{}: interrupted while the command ran", self.flag);
                return Err(Failure::new(code, error));
            }
            self.pause(GLANCE);
        }
    }

    fn pause(&self, duration: Duration) {
        // A timer is made inside its runtime only.
        self.runtime.block_on(async { tokio::time::sleep(duration).await });
    }

    fn signal(&self, signal: Signal) {
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group
            && kill_process_group(group, signal).is_err()
        {
            // The group is gone already.
        }
    }
}

/// Whether a server is ready there.
pub(crate) async fn answers(base: &BaseUrl, ready: Ready) -> bool {
    let Ok(connect) = TcpConnect::resolve(base, &TlsOptions::default()).await else { return false };
    let caller = Caller::new(connect, Target::new(base.clone()));
    let limit = Duration::from_secs(5);
    match ready {
        Ready::Health => {
            let answer = caller.call(Method::GET, "/health", None, limit).await;
            answer.is_ok_and(|answer| answer.is_ok())
        }
        Ready::Models => {
            let control = Control::new(caller, Family::Other);
            match tokio::time::timeout(limit, control.models()).await {
                // A server that asks for a key is there.
                Ok(Ok(_) | Err(ControlError::Unauthorized { .. })) => true,
                _ => false,
            }
        }
    }
}

impl Drop for Launched<'_> {
    fn drop(&mut self) {
        if self.timeout_flag.is_some() {
            self.io.say("stopping the server");
        }
        self.signal(Signal::TERM);
        let mut waited = Duration::ZERO;
        while waited < GRACE && matches!(self.child.try_wait(), Ok(None)) {
            self.pause(GLANCE);
            waited += GLANCE;
        }
        // Children that outlive the command, and the keeper.
        self.signal(Signal::KILL);
        if let Err(error) = self.child.wait() {
            let flag = self.flag;
            self.io.say(format_args!("warning: {flag}: the command's end is not known: {error}"));
        }
    }
}
