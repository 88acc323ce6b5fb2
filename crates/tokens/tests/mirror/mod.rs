//! A hub of a few files on loopback: just the HTTP that the downloader needs.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

pub(crate) const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

/// What the hub says when a file is asked for.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The file; only the first `cut` bytes of it when it is read from the start in whole.
    File {
        body: String,
        cut: Option<usize>,
        with_length: bool,
    },
    Status(u16),
    Redirect(&'static str),
    Raw(String),
}

impl Answer {
    pub(crate) fn file(body: &str) -> Self {
        Self::File { body: body.to_owned(), cut: None, with_length: true }
    }

    pub(crate) fn cut(body: &str, cut: usize, with_length: bool) -> Self {
        Self::File { body: body.to_owned(), cut: Some(cut), with_length }
    }
}

#[derive(Default)]
struct State {
    files: Mutex<HashMap<String, Answer>>,
    heads: Mutex<Vec<String>>,
    stop: AtomicBool,
}

pub(crate) struct Mirror {
    address: SocketAddr,
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Mirror {
    pub(crate) fn start(files: Vec<(&str, &str, Answer)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if shared.stop.load(Ordering::SeqCst) {
                    return;
                }
                // A client that goes away is its own business.
                drop(stream.map(|stream| answer(&stream, &shared)));
            }
        });
        let mirror = Self { address, state, thread: Some(thread) };
        for (repo, file, answer) in files {
            mirror.put(repo, file, answer);
        }
        mirror
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn put(&self, repo: &str, file: &str, answer: Answer) {
        self.put_at(&format!("/{repo}/resolve/main/{file}"), answer);
    }

    pub(crate) fn put_at(&self, path: &str, answer: Answer) {
        self.state.files.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// The request heads so far.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.state.heads.lock().unwrap().clone()
    }

    pub(crate) fn requests(&self) -> usize {
        self.heads().len()
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(self.address));
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// An address where nobody listens.
pub(crate) fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

pub(crate) fn etag(body: &str) -> String {
    format!("etag{}", body.len())
}

/// One request, one connection.
fn answer(stream: &TcpStream, state: &State) -> std::io::Result<()> {
    let mut head = String::new();
    let mut lines = BufReader::new(stream);
    while !head.ends_with("\r\n\r\n") {
        if lines.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let from_to = range(&head);
    state.heads.lock().unwrap().push(head);
    let found = state.files.lock().unwrap().get(&path).cloned();
    let mut out = stream;
    match found.unwrap_or(Answer::Status(404)) {
        Answer::Raw(bytes) => out.write_all(bytes.as_bytes()),
        Answer::Status(status) => {
            write!(out, "HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        }
        Answer::Redirect(to) => write!(
            out,
            "HTTP/1.1 307 Moved\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        ),
        Answer::File { body, cut, with_length } => {
            let (from, to) = (from_to.0, from_to.1.unwrap_or(body.len() - 1).min(body.len() - 1));
            let part = body.get(from..=to).unwrap_or_default();
            write!(
                out,
                "HTTP/1.1 206 Partial Content\r\netag: \"{}\"\r\nx-repo-commit: {COMMIT}\r\n\
                 content-range: bytes {from}-{to}/{}\r\nconnection: close\r\n",
                etag(&body),
                body.len(),
            )?;
            if with_length {
                write!(out, "content-length: {}\r\n", part.len())?;
            }
            let sent = cut.filter(|_| from == 0).map_or(part.len(), |cut| cut.min(part.len()));
            write!(out, "\r\n{}", &part[..sent])
        }
    }
}

/// The range asked for: first byte and, if given, last byte.
fn range(head: &str) -> (usize, Option<usize>) {
    let lower = head.to_ascii_lowercase();
    let value = lower.split("range: bytes=").nth(1).and_then(|rest| rest.lines().next());
    let (from, to) = value.and_then(|value| value.split_once('-')).unwrap_or(("0", ""));
    (from.parse().unwrap_or(0), to.parse().ok())
}
