//! Lines for requests that start and end, as they do.

use crate::Io;
use servebench_core::{Backend, Reply, Request};
use std::sync::Mutex;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;

/// Prints what happens to requests, from a thread of its own: no worker waits for a terminal.
pub(super) struct Announced {
    lines: Mutex<Option<Sender<String>>>,
    printer: Option<JoinHandle<()>>,
}

impl Announced {
    pub(super) fn new(io: &Io) -> Self {
        let (lines, printed) = mpsc::channel::<String>();
        let io = io.clone();
        let printer = std::thread::Builder::new().name("requests".into()).spawn(move || {
            for line in printed {
                io.say(line);
            }
        });
        Self { lines: Mutex::new(Some(lines)), printer: printer.ok() }
    }

    /// `backend`, announced.
    pub(super) fn around<B>(&self, backend: B) -> Announcing<B> {
        let lines = self.lines.lock().ok().and_then(|lines| lines.clone());
        Announcing { backend, lines }
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        if let Ok(mut lines) = self.lines.lock() {
            lines.take();
        }
        if let Some(printer) = self.printer.take()
            && printer.join().is_err()
        {
            // Lines that cannot be printed are no reason to fail.
        }
    }
}

/// A backend whose requests are announced.
pub(super) struct Announcing<B> {
    backend: B,
    lines: Option<Sender<String>>,
}

impl<B> Announcing<B> {
    fn say(&self, request: &Request, message: &str, more: &str) {
        let time = jiff::Timestamp::now().as_microsecond() as f64 / 1e6;
        let line = format!("rid={} time={time:.6} message=\"{message}\"{more}", request.id);
        if let Some(lines) = &self.lines
            && lines.send(line).is_err()
        {
            // The printer is gone, and with it whoever reads.
        }
    }
}

impl<B: Backend> Backend for Announcing<B> {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        let start = format!(" prompt_len={} output_len={}", request.prompt_len, request.output_len);
        self.say(request, "request start", &start);
        let began = jiff::Timestamp::now();
        self.backend.send(request, reply).await;
        let took = began.duration_until(jiff::Timestamp::now()).as_secs_f64();
        let outcome = match &reply.failure {
            None => "success=true".to_owned(),
            Some(failure) => format!("success=false error={:?}", failure.to_string()),
        };
        let end = format!(
            " time_delta={took:.6} {outcome} chunks={} completion_tokens={}",
            reply.chunks.len(),
            reply.completion_tokens.map_or("null".into(), |tokens| tokens.to_string())
        );
        self.say(request, "request end", &end);
    }

    async fn warm(&self, concurrency: usize) {
        self.backend.warm(concurrency).await;
    }
}
