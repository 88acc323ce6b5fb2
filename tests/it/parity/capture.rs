//! A server on loopback that keeps every call it gets.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// One call, as the server got it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) method: String,
    /// Path with query.
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Option<Value>,
    /// The body's bytes, where they were kept.
    pub(crate) raw: Vec<u8>,
}

/// What the server answers.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) kind: String,
    /// The pieces of a streamed body; of any other body all of it.
    pub(crate) writes: Vec<String>,
}

impl Answer {
    /// Plain text.
    pub(crate) fn text(status: u16, text: &str) -> Self {
        Self { status, kind: "text/plain".into(), writes: vec![text.into()] }
    }

    /// A JSON value.
    pub(crate) fn json(value: &Value) -> Self {
        Self { status: 200, kind: "application/json".into(), writes: vec![value.to_string()] }
    }

    /// An event stream of these values.
    pub(crate) fn events(values: &[Value]) -> Self {
        let mut writes: Vec<String> =
            values.iter().map(|value| format!("data: {value}\n\n")).collect();
        writes.push("data: [DONE]\n\n".into());
        Self { status: 200, kind: "text/event-stream".into(), writes }
    }
}

/// Answers a call; `generations` tells how many generation requests came before it.
type Respond = dyn Fn(&Call, usize) -> Answer + Send + Sync;

struct Shared {
    calls: Mutex<Vec<Call>>,
    respond: Box<Respond>,
    closing: AtomicBool,
}

/// The server, until it is dropped.
pub(crate) struct Capture {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Capture {
    pub(crate) fn start(
        respond: impl Fn(&Call, usize) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            calls: Mutex::default(),
            respond: Box::new(respond),
            closing: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if accepting.closing.load(SeqCst) {
                    return;
                }
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || {
                    // A client that hangs up is no news: its calls tell whether it got its answers.
                    let _ended = serve(stream, &shared);
                });
            }
        });
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// The calls so far, in the order in which they came.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.shared.calls.lock().expect("no thread died over the calls").clone()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.shared.closing.store(true, SeqCst);
        // The acceptor waits for a connection; this is its last.
        if TcpStream::connect(self.address).is_ok()
            && let Some(acceptor) = self.acceptor.take()
        {
            let _ended = acceptor.join();
        }
    }
}

/// True for the calls that ask for tokens.
pub(crate) fn is_generation(call: &Call) -> bool {
    ["/generate", "completions", "/transcriptions"].iter().any(|end| call.path.ends_with(end))
}

/// Answers one connection until the client closes it.
fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while let Some(call) = read(&mut reader)? {
        let before = {
            let mut calls = shared.calls.lock().expect("no thread died over the calls");
            let before = calls.iter().filter(|call| is_generation(call)).count();
            calls.push(call.clone());
            before
        };
        write(&mut writer, &(shared.respond)(&call, before))?;
    }
    Ok(())
}

fn read(reader: &mut impl BufRead) -> io::Result<Option<Call>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut raw = vec![0; length];
    reader.read_exact(&mut raw)?;
    let body = (!raw.is_empty()).then(|| {
        // What is not JSON stands as text, which no recorded body is.
        serde_json::from_slice(&raw)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&raw).into_owned()))
    });
    Ok(Some(Call { method, path, headers, body, raw }))
}

fn write(writer: &mut TcpStream, answer: &Answer) -> io::Result<()> {
    let streamed = answer.kind == "text/event-stream";
    let mut head =
        format!("HTTP/1.1 {} Status\r\nContent-Type: {}\r\n", answer.status, answer.kind);
    if !streamed {
        let body = answer.writes.concat();
        let _ = write!(head, "Content-Length: {}\r\n\r\n{body}", body.len());
        return writer.write_all(head.as_bytes());
    }
    writer.write_all(format!("{head}Transfer-Encoding: chunked\r\n\r\n").as_bytes())?;
    for piece in &answer.writes {
        writer.write_all(format!("{:x}\r\n{piece}\r\n", piece.len()).as_bytes())?;
    }
    writer.write_all(b"0\r\n\r\n")
}
