//! One prompt to a live server, with its timing.

mod args;
mod body;
mod figures;
mod shown;

pub use args::{AroundArgs, PromptArgs, SEND_ONE_FLAGS, SendOneArgs};
pub use figures::Figures;

use crate::args::Address;
use crate::exit::OrCode;
use crate::profiler::{Around, LiveServer, ServerKind};
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io};
use servebench_backends::{BackendKind, GenerateOptions};
use servebench_core::{FailureKind, Record, Request};
use servebench_http::{HttpBackend, Limits};
use servebench_run::{Job, Stop, TokioClock, run_here};
use shown::Shown;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Sends one request, prints its reply and its figures.
///
/// # Errors
///
/// A usage failure, a server that cannot be reached, or a profiler that does not start. A request
/// that fails is said and gives the code [`Code::Requests`].
pub fn send_one(args: &SendOneArgs, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    body::check(&args.prompt)?;
    let Address { url, flag, .. } = args.address.address("localhost")?;
    let stop = Stop::default();
    let interrupts = Interrupts::listen(&stop, io).or_code(Code::Bug)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_code(Code::Bug)?;
    let connection = &args.address.connection;
    let server = LiveServer::reach(&url, flag, ServerKind::Sglang, connection, environment);
    let server = runtime.block_on(server)?;
    server.say_proxy(io);
    let sending = Sending { args: &args.prompt, runtime: &runtime, stop: &stop, io };

    interrupts.begin_measuring();
    if args.around.profile {
        let request = args.around.steps.request();
        let mut around = Around::start(&runtime, server, request, environment, io)?;
        let record = sending.send(around.server())?;
        sending.report(&record, &interrupts)?;
        io.say("the profiler slows the server down: these are not its usual figures");
        around.finish(&interrupts)
    } else {
        let record = sending.send(&server)?;
        sending.report(&record, &interrupts)?;
        Ok(interrupts.code().unwrap_or(Code::Done))
    }
}

/// The one request on its way.
struct Sending<'a> {
    args: &'a PromptArgs,
    runtime: &'a Runtime,
    stop: &'a Stop,
    io: &'a Io,
}

impl Sending<'_> {
    /// Sends the request and reads its reply, which is printed as it comes.
    fn send(&self, server: &LiveServer) -> Result<Record, Failure> {
        let native = BackendKind::Sglang.protocol(GenerateOptions::default());
        let (shown, printer) = Shown::new(native, self.io);
        let clock = TokioClock::default();
        let limits = Limits::default();
        let (connect, target) = (server.connect.clone(), &server.target);
        let backend = HttpBackend::new(clock.clone(), connect, target, Arc::new(shown), limits);
        let request = Request {
            body: body::body(self.args).to_string().into(),
            output_len: self.args.max_new_tokens,
            ..Request::default()
        };
        let job = Job { keep_pieces: true, ..Job::burst(vec![request]) };
        let progress = Arc::default();
        let sent = run_here(&job, backend, clock, &progress, self.stop);
        let finished = self.runtime.block_on(sent).or_code(Code::Bug)?;
        printer.wait();
        finished.records.into_iter().next().ok_or_else(|| {
            Failure::new(Code::Interrupted, anyhow::anyhow!("interrupted before anything was sent"))
        })
    }

    /// Prints the figures, and fails with what went wrong. An interrupt is no failure of the request.
    fn report(&self, record: &Record, interrupts: &Interrupts) -> Result<(), Failure> {
        let failure = record.reply.failure.as_ref();
        if let Some(figures) = Figures::of(record, self.args.stream) {
            self.io.print(format_args!("\n\n{}", figures.table())).or_code(Code::Output)?;
            let more = figures.client_table(self.args.batch_size);
            self.io.print(more).or_code(Code::Output)?;
        }
        let Some(failure) = failure.filter(|_| interrupts.code().is_none()) else { return Ok(()) };
        let (code, hint) = match (failure.kind, record.reply.status) {
            (FailureKind::Connect, _) => {
                (Code::Server, "is the server up? check --base-url, --host and --port")
            }
            (FailureKind::Status, Some(401 | 403)) => {
                (Code::Server, "give the server's key in OPENAI_API_KEY")
            }
            (FailureKind::Status, Some(404 | 405)) => {
                (Code::Server, "send-one speaks SGLang's /generate; for others use bench-serving")
            }
            _ => (Code::Requests, "the figures above, if there are any, are of what came"),
        };
        Err(Failure::new(code, anyhow::anyhow!("the request failed: {failure}")).hint(hint))
    }
}
