//! A loopback server that answers by a closure and keeps what it was asked.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One call: method, path with query, authorization, body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Call {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a JSON body")
    }
}

type Calls = Arc<Mutex<Vec<Call>>>;

/// The server; it goes with the process.
#[derive(Debug)]
pub(crate) struct Peer {
    address: SocketAddr,
    calls: Calls,
}

impl Peer {
    /// Answers calls with the status and the body that `answer` gives for their path.
    pub(crate) fn start(answer: impl Fn(&str) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let calls = Calls::default();
        let seen = Arc::clone(&calls);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A client that left is the test's to notice.
                drop(serve(&stream, &answer, &seen));
            }
        });
        Self { address, calls }
    }

    /// An SGLang server whose profiler does nothing.
    pub(crate) fn sglang() -> Self {
        Self::start(|path| match path {
            "/server_info" => {
                (200, r#"{"model_path": "m", "api_key": "hidden", "tp_size": 1}"#.into())
            }
            "/start_profile" | "/stop_profile" => (200, "ok\n".into()),
            path if path.starts_with("/flush_cache") => (200, "Cache flushed.\n".into()),
            _ => (404, r#"{"detail": "Not Found"}"#.into()),
        })
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The calls of `path`, whatever its query.
    pub(crate) fn calls(&self, path: &str) -> Vec<Call> {
        let calls = self.calls.lock().expect("nobody panicked");
        let is_it = |call: &&Call| call.path.split('?').next() == Some(path);
        calls.iter().filter(is_it).cloned().collect()
    }
}

fn serve(
    mut stream: &TcpStream,
    answer: &impl Fn(&str) -> (u16, String),
    seen: &Calls,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (mut length, mut authorization) = (0, None);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header)?;
        let Some((name, value)) = header.trim().split_once(": ") else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap_or(0),
            "authorization" => authorization = Some(value.to_owned()),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let (status, text) = answer(&path);
    seen.lock().expect("nobody panicked").push(Call { method, path, authorization, body });
    let head = format!("HTTP/1.1 {status} S\r\ncontent-length: {}\r\n", text.len());
    stream.write_all(format!("{head}connection: close\r\n\r\n{text}").as_bytes())
}
