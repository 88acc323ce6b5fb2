//! A profile around something else that is done with a server.

use super::live::LiveServer;
use super::profile::{WAIT, all_here, complete, finish, unix_seconds, worker};
use super::session::Session;
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io};
use servebench_control::ProfileRequest;
use tokio::runtime::Runtime;

/// A running profile of one server. Dropping this stops it.
pub(crate) struct Around<'a> {
    session: Session<'a>,
    /// Whether the traces can be seen from here.
    seen: bool,
    io: &'a Io,
}

impl<'a> Around<'a> {
    /// Starts the profiler of `server` with `request`, whose gaps get the profiler's defaults.
    pub(crate) fn start(
        runtime: &'a Runtime,
        server: LiveServer,
        request: ProfileRequest,
        environment: &Environment,
        io: &'a Io,
    ) -> Result<Self, Failure> {
        let info = runtime.block_on(server.control.server_info()).ok();
        let request = complete(request, environment);
        let worker = worker(String::new(), server, request, info, unix_seconds(), io)?;
        let workers = vec![worker];
        let seen = runtime.block_on(all_here(&workers));
        Ok(Self { session: Session::start(runtime, workers, io)?, seen, io })
    }

    /// The server that is profiled.
    pub(crate) fn server(&self) -> &LiveServer {
        self.session.first()
    }

    /// The server's folder for the traces.
    pub(crate) fn folder(&self) -> Option<String> {
        self.session.folder().map(|folder| folder.to_string_lossy().into_owned())
    }

    /// Waits for the traces where they can be seen, and lists them.
    pub(crate) fn finish(&mut self, interrupts: &Interrupts) -> Result<Code, Failure> {
        // Elsewhere nobody can tell whether all steps were done: the profile is stopped in any case.
        let limit = if self.seen { WAIT } else { std::time::Duration::ZERO };
        let ended = self.session.wait_for_traces(limit, interrupts);
        finish(&mut self.session, Some(ended), self.seen, interrupts, self.io)
    }
}
