//! Plays the scripts below `cases/` into decoders, in exact virtual time.

use serde_json::{Map, Value, json};
use servebench_backends::{BackendKind, GenerateOptions};
use servebench_core::{
    Chunk, Decode, End, Failure, FailureKind, Progress, Reply, Request, Sample, Stamp,
};
use servebench_testkit::{BodyEnd, Case, Script, cases};

/// Output tokens that every request asks for, as in the executable cases.
const OUTPUT_LEN: u32 = 4;

fn all_cases() -> Vec<Case> {
    let files = [
        include_str!("cases/framing.md"),
        include_str!("cases/tokens.md"),
        include_str!("cases/failures.md"),
    ];
    files.iter().flat_map(|text| cases(text).expect("readable cases")).collect()
}

fn decoder(case: &Case) -> Box<dyn Decode> {
    let kind = match case.expect["api"].as_str() {
        Some("chat") => BackendKind::SglangOaiChat,
        Some("completions") => BackendKind::SglangOai,
        Some("native") => BackendKind::Sglang,
        other => panic!("unknown api {other:?}"),
    };
    let args: Vec<&str> = case
        .expect
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut options = GenerateOptions {
        ignore_eos: !args.contains(&"ignore_eos=false"),
        stream: case.script.streams(),
        ..GenerateOptions::default()
    };
    if args.contains(&"n=2") {
        let (key, value) = if case.expect["api"] == "native" {
            ("sampling_params", json!({"n": 2}))
        } else {
            ("n", json!(2))
        };
        options.extra_body.insert(key.to_owned(), value);
    }
    let protocol = kind.protocol(options);
    let sample = Sample { output_len: OUTPUT_LEN, ..Sample::default() };
    let body = protocol.encode(&sample, None);
    protocol.decoder(&Request { body, output_len: OUTPUT_LEN, ..Request::default() })
}

/// Decodes what the script sends, the way a transport does.
fn play(script: &Script, mut decoder: Box<dyn Decode>) -> Reply {
    let mut reply = Reply { keep_pieces: true, ..Reply::default() };
    for write in &script.writes {
        let at = Stamp::from_millis(write.ms);
        if decoder.feed(at, &write.bytes, &mut reply) == Progress::Done {
            decoder.end(at, End::Complete, &mut reply);
            return reply;
        }
    }
    let (ms, end) = script.end.expect("a script that ends");
    let broken = |kind, detail| End::Broken(Failure::new(kind, detail));
    let end = match end {
        BodyEnd::Proper => End::Complete,
        BodyEnd::Cut => broken(FailureKind::Truncated, "closed early"),
        BodyEnd::Reset => broken(FailureKind::Reset, "connection reset"),
        BodyEnd::Hang => broken(FailureKind::Timeout, "silent for too long"),
    };
    decoder.end(Stamp::from_millis(ms), end, &mut reply);
    reply
}

fn ms(stamp: Option<Stamp>) -> Value {
    stamp.map_or(Value::Null, |stamp| json!(stamp.0 / 1_000_000))
}

/// Gaps between successive chunks of the same choice, in milliseconds.
fn gaps(chunks: &[Chunk]) -> Vec<u64> {
    let gap = |(place, chunk): (usize, &Chunk)| {
        let before = chunks[..place].iter().rfind(|earlier| earlier.choice == chunk.choice)?;
        Some((chunk.at.0 - before.at.0) / 1_000_000)
    };
    chunks.iter().enumerate().filter_map(gap).collect()
}

/// What the record holds under a key of an `expect` block.
fn actual(key: &str, reply: &Reply) -> Value {
    let chunks: Vec<Chunk> = reply.chunks.iter().collect();
    match key {
        "success" => json!(reply.failure.is_none()),
        "text" => json!(reply.text),
        "text_len" => json!(reply.text.chars().count()),
        "ttft_ms" => ms(reply.first_token()),
        "latency_ms" => ms(reply.last_token()),
        "sglang_latency_ms" => ms(reply.last_line),
        "itl_ms" => json!(gaps(&chunks)),
        "per_token_ms" => chunks[1..]
            .iter()
            .zip(gaps(&chunks))
            .flat_map(|(chunk, gap)| {
                let tokens = chunk.tokens.expect("a count");
                vec![gap / u64::from(tokens); tokens as usize]
            })
            .collect(),
        "choice_ms" => {
            json!(chunks.iter().map(|c| (c.choice, c.at.0 / 1_000_000)).collect::<Vec<_>>())
        }
        "tokens" => json!(chunks.iter().map(|c| c.tokens).collect::<Vec<_>>()),
        // Without the server's count, the tokenizer of the cases has one token for each byte.
        "output_len" => json!(reply.completion_tokens.map_or(reply.text.len(), |n| n as usize)),
        "prompt_len" => json!(reply.prompt_tokens),
        "cached" => json!(reply.cached_tokens),
        "accept_length" => json!(reply.rare().accept_length),
        other => panic!("unknown key {other}"),
    }
}

fn check(name: &str, expect: &Map<String, Value>, reply: &Reply, timed: bool) {
    for (key, want) in expect {
        match key.as_str() {
            "api" | "args" | "tokenizer" | "server_info" | "_v" => {}
            "error_contains" => {
                let error = reply.failure.as_ref().map(ToString::to_string).unwrap_or_default();
                let want = want.as_str().expect("a string").to_lowercase();
                assert!(error.to_lowercase().contains(&want), "{name}: error is `{error}`");
            }
            "ttft_ms_range" if timed => {
                let ttft = actual("ttft_ms", reply).as_u64().expect("a first token");
                let bound = |place: usize| want[place].as_u64().expect("a bound");
                assert!((bound(0)..=bound(1)).contains(&ttft), "{name}: ttft {ttft}");
            }
            "tokens" | "cached" => assert_eq!(&actual(key, reply), want, "{name}: {key}"),
            key if !timed && key.contains("_ms") => {}
            key => assert_eq!(&actual(key, reply), want, "{name}: {key}"),
        }
    }
}

#[test]
fn every_case_gives_its_record() {
    let cases = all_cases();
    assert!(cases.len() > 80, "only {} cases", cases.len());
    for case in cases {
        let reply = play(&case.script, decoder(&case));
        check(&case.name, &case.expect, &reply, true);
    }
}

#[test]
fn cuts_change_stamps_only() {
    for case in all_cases() {
        if case.script.body().len() > 10_000 {
            continue;
        }
        let want = play(&case.script, decoder(&case));
        // Every byte alone, then every pair of parts with one cut.
        for only in std::iter::once(None).chain((1..case.script.body().len()).map(Some)) {
            let mut place = 0;
            let script = case.script.recut(|| {
                place += 1;
                only.is_none_or(|only| only == place)
            });
            let reply = play(&script, decoder(&case));
            check(&case.name, &case.expect, &reply, false);
            assert_eq!(reply.text, want.text, "{}", case.name);
            assert_eq!(reply.failure, want.failure, "{}", case.name);
            let bare = |reply: &Reply| -> Vec<_> {
                reply.chunks.iter().map(|chunk| (chunk.tokens, chunk.choice)).collect()
            };
            assert_eq!(bare(&reply), bare(&want), "{}", case.name);
        }
    }
}
