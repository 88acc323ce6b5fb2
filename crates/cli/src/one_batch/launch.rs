//! A server started for the run.

use crate::exit::OrCode;
use crate::signals::Interrupts;
use crate::{Code, Failure, Io};
use rustix::process::{Pid, Signal, kill_process_group};
use servebench_control::{Control, ControlError, Family};
use servebench_http::{BaseUrl, Caller, Target, TcpConnect, TlsOptions};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How often the server is asked whether it is there.
const LOOK: Duration = Duration::from_millis(500);
/// How often it is said that it is not.
const SAY: Duration = Duration::from_secs(10);
/// How long a server may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// Runs the command (its first argument) in the process group of this shell, and ends the group when
/// standard input closes: when the benchmark is gone, in whatever way it went.
const KEEPER: &str = "\
exec 3<&0
( trap '' TERM INT HUP; cat >/dev/null; kill -TERM 0; sleep 10; kill -KILL 0 ) <&3 3<&- &
exec sh -c \"$1\" </dev/null 3<&-";

/// A running server and its children. Dropping this stops them.
pub(super) struct Launched<'a> {
    child: Child,
    runtime: &'a Runtime,
    io: &'a Io,
}

impl<'a> Launched<'a> {
    /// Starts `command`; what it prints goes to standard error.
    pub(super) fn start(command: &str, runtime: &'a Runtime, io: &'a Io) -> Result<Self, Failure> {
        let child = Command::new("sh")
            .args(["-c", KEEPER, "launch", command])
            .stdin(Stdio::piped())
            .stdout(Stdio::from(std::io::stderr()))
            .process_group(0)
            .spawn();
        let child = child.map_err(|error| {
            Failure::new(Code::Server, anyhow::Error::new(error).context("--launch"))
        })?;
        io.say(format_args!("started: {command}"));
        Ok(Self { child, runtime, io })
    }

    /// Waits until the server at `url` lists its models; fails at once when the command has ended.
    pub(super) fn wait_ready(
        &mut self,
        url: &str,
        limit: Duration,
        interrupts: &Interrupts,
    ) -> Result<(), Failure> {
        let base: BaseUrl = url.parse().or_code(Code::Usage)?;
        let mut waited = Duration::ZERO;
        let mut said = SAY;
        loop {
            if let Some(status) = self.child.try_wait().or_code(Code::Server)? {
                let error =
                    anyhow::anyhow!("--launch: the command ended ({status}) before {url} answered");
                return Err(Failure::new(Code::Server, error)
                    .hint("what it said is above; it must stay in the foreground"));
            }
            if let Some(code) = interrupts.code() {
                let error = anyhow::anyhow!("interrupted before the server was ready");
                return Err(Failure::new(code, error));
            }
            if self.runtime.block_on(answers(&base)) {
                self.io.say(format_args!("{url} is ready after {} s", waited.as_secs()));
                return Ok(());
            }
            if waited >= limit {
                let error = anyhow::anyhow!("--launch: {url} did not answer within {limit:?}");
                return Err(Failure::new(Code::Server, error).hint(
                    "does the command listen at that address? --launch-timeout changes the wait",
                ));
            }
            if waited >= said {
                said += SAY;
                self.io.say(format_args!("waiting for {url} after {} s", waited.as_secs()));
            }
            self.pause(LOOK);
            waited += LOOK;
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

/// Whether a server answers there.
pub(super) async fn answers(base: &BaseUrl) -> bool {
    let Ok(connect) = TcpConnect::resolve(base, &TlsOptions::default()).await else { return false };
    let control = Control::new(Caller::new(connect, Target::new(base.clone())), Family::Other);
    match tokio::time::timeout(Duration::from_secs(5), control.models()).await {
        // A server that asks for a key is there.
        Ok(Ok(_) | Err(ControlError::Unauthorized { .. })) => true,
        _ => false,
    }
}

impl Drop for Launched<'_> {
    fn drop(&mut self) {
        self.io.say("stopping the server");
        self.signal(Signal::TERM);
        let mut waited = Duration::ZERO;
        while waited < GRACE && matches!(self.child.try_wait(), Ok(None)) {
            self.pause(LOOK / 5);
            waited += LOOK / 5;
        }
        // Children that outlive the server, and the keeper.
        self.signal(Signal::KILL);
        if let Err(error) = self.child.wait() {
            self.io.say(format_args!("warning: the server's end is not known: {error}"));
        }
    }
}
