//! What a record says of each fault of the simulated server, for each backend of both front ends, streamed or
//! not: over an in-memory connection and in virtual time, with either HTTP reader.

use bytes::Bytes;
use servebench::backends::{BackendKind, Family, GenerateOptions};
use servebench::core::{
    Audio, Decode, End, Progress, Prompt, Protocol, Record, Reply, Request, Sample, Stamp,
};
use servebench::http::{FnConnect, HttpBackend, HttpReader, Limits, Stream, Target};
use servebench::run::{Job, Stop, TokioClock, run_here};
use servebench::sim::{Sim, SimConfig, Timing, parse_faults};
use servebench_backends::vllm::{Form, VllmBackend, VllmOptions};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// The forms of replies, in the order of the columns.
///
/// * `native`: events with the text so far (SGLang's `/generate`).
/// * `openai`: events with pieces of text, a finish reason, `[DONE]` (completions, chat, responses,
///   transcriptions, Truss).
/// * `triton`: events without either; the end of the body is the end.
/// * `whole`: one JSON body with the text (`--disable-stream`).
/// * `vectors`: one JSON body with embeddings, pooled data or scores.
const COLUMNS: [&str; 5] = ["native", "openai", "triton", "whole", "vectors"];

/// The server's first token is due at 250 ms, its next ones every 10 ms, four in all. A request may hear
/// nothing for 500 ms and take 30 s.
///
/// One row for each fault: its name, the action, and for each column what the record of the request that
/// meets it must say. `ok 4 @250` is a success with four pieces, the first after 250 ms (`@_`: at some time).
/// Of a failure there is its kind, the pieces that were kept, and words of its detail. The request after
/// it is always as if nothing had happened.
#[rustfmt::skip] // a table
const TABLE: &[(&str, &str, [&str; 5])] = &[
    ("no fault", r#"{"delay": {"ms": 0}}"#,
        ["ok 4 @250", "ok 4 @250", "ok 4 @250", "ok 1 @280", "ok 0"]),

    // Before an answer.
    ("late head", r#"{"delay": {"ms": 400}}"#,
        ["ok 4 @400", "ok 4 @400", "ok 4 @400", "ok 1 @400", "ok 0"]),
    ("never an answer", r#"{"silence": {}}"#,
        ["timeout 0 `500ms`"; 5]),
    ("connection ended", r#"{"hang_up": {}}"#,
        ["truncated 0 `closed before the reply`"; 5]),
    ("connection reset", r#"{"hang_up": {"reset": true}}"#,
        ["reset 0 `reset by the server`"; 5]),
    ("cut in the head", r#"{"cut": {"after_wire_bytes": 20}}"#,
        ["truncated 0 `closed before the reply`"; 5]),
    ("reset in the head", r#"{"reset": {"after_wire_bytes": 20}}"#,
        ["reset 0 `reset by the server`"; 5]),

    // Another answer.
    ("too many requests", r#"{"status": {"code": 429, "body": "slow down", "headers": {"Retry-After": "1"}}}"#,
        ["status 0 `429 Too Many Requests: slow down`"; 5]),
    ("unavailable", r#"{"status": {"code": 503}}"#,
        ["status 0 `503 Service Unavailable`"; 5]),
    ("bad request", r#"{"status": {"code": 400, "body": "{\"error\":{\"message\":\"too long\"}}"}}"#,
        ["status 0 `too long`"; 5]),
    ("redirect", r#"{"status": {"code": 302, "headers": {"Location": "http://other/"}}}"#,
        ["status 0 `redirect to http://other/ refused`"; 5]),
    ("error object as a 200", r#"{"status": {"code": 200, "body": "{\"error\":{\"message\":\"lost\",\"code\":500}}"}}"#,
        ["server 0 `lost (code 500)`"; 5]),
    ("a page as a 200", r#"{"status": {"code": 200, "body": "<html>log in</html>", "content_type": "text/html"}}"#,
        ["protocol 0 `no event stream: <html>log in`", "protocol 0 `no event stream: <html>log in`",
         "protocol 0 `no event stream: <html>log in`", "protocol 0 `no event stream: <html>log in`",
         "protocol 0 `the answer is not JSON`"]),
    ("nothing as a 200", r#"{"status": {"code": 200}}"#,
        ["empty 0 `the reply is empty`", "empty 0 `the reply is empty`", "empty 0 `the reply is empty`",
         "empty 0 `the reply is empty`", "empty 0 `the answer is empty`"]),
    ("another type", r#"{"headers": {"headers": {"content-type": "text/html"}}}"#,
        ["ok 4 @250", "ok 4 @250", "ok 4 @250", "ok 1 @280", "ok 0"]),
    ("another encoding", r#"{"headers": {"headers": {"content-encoding": "rot13"}}}"#,
        ["protocol 0 `rot13`"; 5]),

    // Amid the answer.
    ("cut before the first token", r#"{"cut": {}}"#,
        ["truncated 0 `closed before the reply`"; 5]),
    ("cut after two tokens", r#"{"cut": {"after_tokens": 2}}"#,
        ["truncated 2 @250 `closed before`", "truncated 2 @250 `closed before`", "truncated 2 @250 `closed before`",
         "truncated 0 `closed before`", "truncated 0 `closed before`"]),
    ("reset after two tokens", r#"{"reset": {"after_tokens": 2}}"#,
        ["reset 2 @250 `reset by`", "reset 2 @250 `reset by`", "reset 2 @250 `reset by`",
         "reset 0 `reset by`", "reset 0 `reset by`"]),
    ("cut inside an event", r#"{"cut": {"after_bytes": 30}}"#,
        ["truncated 0 `closed before`"; 5]),
    ("cut inside a chunk", r#"{"cut": {"after_wire_bytes": 190}}"#,
        ["truncated 0 `closed before`"; 5]),
    ("reset inside a chunk", r#"{"reset": {"after_wire_bytes": 190}}"#,
        ["reset 0 `reset by`"; 5]),
    ("a frame that is no JSON", r#"{"malformed": {"at_token": 2}}"#,
        ["protocol 2 @250 `a frame is not JSON`", "protocol 2 @250 `a frame is not JSON`",
         "protocol 2 @250 `a frame is not JSON`", "ok 1 @280", "ok 0"]),
    ("a long line", r#"{"malformed": {"at_token": 2, "text": "data: x", "repeat": 30000}}"#,
        ["protocol 2 @250 `a frame is not JSON`", "protocol 2 @250 `a frame is not JSON`",
         "protocol 2 @250 `a frame is not JSON`", "ok 1 @280", "ok 0"]),
    ("a long comment", r#"{"ping": {"every": 2, "text": ": nothing to see here, and that at length, again and again and again\n\n"}}"#,
        ["ok 4 @250", "ok 4 @250", "ok 4 @250", "ok 1 @280", "ok 0"]),
    ("an event twice", r#"{"duplicate": {"at_token": 2}}"#,
        ["ok 4 @250", "ok 5 @250", "ok 4 @250", "ok 1 @280", "ok 0"]),
    ("an error before the first token", r#"{"error": {"at_token": 0, "message": "no memory"}}"#,
        ["server 0 `no memory`", "server 0 `no memory`", "server 0 `no memory`", "ok 1 @280", "ok 0"]),
    ("an error after two tokens", r#"{"error": {"at_token": 2, "done": false}}"#,
        ["server 2 @250 `injected error`", "server 2 @250 `injected error`", "server 2 @250 `injected error`",
         "ok 1 @280", "ok 0"]),
    ("a pause", r#"{"stall": {"at_token": 2, "ms": 400}}"#,
        ["ok 4 @250", "ok 4 @250", "ok 4 @250", "ok 1 @280", "ok 0"]),
    ("silence after the head", r#"{"stall": {"at_token": 0}}"#,
        ["timeout 0 `500ms`", "timeout 0 `500ms`", "timeout 0 `500ms`", "ok 1 @280", "ok 0"]),
    ("silence after two tokens", r#"{"stall": {"at_token": 2}}"#,
        ["timeout 2 @250 `500ms`", "timeout 2 @250 `500ms`", "timeout 2 @250 `500ms`", "ok 1 @280", "ok 0"]),
    ("a slow drip", r#"{"drip": {"bytes": 10, "ms": 20}}"#,
        ["ok 4 @_", "ok 4 @_", "ok 4 @_", "ok 1 @_", "ok 0"]),
    ("a drip slower than allowed", r#"{"drip": {"bytes": 1, "ms": 400}}"#,
        ["timeout 0 `30s`"; 5]),

    // After the answer.
    ("no [DONE]", r#"{"no_done": {}}"#,
        ["ok 4 @250", "ok 4 @250", "ok 4 @250", "ok 1 @280", "ok 0"]),
    ("open after the end", r#"{"hold_open": {}}"#,
        ["ok 4 @250", "ok 4 @250", "timeout 4 @250 `500ms`", "ok 1 @280", "ok 0"]),
    ("connection closed while idle", r#"{"close": {"after_ms": 3}}"#,
        ["ok 4 @250", "ok 4 @250", "ok 4 @250", "ok 1 @280", "ok 0"]),
    ("connection reset while idle", r#"{"close": {"after_ms": 3, "reset": true}}"#,
        ["ok 4 @250", "ok 4 @250", "ok 4 @250", "ok 1 @280", "ok 0"]),
    ("connection closed on the next byte", r#"{"close": {"on_next_byte": true}}"#,
        ["ok 4 @250", "ok 4 @250", "ok 4 @250", "ok 1 @280", "ok 0"]),
];

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// One backend in one way of using it.
struct Way {
    name: String,
    column: &'static str,
    protocol: Arc<dyn Protocol>,
    sample: Sample,
}

/// All backends of both front ends, in all the ways that their replies can come.
fn ways() -> Vec<Way> {
    let text = || Sample { prompt: "Hello".into(), output_len: 4, ..Sample::default() };
    let mut ways = Vec::new();
    for kind in BackendKind::all() {
        for stream in [true, false] {
            let column = match (kind.info().family, stream) {
                (Family::Embeddings, true) => "vectors",
                (Family::Triton, true) => "triton",
                (Family::Native, true) => "native",
                (_, true) => "openai",
                // Embeddings are never streamed, and Triton's endpoint does nothing else.
                (Family::Embeddings | Family::Triton, false) => continue,
                (_, false) => "whole",
            };
            let options =
                GenerateOptions { model: "sim".into(), stream, ..GenerateOptions::default() };
            let name =
                format!("bench-serving {kind} ({})", if stream { "stream" } else { "whole" });
            ways.push(Way { name, column, protocol: kind.protocol(options), sample: text() });
        }
    }
    for kind in VllmBackend::all() {
        let (info, mut sample) = (kind.info(), text());
        match info.form {
            Form::Audio => {
                let bytes = vec![0; 320].into();
                sample.audio =
                    Some(Box::new(Audio { name: "a.wav".into(), bytes, ..Audio::default() }));
            }
            Form::Rerank => sample.prompt = Prompt::Texts(vec!["query".into(), "document".into()]),
            _ => {}
        }
        let column = if info.pooling { "vectors" } else { "openai" };
        let options =
            VllmOptions { model: "sim".into(), ignore_eos: true, ..VllmOptions::default() };
        let protocol = kind.protocol(info.endpoint, options);
        ways.push(Way { name: format!("bench-vllm {kind}"), column, protocol, sample });
    }
    ways
}

/// The near end of a connection, which looks reset once the far end has said so.
struct Near {
    inner: DuplexStream,
    is_reset: Arc<AtomicBool>,
}

/// The far end.
struct Far {
    inner: DuplexStream,
    is_reset: Arc<AtomicBool>,
}

impl AsyncRead for Near {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buffer))?;
        let is_end = buffer.filled().len() == before && buffer.remaining() > 0;
        let is_reset = is_end && self.is_reset.load(SeqCst);
        Poll::Ready(if is_reset { Err(io::ErrorKind::ConnectionReset.into()) } else { Ok(()) })
    }
}

impl AsyncRead for Far {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

/// Both ends write as the pipe does.
macro_rules! write_through {
    ($end:ty) => {
        impl AsyncWrite for $end {
            fn poll_write(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                Pin::new(&mut self.inner).poll_write(cx, bytes)
            }

            fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                Pin::new(&mut self.inner).poll_flush(cx)
            }

            fn poll_shutdown(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<()>> {
                Pin::new(&mut self.inner).poll_shutdown(cx)
            }
        }
    };
}

write_through!(Near);
write_through!(Far);

/// Sends two requests, a minute apart, of which the first meets the fault; gives their records and how
/// often the fault was met.
fn run(way: &Way, reader: HttpReader, action: &str) -> (Vec<Record>, u64) {
    let rules = format!(r#"[{{"when": {{"index": [0]}}, "action": {action}}}]"#);
    let faults = parse_faults(&rules).expect("a rule");
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let request = |id| Request {
            id,
            body: way.protocol.encode(&way.sample, None),
            output_len: 4,
            ..Request::default()
        };
        let schedule = vec![Stamp(0), Stamp::from_millis(60_000)].into();
        let job = Job { schedule, ..Job::burst((0..2).map(request).collect()) };
        let timing = Timing::canned(ms(250), ms(10));
        let sim = Sim::new(SimConfig { timing, faults, ..SimConfig::default() });
        let served = sim.clone();
        let connect = FnConnect::new(move || {
            let (near, far) = tokio::io::duplex(1 << 20);
            let is_reset = Arc::<AtomicBool>::default();
            let near = Near { inner: near, is_reset: Arc::clone(&is_reset) };
            let far = Far { inner: far, is_reset };
            let sim = served.clone();
            tokio::task::spawn_local(async move {
                sim.serve_with(far, |far| far.is_reset.store(true, SeqCst)).await;
            });
            async move { Ok(Box::new(near) as Box<dyn Stream>) }
        });
        let target = Target::new("http://sim".parse().expect("a URL"));
        let clock = TokioClock::default();
        let (idle, total) = (Some(ms(500)), Some(ms(30_000)));
        let limits = Limits { idle, total, reader, ..Limits::default() };
        let protocol = Arc::clone(&way.protocol);
        let backend = HttpBackend::new(clock.clone(), connect, &target, protocol, limits);
        let finished = run_here(&job, backend, clock, &Arc::default(), &Stop::default()).await;
        (finished.expect("a run").records, sim.stats().faults)
    })
}

/// A cell of the table that is met: what a record says, in the table's words as far as `cell` has any.
fn told(record: &Record, cell: &str) -> String {
    let reply = &record.reply;
    let kind = reply.failure.as_ref().map_or("ok", |failure| failure.kind.name());
    let mut text = format!("{kind} {}", reply.chunks.len());
    if let Some(first) = reply.first_token() {
        let at = first.since(record.dispatched).as_millis();
        let at = if cell.contains("@_") { "_".to_owned() } else { at.to_string() };
        text.extend([" @", &at]);
    }
    if let Some(failure) = &reply.failure {
        let words = cell.split('`').nth(1).filter(|words| failure.detail.contains(words));
        text.extend([" `", words.unwrap_or(&failure.detail), "`"]);
    }
    text
}

#[test]
fn every_fault_is_told_as_the_table_has_it() {
    let ways = ways();
    let mut wrong = Vec::new();
    for (name, action, cells) in TABLE {
        for way in &ways {
            let column = COLUMNS.iter().position(|column| *column == way.column).expect("a column");
            for reader in [HttpReader::Lean, HttpReader::Hyper] {
                let (records, met) = run(way, reader, action);
                assert_eq!(records.len(), 2, "{name}: {}", way.name);
                let next = TABLE[0].2[column];
                let cells = [(cells[column], &records[0]), (next, &records[1])];
                for (cell, record) in cells {
                    let told = told(record, cell);
                    if told != cell {
                        wrong.push(format!("{name}, {} {reader:?}: {told}, not {cell}", way.name));
                    }
                }
                if met != 1 {
                    wrong.push(format!("{name}, {} {reader:?}: met {met} times", way.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} cells:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_table_has_every_fault_and_every_backend() {
    // The script's own list of what there is.
    let unknown = parse_faults(r#"[{"action": {"none": {}}}]"#).expect_err("unknown").to_string();
    let known: Vec<&str> = unknown.split('`').skip(3).step_by(2).collect();
    assert!(known.len() >= 16, "{unknown}");
    for action in known {
        let begin = format!("{{\"{action}\":");
        assert!(TABLE.iter().any(|(_, rule, _)| rule.starts_with(&begin)), "no row for {action}");
    }
    let mut names: Vec<&str> = TABLE.iter().map(|(name, ..)| *name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), TABLE.len(), "names say which row it is");
    let mut columns: BTreeMap<&str, usize> = BTreeMap::new();
    for way in ways() {
        *columns.entry(way.column).or_default() += 1;
    }
    // 12 and 13 backends, and the nine that can answer in one piece.
    let want = [("native", 2), ("openai", 12), ("triton", 1), ("vectors", 10), ("whole", 9)];
    assert_eq!(columns, BTreeMap::from(want));
}

/// Reads replies as the protocol within does, but cannot read the second piece of the first one.
#[derive(Debug)]
struct Clumsy(Arc<dyn Protocol>);

struct ClumsyDecoder {
    inner: Box<dyn Decode>,
    pieces: Option<u32>,
}

impl Protocol for Clumsy {
    fn path(&self) -> &str {
        self.0.path()
    }

    fn content_type(&self) -> &'static str {
        self.0.content_type()
    }

    fn encode(&self, sample: &Sample, adapter: Option<&str>) -> Bytes {
        self.0.encode(sample, adapter)
    }

    fn decoder(&self, request: &Request) -> Box<dyn Decode> {
        let pieces = (request.id == 0).then_some(0);
        Box::new(ClumsyDecoder { inner: self.0.decoder(request), pieces })
    }
}

impl Decode for ClumsyDecoder {
    fn feed(&mut self, at: Stamp, bytes: &[u8], reply: &mut Reply) -> Progress {
        if let Some(pieces) = &mut self.pieces {
            *pieces += 1;
            assert!(*pieces < 2, "a piece that nobody can read");
        }
        self.inner.feed(at, bytes, reply)
    }

    fn end(&mut self, at: Stamp, end: End, reply: &mut Reply) {
        self.inner.end(at, end, reply);
    }
}

/// What had come is kept, and neither the connection nor the next request suffers.
#[test]
fn a_decoder_that_panics_is_one_failed_request() {
    for mut way in ways().into_iter().filter(|way| ["native", "openai"].contains(&way.column)) {
        way.protocol = Arc::new(Clumsy(way.protocol));
        for reader in [HttpReader::Lean, HttpReader::Hyper] {
            let (records, _) = run(&way, reader, r#"{"delay": {"ms": 0}}"#);
            let [clumsy, next] = &records[..] else { panic!("two requests") };
            let told = told(clumsy, "client 1 @250 `a piece that nobody can read`");
            assert_eq!(told, "client 1 @250 `a piece that nobody can read`", "{}", way.name);
            assert!(next.is_success() && next.reply.chunks.len() == 4, "{}", way.name);
        }
    }
}
