//! Servers started for a check: a process on a free loopback port, stopped on every way out.

use anyhow::{Context, Result, bail};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server and the group of processes it may have started.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts `command`, which must serve on `port` of the loopback interface.
    pub(crate) fn start(command: &mut Command, port: u16) -> Result<Self> {
        Self::start_leader(command.process_group(0), port)
    }

    /// The same, for a command that leads a process group of its own as soon as it runs.
    pub(crate) fn start_leader(command: &mut Command, port: u16) -> Result<Self> {
        let child = command
            .stdin(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { child, port })
    }

    /// Waits until `GET path` answers 200.
    pub(crate) fn wait_ready(&mut self, path: &str, limit: Duration) -> Result<()> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status} before it was ready");
            }
            if get(self.port, path).is_ok() {
                return Ok(());
            }
            if start.elapsed() > limit {
                bail!("the server was not ready within {} s", limit.as_secs());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The address to give to a client.
    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The port it serves on.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn signal(&self, name: &str) {
        let group = format!("-{}", self.child.id());
        let sent = Command::new("kill").args([name, "--", &group]).stderr(Stdio::null()).status();
        if sent.is_err() {
            eprintln!("cannot run `kill`; process group {group} may still be there");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.signal("-TERM");
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.signal("-KILL"); // what is left of the group
        if let Err(error) = self.child.wait() {
            eprintln!("the server could not be waited for: {error}");
        }
    }
}

/// A loopback port that was free a moment ago.
pub(crate) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The body of `GET path`; any status other than 200 is an error.
pub(crate) fn get(port: u16, path: &str) -> Result<String> {
    request(port, "GET", path, "")
}

/// The body of the answer to `POST path`; any status other than 200 is an error.
pub(crate) fn post(port: u16, path: &str, body: &str) -> Result<String> {
    request(port, "POST", path, body)
}

fn request(port: u16, method: &str, path: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(Duration::from_secs(20)))?;
    // HTTP/1.0: the body ends where the connection does, and is never chunked.
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply)?;
    let reply = String::from_utf8_lossy(&reply);
    let (head, body) = reply.split_once("\r\n\r\n").context("no answer")?;
    let status = head.split(' ').nth(1).unwrap_or_default();
    if status != "200" {
        bail!("{method} {path} answered {status}");
    }
    Ok(body.to_owned())
}
