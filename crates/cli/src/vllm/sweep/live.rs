//! A server under test and the client's runs against it.

use super::server::{Between, url};
use super::words::quoted;
use crate::exit::OrCode;
use crate::launch::{Launch, Launched, Prints};
use crate::signals::Interrupts;
use crate::{Code, Failure, Io};
use servebench_http::{BaseUrl, Caller, Method, Target, TcpConnect, TlsOptions};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long emptying a cache may take.
const RESET_LIMIT: Duration = Duration::from_mins(1);

/// What starts and ends processes.
pub(super) struct Machine<'a> {
    pub(super) runtime: &'a Runtime,
    pub(super) interrupts: &'a Interrupts,
    pub(super) io: &'a Io,
    pub(super) show_stdout: bool,
    pub(super) ready_timeout: Duration,
    pub(super) between: &'a Between,
}

/// A server that is ready.
pub(super) struct Running<'a> {
    machine: &'a Machine<'a>,
    base: BaseUrl,
    /// Stops the server when dropped.
    _server: Launched<'a>,
}

impl<'a> Machine<'a> {
    /// Starts a server and waits until it is ready.
    pub(super) fn start(&'a self, command: &[String]) -> Result<Running<'a>, Failure> {
        let url = url(command);
        let base: BaseUrl = url.parse().or_code(Code::Usage)?;
        let launch = Launch {
            flag: "--serve-cmd",
            command: &quoted(command),
            prints: Prints::shown_if(self.show_stdout),
            // Without it vLLM has no calls that empty its caches.
            variables: &[("VLLM_SERVER_DEV_MODE", "1")],
            timeout_flag: Some("--server-ready-timeout"),
        };
        let limit = self.ready_timeout;
        let (server, _) =
            Launched::server(&launch, &url, limit, self.runtime, self.interrupts, self.io)?;
        Ok(Running { machine: self, base, _server: server })
    }

    fn command(&self, flag: &'static str, command: &[String]) -> Result<(), Failure> {
        let launch = Launch {
            flag,
            command: &quoted(command),
            prints: Prints::shown_if(self.show_stdout),
            variables: &[],
            timeout_flag: None,
        };
        let status = Launched::start(&launch, self.runtime, self.io)?.wait_end(self.interrupts)?;
        if status.success() {
            return Ok(());
        }
        Err(Failure::new(Code::Requests, anyhow::anyhow!("{flag}: the command failed ({status})")))
    }
}

impl Running<'_> {
    /// Runs the client to its end.
    pub(super) fn benchmark(&self, command: &[String]) -> Result<(), Failure> {
        self.machine.command("--bench-cmd", command)
    }

    /// Empties the server's caches.
    pub(super) fn after(&self) -> Result<(), Failure> {
        match self.machine.between {
            Between::Command(command) => self.machine.command("--after-bench-cmd", command),
            Between::Reset(paths) => self.machine.runtime.block_on(self.reset(paths)),
        }
    }

    async fn reset(&self, paths: &[&str]) -> Result<(), Failure> {
        if paths.is_empty() {
            return Ok(());
        }
        let text = format!("Resetting caches at {}", self.base);
        self.machine.io.print(text).or_code(Code::Output)?;
        let connect = TcpConnect::resolve(&self.base, &TlsOptions::default()).await;
        let caller = Caller::new(connect.or_code(Code::Server)?, Target::new(self.base.clone()));
        for path in paths {
            let answer = caller.call(Method::POST, path, None, RESET_LIMIT).await;
            let answer = answer.or_code(Code::Server)?;
            if !answer.is_ok() {
                let (url, said) = (self.base.url(path), answer.excerpt());
                let error = anyhow::anyhow!("{url} answered {}: {said}", answer.status);
                return Err(Failure::new(Code::Server, error)
                    .hint("--after-bench-cmd takes the place of these calls"));
            }
        }
        Ok(())
    }
}
