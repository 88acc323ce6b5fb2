//! A scripted loopback server: keeps every request, answers by a closure, closes as it is told to.

use serde_json::{Value, json};
use socket2::SockRef;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How long a test waits for what must happen.
pub(super) const DEADLINE: Duration = Duration::from_mins(1);

/// A request that came in whole.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) method: String,
    /// With its query.
    pub(super) path: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) connection: usize,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let wanted = |(key, _): &&(String, String)| key.eq_ignore_ascii_case(name);
        self.headers.iter().find(wanted).map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }

    /// Whether tokens are asked for.
    pub(super) fn generates(&self) -> bool {
        self.method == "POST"
            && ["/v1/chat/completions", "/v1/completions", "/generate"]
                .iter()
                .any(|route| self.path.ends_with(route))
    }

    /// The prompt's text, wherever the route keeps it.
    #[track_caller]
    pub(super) fn prompt(&self) -> String {
        let body = self.json();
        let places = ["/text", "/prompt", "/messages/0/content"];
        let found = places.iter().find_map(|place| body.pointer(place)?.as_str());
        found.unwrap_or_else(|| panic!("no prompt in {body}")).to_owned()
    }
}

/// What happened at the server, in order.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// A request came in whole.
    Request(Arc<Seen>),
    /// Its answer was written whole.
    Answered(Arc<Seen>),
    /// A test said so.
    Mark(&'static str),
}

/// Everything that happened.
#[derive(Debug, Default)]
pub(super) struct Log {
    events: Mutex<Vec<Event>>,
    changed: Condvar,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Vec<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, event: Event) {
        self.lock().push(event);
        self.changed.notify_all();
    }

    pub(super) fn mark(&self, mark: &'static str) {
        self.note(Event::Mark(mark));
    }

    pub(super) fn events(&self) -> Vec<Event> {
        self.lock().clone()
    }

    pub(super) fn requests(&self) -> Vec<Arc<Seen>> {
        let request = |event: &Event| match event {
            Event::Request(seen) => Some(Arc::clone(seen)),
            _ => None,
        };
        self.lock().iter().filter_map(request).collect()
    }

    pub(super) fn generations(&self) -> Vec<Arc<Seen>> {
        self.requests().into_iter().filter(|seen| seen.generates()).collect()
    }

    /// The requests whose path has this ending, the query aside.
    pub(super) fn calls(&self, route: &str) -> Vec<Arc<Seen>> {
        let is_it = |seen: &Arc<Seen>| {
            seen.path.split('?').next().is_some_and(|path| path.ends_with(route))
        };
        self.requests().into_iter().filter(is_it).collect()
    }

    /// Waits until `reached` holds.
    #[track_caller]
    pub(super) fn wait_for(&self, what: &str, reached: impl Fn(&[Event]) -> bool) {
        let wait = |events: &mut Vec<Event>| !reached(events);
        let waited = self.changed.wait_timeout_while(self.lock(), DEADLINE, wait);
        let (events, result) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!result.timed_out(), "{what} never happened: {events:?}");
    }

    #[track_caller]
    pub(super) fn wait_for_mark(&self, mark: &'static str) {
        self.wait_for(mark, |events| {
            events.iter().any(|event| matches!(event, Event::Mark(said) if *said == mark))
        });
    }

    #[track_caller]
    pub(super) fn wait_for_generations(&self, count: usize) {
        self.wait_for("so many requests", |events| {
            let generates =
                |event: &&Event| matches!(event, Event::Request(seen) if seen.generates());
            events.iter().filter(generates).count() >= count
        });
    }
}

/// What becomes of a connection after an answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// The next request is read.
    KeepAlive,
    /// Closed in order.
    Close,
    /// Closed by a reset.
    Reset,
    /// Kept open and silent until the client closes it.
    Hang,
    /// Closed in order when it has been idle for so long.
    CloseIdle(Duration),
    /// Reset when it has been idle for so long.
    ResetIdle(Duration),
    /// Closed as soon as the next request begins to arrive.
    CloseOnNextByte,
}

/// A byte stream with the socket below it.
trait Stream: Read + Write + Send {
    fn socket(&self) -> &TcpStream;
}

impl Stream for TcpStream {
    fn socket(&self) -> &TcpStream {
        self
    }
}

impl Stream for rustls::StreamOwned<rustls::ServerConnection, TcpStream> {
    fn socket(&self) -> &TcpStream {
        &self.sock
    }
}

/// The way back to the client.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    pub(super) log: Arc<Log>,
}

impl Wire {
    /// Writes these bytes.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        if self.stream.write_all(bytes).and_then(|()| self.stream.flush()).is_err() {
            // The client left: what that means is for the test to say.
        }
    }

    /// A whole answer.
    pub(super) fn reply(&mut self, status: u16, kind: &str, body: &[u8]) -> Then {
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
        );
        self.send(&[head.as_bytes(), body].concat());
        Then::KeepAlive
    }

    /// A whole answer in JSON.
    pub(super) fn json(&mut self, status: u16, body: &Value) -> Then {
        self.reply(status, "application/json", body.to_string().as_bytes())
    }

    /// The head of an event stream.
    pub(super) fn begin(&mut self) {
        self.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: keep-alive\r\n\
              transfer-encoding: chunked\r\n\r\n",
        );
    }

    /// A piece of an event stream.
    pub(super) fn chunk(&mut self, text: &str) {
        self.send(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes());
    }

    /// The proper end of an event stream.
    pub(super) fn end(&mut self) -> Then {
        self.send(b"0\r\n\r\n");
        Then::KeepAlive
    }

    /// A whole event stream.
    pub(super) fn stream(&mut self, events: &[String]) -> Then {
        self.begin();
        self.chunk(&events.concat());
        self.end()
    }
}

/// Time that the server takes.
#[expect(clippy::disallowed_methods, reason = "a slow server, not a way to wait for the client")]
pub(super) fn pause(time: Duration) {
    thread::sleep(time);
}

type Handler = dyn Fn(&Seen, &mut Wire) -> Then + Send + Sync;

/// The server. Its threads end with the connections.
pub(super) struct Peer {
    address: SocketAddr,
    log: Arc<Log>,
    stopped: Arc<AtomicBool>,
    tls: bool,
}

impl std::ops::Deref for Peer {
    type Target = Log;

    fn deref(&self) -> &Log {
        &self.log
    }
}

impl Peer {
    pub(super) fn start(
        handler: impl Fn(&Seen, &mut Wire) -> Then + Send + Sync + 'static,
    ) -> Self {
        Self::listen(None, Arc::new(handler))
    }

    /// The same under TLS.
    pub(super) fn start_tls(
        config: rustls::ServerConfig,
        handler: impl Fn(&Seen, &mut Wire) -> Then + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Some(Arc::new(config)), Arc::new(handler))
    }

    fn listen(tls: Option<Arc<rustls::ServerConfig>>, handler: Arc<Handler>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        // Bursts of hundreds must not wait for connects to be tried again.
        SockRef::from(&listener).listen(1024).expect("a longer queue");
        let peer = Self {
            address: listener.local_addr().expect("an address"),
            log: Arc::default(),
            stopped: Arc::default(),
            tls: tls.is_some(),
        };
        let (log, stopped) = (Arc::clone(&peer.log), Arc::clone(&peer.stopped));
        thread::spawn(move || {
            for (connection, socket) in listener.incoming().enumerate() {
                if stopped.load(SeqCst) {
                    return;
                }
                let Ok(socket) = socket else { continue };
                let (log, handler, tls) = (Arc::clone(&log), Arc::clone(&handler), tls.clone());
                thread::spawn(move || serve(connection, socket, tls, log, &*handler));
            }
        });
        peer
    }

    pub(super) fn port(&self) -> u16 {
        self.address.port()
    }

    pub(super) fn url(&self) -> String {
        let (scheme, host) = if self.tls { ("https", "localhost") } else { ("http", "127.0.0.1") };
        format!("{scheme}://{host}:{}", self.port())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.stopped.store(true, SeqCst);
        if TcpStream::connect(self.address).is_err() {
            // It has stopped listening by itself.
        }
    }
}

fn serve(
    connection: usize,
    socket: TcpStream,
    tls: Option<Arc<rustls::ServerConfig>>,
    log: Arc<Log>,
    handler: &Handler,
) {
    let Ok(stream) = secure(socket, tls) else { return };
    let mut wire = Wire { stream, log };
    while let Ok(seen) = read_request(&mut *wire.stream, connection) {
        let seen = Arc::new(seen);
        wire.log.note(Event::Request(Arc::clone(&seen)));
        let then = handler(&seen, &mut wire);
        wire.log.note(Event::Answered(seen));
        if !go_on(then, &mut *wire.stream) {
            return;
        }
    }
}

/// The stream for a socket; what speaks no TLS where it should is told so.
fn secure(
    mut socket: TcpStream,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> io::Result<Box<dyn Stream>> {
    socket.set_nodelay(true)?;
    let Some(config) = tls else { return Ok(Box::new(socket)) };
    let mut first = [0];
    socket.peek(&mut first)?;
    if first != [0x16] {
        read_request(&mut socket, 0)?;
        let text = "400 The plain HTTP request was sent to HTTPS port";
        let head = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length";
        socket.write_all(format!("{head}: {}\r\n\r\n{text}", text.len()).as_bytes())?;
        return Err(io::ErrorKind::InvalidData.into());
    }
    let session = rustls::ServerConnection::new(config).map_err(io::Error::other)?;
    let mut stream = rustls::StreamOwned::new(session, socket);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    // What a server that also speaks HTTP/2 would go by.
    assert_ne!(stream.conn.alpn_protocol(), Some(&b"h2"[..]), "HTTP/2 was agreed on");
    Ok(Box::new(stream))
}

/// Does what follows an answer; true if another request may come.
fn go_on(then: Then, stream: &mut dyn Stream) -> bool {
    let socket = stream.socket();
    let reset = || SockRef::from(socket).set_linger(Some(Duration::ZERO)).expect("linger");
    match then {
        Then::KeepAlive => true,
        Then::Close => false,
        Then::Reset => {
            reset();
            false
        }
        Then::Hang => {
            let mut rest = Vec::new();
            if stream.read_to_end(&mut rest).is_err() {
                // A reset is an end, too.
            }
            false
        }
        Then::CloseIdle(time) => is_busy_within(socket, time),
        Then::ResetIdle(time) => {
            let busy = is_busy_within(socket, time);
            if !busy {
                reset();
            }
            busy
        }
        Then::CloseOnNextByte => {
            if socket.peek(&mut [0]).is_ok() && socket.shutdown(Shutdown::Both).is_err() {
                // The client was faster.
            }
            false
        }
    }
}

/// Whether a byte arrives within `time`.
fn is_busy_within(socket: &TcpStream, time: Duration) -> bool {
    socket.set_read_timeout(Some(time)).expect("a timeout");
    let busy = socket.peek(&mut [0]).is_ok();
    socket.set_read_timeout(None).expect("no timeout");
    busy
}

fn read_request(stream: &mut dyn Stream, connection: usize) -> io::Result<Seen> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        read_some(stream, &mut bytes)?;
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).map_err(io::Error::other)?;
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut seen = Seen {
        method: first.next().unwrap_or_default(),
        path: first.next().unwrap_or_default(),
        headers,
        body: bytes.split_off(head_end + 4),
        connection,
    };
    let length = seen.header("content-length").map_or(Ok(0), str::parse::<usize>);
    let length = length.map_err(io::Error::other)?;
    while seen.body.len() < length {
        read_some(stream, &mut seen.body)?;
    }
    Ok(seen)
}

fn read_some(stream: &mut dyn Stream, to: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 16 * 1024];
    match stream.read(&mut buffer)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        read => {
            to.extend_from_slice(&buffer[..read]);
            Ok(())
        }
    }
}

/// An event that holds `value`.
pub(super) fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

/// An event of the chat route.
pub(super) fn delta(delta: &Value) -> String {
    event(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

/// A token of the chat route.
pub(super) fn content(text: &str) -> String {
    delta(&json!({"content": text}))
}

/// The end of a choice, on both OpenAI routes.
pub(super) fn finish(reason: &str) -> String {
    event(&json!({"choices": [{"index": 0, "delta": {}, "text": "", "finish_reason": reason}]}))
}

/// The counts of an OpenAI route.
pub(super) fn usage(prompt: u32, completion: u32) -> String {
    event(&json!({
        "choices": [],
        "usage": {"prompt_tokens": prompt, "completion_tokens": completion},
    }))
}

/// The last event.
pub(super) fn done() -> String {
    "data: [DONE]\n\n".to_owned()
}

/// A chat reply of one token.
pub(super) fn one_token() -> [String; 4] {
    [content("a"), finish("length"), usage(8, 1), done()]
}

/// What a well-behaved server answers on every route.
pub(super) fn usual(seen: &Seen, wire: &mut Wire) -> Then {
    let path = seen.path.split('?').next().unwrap_or_default();
    if path.ends_with("/v1/models") {
        return wire.json(200, &json!({"data": [{"id": "m"}]}));
    }
    if seen.generates() {
        return generate(path, seen.json()["stream"] == true, wire);
    }
    wire.json(200, &json!({"route": path}))
}

fn generate(path: &str, streams: bool, wire: &mut Wire) -> Then {
    if path.ends_with("/generate") {
        let finish = json!({"type": "length"});
        let meta = json!({"prompt_tokens": 8, "completion_tokens": 1, "finish_reason": finish});
        let body = json!({"text": "a", "index": 0, "meta_info": meta});
        return if streams { wire.stream(&[event(&body), done()]) } else { wire.json(200, &body) };
    }
    let message = json!({"role": "assistant", "content": "a"});
    let choice = if path.ends_with("/v1/completions") {
        json!({"index": 0, "text": "a", "finish_reason": "length"})
    } else if streams {
        json!({"index": 0, "delta": message, "finish_reason": "length"})
    } else {
        json!({"index": 0, "message": message, "finish_reason": "length"})
    };
    let counts = json!({"prompt_tokens": 8, "completion_tokens": 1});
    let body = json!({"choices": [choice], "usage": counts});
    if streams { wire.stream(&[event(&body), done()]) } else { wire.json(200, &body) }
}
