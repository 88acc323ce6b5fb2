//! What is recorded of an exchange makes the same reply when it is played.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "this test's clock is tokio's own")]

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Value, json};
use servebench_backends::{BackendKind, Family, GenerateOptions};
use servebench_core::{Backend, Clock, Protocol, Reply, Request, Sample, Stamp};
use servebench_http::{FnConnect, HttpBackend, HttpReader, Limits, Stream, Target};
use servebench_journal::JournalError;
use servebench_journal::records::RecordWriter;
use servebench_recording::{Played, Recorder, RecorderOptions, Recording, play, redact};
use servebench_sim::{Sim, SimConfig, Timing, parse_faults};
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

#[derive(Clone, Debug)]
struct TestClock(Instant);

impl Clock for TestClock {
    fn now(&self) -> Stamp {
        Stamp::from(self.0.elapsed())
    }

    fn sleep_until(&self, at: Stamp) -> impl Future<Output = ()> {
        tokio::time::sleep_until(self.0 + at.offset())
    }
}

/// A file in memory.
#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl File {
    fn play(&self, protocol: &Arc<dyn Protocol>) -> Played {
        let bytes = self.0.lock().unwrap().clone();
        let mut recording = Recording::open(bytes.as_slice()).unwrap();
        play(&mut recording, protocol, |_, _, _| {}).unwrap()
    }
}

/// Runs `test` in virtual time.
fn in_virtual_time<T>(test: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&runtime.unwrap(), test)
}

/// Sends `requests` one after the other while they are recorded; gives the replies and the recording.
async fn recorded<F: Future<Output = ()> + 'static>(
    protocol: &Arc<dyn Protocol>,
    requests: &[Request],
    reader: HttpReader,
    serve: impl Fn(DuplexStream) -> F + 'static,
) -> (Vec<Reply>, File) {
    let connect = FnConnect::new(move || {
        let (client, server) = tokio::io::duplex(64 * 1024);
        tokio::task::spawn_local(serve(server));
        async move { Ok(Box::new(client) as Box<dyn Stream>) }
    });
    let file = File::default();
    let options = RecorderOptions::default();
    let recorder = Recorder::start(file.clone(), json!({}), options, |_| {}).unwrap();
    let target = Target::new("http://peer".parse().unwrap());
    let target = target.with_header("authorization", "Bearer secret-key").unwrap();
    let limits = Limits { idle: Some(Duration::from_secs(5)), reader, ..Limits::default() };
    let clock = TestClock(Instant::now());
    let backend = HttpBackend::new(clock, connect, &target, Arc::clone(protocol), limits)
        .with_observer(recorder.observer());
    let mut replies = Vec::new();
    for request in requests {
        let keep_pieces = request.id % 2 == 0;
        let mut reply = Reply { keep_pieces, ..Reply::default() };
        backend.send(request, &mut reply).await;
        reply.chunks.shrink();
        replies.push(reply);
    }
    drop(backend);
    recorder.finish(no_records).unwrap();
    (replies, file)
}

fn no_records(log: &mut Vec<u8>) -> Result<(), JournalError> {
    RecordWriter::create(log, &json!({})).map(drop)
}

fn protocol(kind: BackendKind) -> Arc<dyn Protocol> {
    kind.protocol(GenerateOptions { model: "m".into(), stream: true, ..GenerateOptions::default() })
}

fn request(id: u64, protocol: &Arc<dyn Protocol>) -> Request {
    let sample = Sample { prompt: "the prompt of it".into(), output_len: 4, ..Sample::default() };
    Request { id, body: protocol.encode(&sample, None), output_len: 4, ..Request::default() }
}

/// A frame of a reply, or something that is none.
fn frame(family: Family) -> impl Strategy<Value = String> {
    let text = prop_oneof![Just(String::new()), "[a-z ]{1,9}", "\\PC{1,4}"];
    let finish = prop_oneof![5 => Just(Value::Null), 1 => Just(json!("length"))];
    let good = (text, finish, 1..5u64).prop_map(move |(text, finish, count)| match family {
        Family::Native => {
            let finish = if finish.is_null() { finish } else { json!({"type": finish}) };
            json!({"text": text, "meta_info": {"completion_tokens": count, "prompt_tokens": 3,
                "finish_reason": finish}})
        }
        Family::Chat => {
            json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]})
        }
        Family::Triton => json!({"text_output": text}),
        Family::Embeddings => {
            json!({"data": [{"embedding": [0.5]}], "usage": {"prompt_tokens": 3}})
        }
        Family::Completions | Family::Truss | _ => {
            json!({"choices": [{"index": 0, "text": text, "finish_reason": finish}],
                "usage": {"prompt_tokens": 3, "completion_tokens": count}})
        }
    });
    prop_oneof![
        8 => good.prop_map(|frame| format!("data: {frame}\n\n")),
        1 => Just("data: [DONE]\n\n".to_owned()),
        1 => Just(": ping\n\n".to_owned()),
        1 => Just("data: {\"error\":{\"message\":\"no\"}}\n\n".to_owned()),
        1 => "[ -~\n]{0,20}",
    ]
}

/// How a scripted peer answers.
#[derive(Clone, Debug)]
struct Script {
    status: u16,
    head: &'static str,
    body: Vec<u8>,
    /// Where the answer is cut into writes that come a millisecond apart.
    cuts: Vec<usize>,
    /// Bytes of the answer that never come.
    missing: usize,
    /// The connection stays open at the end.
    hangs: bool,
}

fn script(family: Family) -> impl Strategy<Value = Script> {
    let status = prop_oneof![6 => Just(200u16), 1 => Just(429), 1 => Just(302), 1 => Just(700)];
    let heads = prop::sample::select(vec![
        "",
        "",
        "",
        "location: http://elsewhere/\r\n",
        "content-encoding: br\r\n",
        "metadata: {\"usage\":{\"prompt_tokens\":7}}\r\n",
    ]);
    let body = prop::collection::vec(frame(family), 0..8);
    let cuts = prop::collection::vec(any::<usize>(), 0..12);
    let missing = prop_oneof![3 => Just(0usize), 1 => 1..40usize];
    (status, heads, body, cuts, missing, prop::bool::weighted(0.2)).prop_map(
        |(status, head, body, cuts, missing, hangs)| Script {
            status,
            head,
            body: body.concat().into_bytes(),
            cuts,
            missing,
            hangs,
        },
    )
}

impl Script {
    /// Answers one request, then ends the connection.
    async fn answer(self, mut peer: DuplexStream) {
        let mut head = [0; 4096];
        if !matches!(peer.read(&mut head).await, Ok(1..)) {
            return;
        }
        let Self { status, head, body, cuts, missing, hangs } = self;
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {length}\r\n{head}\r\n");
        let mut answer = head.into_bytes();
        answer.extend(body);
        answer.truncate(answer.len().saturating_sub(missing));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (answer.len() + 1)).collect();
        cuts.extend([0, answer.len()]);
        cuts.sort_unstable();
        for part in cuts.windows(2) {
            if peer.write_all(&answer[part[0]..part[1]]).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if hangs {
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
    }
}

fn any_script() -> impl Strategy<Value = (BackendKind, Script)> {
    let kinds: Vec<BackendKind> = BackendKind::all().collect();
    prop::sample::select(kinds).prop_flat_map(|kind| (Just(kind), script(kind.info().family)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_scripted_answer_makes_the_same_reply((kind, script) in any_script(), hyper: bool) {
        let protocol = protocol(kind);
        let reader = if hyper { HttpReader::Hyper } else { HttpReader::Lean };
        // The second request finds its connection closed, and another behind it.
        let requests = [request(0, &protocol), request(1, &protocol)];
        let (replies, file) = in_virtual_time(recorded(&protocol, &requests, reader, move |peer| {
            script.clone().answer(peer)
        }));
        let played = file.play(&protocol);
        prop_assert!(played.is_complete());
        prop_assert_eq!(played.exchanges.len(), replies.len());
        for (exchange, reply) in played.exchanges.iter().zip(&replies) {
            prop_assert!(exchange.is_over && !exchange.is_damaged);
            prop_assert_eq!(&exchange.reply, reply);
        }
    }

    /// Frames of a true recording, damaged at a few places behind their checksums.
    #[test]
    fn damaged_frames_are_played_or_refused(
        (kind, script) in any_script(),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
    ) {
        let protocol = protocol(kind);
        let requests = [request(0, &protocol), request(1, &protocol)];
        let (_, file) =
            in_virtual_time(recorded(&protocol, &requests, HttpReader::Auto, move |peer| {
                script.clone().answer(peer)
            }));
        let bytes = file.0.lock().unwrap().clone();
        let mut reader = servebench_journal::Reader::open(bytes.as_slice()).unwrap();
        let place = BackendKind::all().position(|other| other == kind).unwrap();
        let mut data = vec![place as u8];
        while let Some(frame) = reader.next_frame().unwrap() {
            let mut frame = frame.to_vec();
            for (at, byte) in &damage {
                let at = at % frame.len();
                frame[at] ^= byte;
            }
            // The length, seven bits a byte.
            let mut length = frame.len();
            while length >= 0x80 {
                data.push(length as u8 | 0x80);
                length >>= 7;
            }
            data.push(length as u8);
            data.extend(frame);
        }
        servebench_recording::fuzzing::recording(&data);
    }

    #[test]
    fn any_bytes_are_played_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        servebench_recording::fuzzing::recording(&bytes);
    }
}

/// The simulated server's answers, with faults among them.
#[test]
fn the_simulated_servers_answers_make_the_same_replies() {
    let ms = Duration::from_millis;
    for kind in BackendKind::all() {
        let protocol = protocol(kind);
        let requests: Vec<Request> = (0..12).map(|id| request(id, &protocol)).collect();
        let (replies, file) = in_virtual_time(async {
            let timing = Timing::canned(ms(30), ms(5));
            let faults = r#"[
                {"when": {"every": 3}, "action": {"cut": {"after_bytes": 150}}},
                {"when": {"every": 4}, "action": {"status": {"code": 503}}},
                {"when": {"every": 5}, "action": {"no_done": {}}}
            ]"#;
            let faults = parse_faults(faults).unwrap();
            let model = "m".into();
            let sim = Sim::new(SimConfig { model, timing, faults, ..SimConfig::default() });
            let serve = move |peer| {
                let sim = sim.clone();
                async move { sim.serve_connection(peer).await }
            };
            recorded(&protocol, &requests, HttpReader::Auto, serve).await
        });
        let played = file.play(&protocol);
        assert!(played.is_complete());
        for (exchange, reply) in played.exchanges.iter().zip(&replies) {
            assert_eq!(&exchange.reply, reply, "{kind}");
        }
        let failed = replies.iter().filter(|reply| reply.failure.is_some()).count();
        assert!((3..replies.len()).contains(&failed), "{kind}: {replies:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A redacted copy is played to the same chunks, stamps, counts and kinds of failure; where that cannot be
    /// done it is said.
    #[test]
    fn a_redacted_copy_differs_in_words_only((kind, script) in any_script()) {
        let protocol = protocol(kind);
        let requests = [request(0, &protocol)];
        let (replies, file) =
            in_virtual_time(recorded(&protocol, &requests, HttpReader::Auto, move |peer| {
                script.clone().answer(peer)
            }));
        let bytes = file.0.lock().unwrap().clone();
        let copy = File::default();
        let mut recording = Recording::open(bytes.as_slice()).unwrap();
        let redacted = redact(&mut recording, &protocol, copy.clone()).unwrap();
        prop_assert_eq!(redacted.exchanges, 1);
        let played = copy.play(&protocol);
        prop_assert!(played.is_complete());
        let (told, reply) = (&played.exchanges[0].reply, &replies[0]);
        prop_assert_eq!((told.status, told.headers, told.sent), (reply.status, reply.headers, reply.sent));
        if redacted.replaced.is_empty() {
            prop_assert_eq!(&told.chunks, &reply.chunks);
            prop_assert_eq!(&told.pieces, &reply.pieces);
            prop_assert_eq!(told.text.len(), reply.text.len());
            prop_assert_eq!(told.completion_tokens, reply.completion_tokens);
            prop_assert_eq!(told.last_line, reply.last_line);
            prop_assert_eq!(
                told.failure.as_ref().map(|failure| failure.kind),
                reply.failure.as_ref().map(|failure| failure.kind)
            );
        }
    }
}

/// What servers say is not in the copy, on any route, streamed in either way.
#[test]
fn a_redacted_copy_holds_nothing_that_was_said() {
    let secret = "The launch code is 4711.";
    let pieces: Vec<&str> = secret.split_inclusive(' ').collect();
    for kind in BackendKind::all().filter(|kind| kind.info().family != Family::Embeddings) {
        let family = kind.info().family;
        let mut body = String::new();
        for (count, piece) in (1..).zip(&pieces) {
            let so_far = pieces[..count].concat();
            let finish = (count == pieces.len()).then_some("length");
            let frame = match family {
                Family::Native => {
                    let finish = finish.map(|reason| json!({"type": reason}));
                    json!({"text": so_far, "meta_info": {"completion_tokens": count,
                        "prompt_tokens": 3, "finish_reason": finish}})
                }
                Family::Chat => {
                    json!({"choices": [{"delta": {"content": piece}, "finish_reason": finish}]})
                }
                Family::Triton => json!({"text_output": so_far}),
                _ => json!({"choices": [{"text": piece, "finish_reason": finish}]}),
            };
            body.extend(["data: ", &frame.to_string(), "\n\n"]);
        }
        body.push_str("data: [DONE]\n\n");
        let cuts = vec![3, 100, 155, 200, 333];
        let (body, missing, hangs) = (body.into_bytes(), 0, false);
        let script = Script { status: 200, head: "", body, cuts, missing, hangs };
        let protocol = protocol(kind);
        let requests = [request(0, &protocol)];
        let (replies, file) =
            in_virtual_time(recorded(&protocol, &requests, HttpReader::Auto, move |peer| {
                script.clone().answer(peer)
            }));
        assert_eq!(replies[0].text, secret, "{kind}");
        let bytes = file.0.lock().unwrap().clone();
        let copy = File::default();
        let mut recording = Recording::open(bytes.as_slice()).unwrap();
        let redacted = redact(&mut recording, &protocol, copy.clone()).unwrap();
        assert_eq!(redacted.replaced, [0; 0], "{kind}");
        let text = String::from_utf8_lossy(&copy.0.lock().unwrap()).into_owned();
        for word in ["launch", "code", "4711"] {
            assert!(!text.contains(word), "{kind}: {text}");
        }
        let played = copy.play(&protocol);
        assert_eq!(played.exchanges[0].reply.chunks, replies[0].chunks, "{kind}");
    }
}

#[test]
fn neither_keys_nor_prompts_are_in_the_file() {
    let protocol = protocol(BackendKind::SglangOaiChat);
    let requests = [request(0, &protocol)];
    let answer = Script {
        status: 401,
        head: "location: http://peer/?key=secret-key\r\n",
        body: b"secret-key is no key, secret-key! [DONE]".to_vec(),
        cuts: Vec::new(),
        missing: 0,
        hangs: false,
    };
    let (replies, file) =
        in_virtual_time(recorded(&protocol, &requests, HttpReader::Auto, move |peer| {
            answer.clone().answer(peer)
        }));
    let bytes = file.0.lock().unwrap().clone();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("[DONE]"));
    assert!(!text.contains("secret-key") && !text.contains("the prompt of it"), "{text}");
    let failure = replies[0].failure.as_ref().unwrap();
    assert!(failure.detail.contains("*** is no key, ***!"), "{failure}");
    assert_eq!(file.play(&protocol).exchanges[0].reply, replies[0]);
}

#[test]
fn a_recording_that_was_cut_is_played_up_to_there() {
    let protocol = protocol(BackendKind::Vllm);
    let requests: Vec<Request> = (0..3).map(|id| request(id, &protocol)).collect();
    let body =
        b"data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let answer = Script {
        status: 200,
        head: "",
        body: body.to_vec(),
        cuts: vec![40],
        missing: 0,
        hangs: false,
    };
    let (replies, file) =
        in_virtual_time(recorded(&protocol, &requests, HttpReader::Auto, move |peer| {
            answer.clone().answer(peer)
        }));
    let whole = file.0.lock().unwrap().clone();
    for end in 0..whole.len() {
        let Ok(mut recording) = Recording::open(&whole[..end]) else { continue };
        let played = play(&mut recording, &protocol, |_, _, _| {}).unwrap();
        assert!(!played.is_complete());
        for exchange in played.exchanges.iter().filter(|exchange| exchange.is_over) {
            assert_eq!(exchange.reply, replies[exchange.asked.id as usize]);
        }
    }
}

#[test]
fn what_cannot_be_written_in_time_is_counted_and_harms_nobody_else() {
    use servebench_http::{Ended, Event, Head, Receipt};
    use std::borrow::Cow;

    /// A disk that takes its time until it is told to go on.
    struct Slow(Arc<Mutex<()>>, File);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            drop(self.0.lock());
            self.1.write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let (gate, file) = (Arc::<Mutex<()>>::default(), File::default());
    let out = Slow(Arc::clone(&gate), file.clone());
    let options = RecorderOptions { room: 2000, ..RecorderOptions::default() };
    let recorder = Recorder::start(out, json!({}), options, |_| {}).unwrap();
    let observer = recorder.observer();
    let closed = gate.lock().unwrap();
    let data = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n".repeat(10);
    let mut noted = 0;
    for id in 0..20 {
        let request = Request { id, body: Bytes::new(), ..Request::default() };
        let at = Stamp::from_millis(id);
        let receipt = Receipt { at, after: None, is_told: false };
        let head = Cow::Owned(Head { status: 200, ..Head::default() });
        let ended = Cow::Owned(Ended::Complete);
        for event in [
            Event::Began { at, target: None, keep_pieces: false },
            Event::Head { at, head },
            Event::Data { receipt, bytes: data.as_bytes() },
            Event::Over { at, ended, sent: None, lag: None },
        ] {
            observer.note(&request, &event);
            noted += 1;
        }
    }
    drop(closed);
    let recorded = recorder.finish(no_records).unwrap();
    let played = file.play(&protocol(BackendKind::Vllm));
    assert!(recorded.lost > 0 && recorded.lost < noted, "{recorded:?}");
    assert_eq!(played.lost, recorded.lost);
    assert!(!played.is_complete());
    assert!(played.exchanges.iter().any(|exchange| exchange.is_over));
    for exchange in played.exchanges.iter().filter(|it| it.is_over && !it.is_damaged) {
        assert_eq!(exchange.reply.chunks.len(), 10);
    }
    assert!(played.exchanges.iter().all(|it| it.is_over || it.is_damaged));
}

#[test]
fn a_full_disk_is_said_once() {
    struct Full(usize);

    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let said = Arc::new(Mutex::new(Vec::new()));
    let words = Arc::clone(&said);
    let say = move |error: &servebench_recording::RecordingError| {
        words.lock().unwrap().push(error.to_string());
    };
    let recorder = Recorder::start(Full(200), json!({}), RecorderOptions::default(), say).unwrap();
    let observer = recorder.observer();
    let much = vec![b'x'; 300_000];
    let event = servebench_http::Event::Data {
        receipt: servebench_http::Receipt { at: Stamp(0), after: None, is_told: false },
        bytes: &much,
    };
    for _ in 0..4 {
        observer.note(&Request::default(), &event);
        std::thread::yield_now();
    }
    assert!(recorder.finish(no_records).is_err());
    assert_eq!(said.lock().unwrap().len(), 1);
}
