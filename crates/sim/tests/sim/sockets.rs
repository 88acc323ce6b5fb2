//! Real sockets: what an in-memory connection cannot show.

use servebench_sim::{Sim, SimConfig, parse_faults};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

fn request(body: &str) -> String {
    format!(
        "POST /v1/completions HTTP/1.1\r\nhost: sim\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

const STREAM: &str = r#"{"model": "sim", "prompt": "a", "max_tokens": 4, "stream": true}"#;

/// Sends one request and reads to the end of the connection.
fn exchange(rules: &str) -> (String, std::io::Result<usize>) {
    let faults = parse_faults(rules).expect("a script");
    let sim = Sim::new(SimConfig { faults, ..SimConfig::default() });
    let server = sim.spawn_in_thread().expect("a server");
    let mut socket = TcpStream::connect(server.addr).expect("connects");
    socket.write_all(request(STREAM).as_bytes()).expect("sends");
    let mut bytes = Vec::new();
    let ended = socket.read_to_end(&mut bytes);
    (String::from_utf8_lossy(&bytes).into_owned(), ended)
}

#[test]
fn a_cut_is_a_fin_and_a_reset_is_a_rst() {
    let (text, ended) = exchange(r#"[{"action": {"cut": {"after_tokens": 2}}}]"#);
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!(text.matches("data: ").count(), 2, "{text}");
    assert!(!text.ends_with("0\r\n\r\n"));
    let (_, ended) = exchange(r#"[{"action": {"reset": {"after_tokens": 2}}}]"#);
    assert_eq!(ended.expect_err("reset").kind(), ErrorKind::ConnectionReset);
}

#[test]
fn an_idle_connection_is_closed_by_fin_or_rst() {
    let (text, ended) = exchange(r#"[{"action": {"close": {}}}]"#);
    assert!(ended.is_ok() && text.ends_with("0\r\n\r\n"), "{text}");
    let (text, ended) = exchange(r#"[{"action": {"close": {"after_ms": 50, "reset": true}}}]"#);
    assert!(text.ends_with("0\r\n\r\n"), "{text}");
    assert_eq!(ended.expect_err("reset").kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_handle_stops_its_server() {
    let sim = Sim::new(SimConfig::default());
    let server = sim.spawn_in_thread().expect("a server");
    assert_eq!(server.url(), format!("http://{}", server.addr));
    let mut socket = TcpStream::connect(server.addr).expect("connects");
    socket.write_all(request(STREAM).as_bytes()).expect("sends");
    let mut first = [0; 15];
    socket.read_exact(&mut first).expect("answers");
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    let address = server.addr;
    drop(server);
    assert!(TcpStream::connect(address).is_err());
    assert_eq!(sim.stats().open_connections, 0);
}
