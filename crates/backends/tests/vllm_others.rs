//! The backends of `vllm bench serve` beside completions and chat: when their tokens come, what fails, and
//! the forms of `openai-audio` beside those that the Python tool sent (`tests/golden/PROVENANCE_VLLM.md`).

use serde_json::{Map, Value, json};
use servebench_backends::vllm::{VllmBackend, VllmOptions};
use servebench_core::{
    Audio, End, Failure, FailureKind, Picture, Pictures, Progress, Prompt, Reply, Request, Sample,
    Stamp,
};

fn options() -> VllmOptions {
    VllmOptions { model: "m".to_owned(), ..VllmOptions::default() }
}

fn body(backend: VllmBackend, sample: &Sample) -> Value {
    let protocol = backend.protocol(backend.info().endpoint, options());
    serde_json::from_slice(&protocol.encode(sample, None)).expect("JSON")
}

/// Decodes pieces that come 10 ms apart.
fn decode(backend: VllmBackend, options: VllmOptions, pieces: &[String], end: End) -> Reply {
    let protocol = backend.protocol(backend.info().endpoint, options);
    let mut decoder = protocol.decoder(&Request::default());
    let (mut reply, mut at) = (Reply::default(), 0);
    for piece in pieces {
        at += 10;
        if decoder.feed(Stamp::from_millis(at), piece.as_bytes(), &mut reply) == Progress::Done {
            break;
        }
    }
    decoder.end(Stamp::from_millis(at), end, &mut reply);
    reply
}

fn stamps(reply: &Reply) -> Vec<u64> {
    reply.chunks.iter().map(|chunk| chunk.at.0 / 1_000_000).collect()
}

fn failure(reply: &Reply) -> Option<FailureKind> {
    reply.failure.as_ref().map(|failure| failure.kind)
}

fn event(value: &Value) -> String {
    let name = value["type"].as_str().unwrap_or_default();
    format!("event: {name}\ndata: {value}\n\n")
}

fn respond(events: &[Value]) -> Reply {
    let events: Vec<String> = events.iter().map(event).collect();
    decode(VllmBackend::OpenaiResponses, options(), &events, End::Complete)
}

fn delta(kind: &str, text: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "delta": text, "logprobs": []})
}

fn completed(output: u32) -> Value {
    let usage = json!({"input_tokens": 7, "output_tokens": output,
        "input_tokens_details": {"cached_tokens": 3}});
    json!({"type": "response.completed", "response": {"object": "response",
        "status": "completed", "error": null, "usage": usage}})
}

#[test]
fn a_response_is_timed_by_its_deltas() {
    let reply = respond(&[
        json!({"type": "response.created", "response": {"error": null, "usage": null}}),
        json!({"type": "response.output_item.added", "item": {"content": []}}),
        delta("reasoning_text", "so"),
        delta("output_text", "a\u{2028}"),
        delta("output_text", ""),
        delta("function_call_arguments", "{}"),
        json!({"type": "response.output_text.done", "text": "a"}),
        completed(4),
    ]);
    assert_eq!(stamps(&reply), [30, 40, 50, 60]);
    assert_eq!((&*reply.text, failure(&reply)), ("soa\u{2028}", None));
    let counts = (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens);
    assert_eq!(counts, (Some(7), Some(4), Some(3)));
    assert_eq!(reply.finish_reason.as_deref(), Some("completed"));
}

#[test]
fn an_incomplete_response_is_a_success_with_its_reason() {
    let end = json!({"type": "response.incomplete", "response": {"status": "incomplete",
        "incomplete_details": {"reason": "max_output_tokens"}}});
    let reply = respond(&[delta("output_text", "a"), end]);
    assert_eq!((failure(&reply), stamps(&reply)), (None, vec![10]));
    assert_eq!(reply.finish_reason.as_deref(), Some("max_output_tokens"));
}

#[test]
fn a_response_fails_by_error_then_by_silence_then_by_its_missing_end() {
    let text = delta("output_text", "a");
    let no = json!({"code": "server_error", "message": "no"});
    let failed = json!({"type": "response.failed", "response": {"error": no}});
    for (events, kind, words) in [
        (vec![text.clone(), failed], FailureKind::Server, "no (code server_error)"),
        (vec![json!({"type": "error", "message": "no", "code": "x"})], FailureKind::Server, "no"),
        (vec![json!({"type": "error"})], FailureKind::Server, ""),
        (vec![json!({"type": "any", "error": {"message": "no"}})], FailureKind::Server, "no"),
        (vec![completed(0)], FailureKind::Empty, "no token"),
        (vec![completed(5)], FailureKind::Empty, "no token"),
        (vec![text], FailureKind::Truncated, ""),
    ] {
        let reply = respond(&events);
        assert_eq!(failure(&reply), Some(kind), "{events:?}");
        let detail = reply.failure.expect("a failure").detail;
        assert!(detail.contains(words), "{detail}");
    }
    // A type of its own and `"error": null` are no error.
    let fine = json!({"type": "response.custom", "error": null});
    assert_eq!(failure(&respond(&[fine, delta("output_text", "a"), completed(1)])), None);
}

#[test]
fn a_response_may_come_whole() {
    let whole = json!({"object": "response", "status": "completed", "error": null,
        "output": [{"type": "reasoning"}, {"content": [{"type": "output_text", "text": "ab"}]}],
        "usage": {"output_tokens": 2}});
    let pieces = [whole.to_string()];
    let reply = decode(VllmBackend::OpenaiResponses, options(), &pieces, End::Complete);
    assert_eq!((failure(&reply), &*reply.text), (None, "ab"));
    assert_eq!((stamps(&reply), reply.completion_tokens), (vec![10], Some(2)));
}

#[test]
fn a_transcription_keeps_the_prompts_length() {
    let frame = |text: &str, end: Value, tokens: u32| {
        let choice = json!({"delta": {"content": text}, "finish_reason": end});
        let usage = json!({"prompt_tokens": 99, "completion_tokens": tokens});
        format!("data: {}\n\n", json!({"choices": [choice], "usage": usage}))
    };
    let pieces = [
        frame("a", Value::Null, 1),
        frame("", Value::Null, 2),
        frame("b", json!("stop"), 4),
        "data: [DONE]\n\n".to_owned(),
    ];
    let reply = decode(VllmBackend::OpenaiAudio, options(), &pieces, End::Complete);
    assert_eq!((stamps(&reply), &*reply.text), (vec![10, 20, 30], "ab"));
    assert_eq!((reply.prompt_tokens, reply.completion_tokens), (None, Some(4)));
    assert_eq!(failure(&reply), None);
}

#[test]
fn an_answer_ends_with_its_last_byte() {
    let usage = json!({"prompt_tokens": 5, "total_tokens": 5});
    for (backend, answer) in [
        (VllmBackend::VllmPooling, json!({"data": [{"data": [[0.5]]}], "usage": usage})),
        (VllmBackend::VllmPooling, json!({"data": [{"data": "AAAA"}], "usage": usage})),
        (VllmBackend::VllmRerank, json!({"results": [{"relevance_score": 0.5}], "usage": usage})),
        (VllmBackend::OpenaiEmbeddingsClip, json!({"data": [{"embedding": []}], "usage": usage})),
        (VllmBackend::InfinityEmbeddings, json!({"data": [{"embedding": [1]}], "usage": usage})),
    ] {
        let text = answer.to_string();
        let (begin, rest) = text.split_at(9);
        let pieces = [begin.to_owned(), rest.to_owned(), String::new()];
        let reply = decode(backend, options(), &pieces, End::Complete);
        assert_eq!(failure(&reply), None, "{answer}");
        assert_eq!(reply.last_line, Some(Stamp::from_millis(20)));
        assert_eq!((reply.prompt_tokens, reply.completion_tokens), (Some(5), Some(0)));
        assert!(reply.chunks.is_empty());
        let reset = End::Broken(Failure::new(FailureKind::Reset, "reset"));
        let reply = decode(backend, options(), &pieces[..1], reset);
        assert_eq!(failure(&reply), Some(FailureKind::Reset));
    }
}

#[test]
fn an_answer_without_what_was_asked_for_fails() {
    for (backend, answer, words) in [
        (VllmBackend::VllmPooling, r#"{"data": [{"embedding": [1]}]}"#, "no pooled data"),
        (VllmBackend::VllmRerank, r#"{"data": [{"relevance_score": 1}]}"#, "no score"),
        (VllmBackend::OpenaiEmbeddings, r#"{"data": []}"#, "no embedding"),
        (VllmBackend::OpenaiEmbeddings, r#"{"error": "no"}"#, "no"),
        (VllmBackend::VllmRerank, "no", "not JSON"),
        (VllmBackend::VllmRerank, "", "empty"),
    ] {
        let reply = decode(backend, options(), &[answer.to_owned()], End::Complete);
        let detail = reply.failure.expect("a failure").detail;
        assert!(detail.contains(words), "{detail}");
    }
}

#[test]
fn bytes_are_counted_by_a_header_or_not_at_all() {
    let asked = VllmOptions {
        extra_body: Map::from_iter([("encoding_format".to_owned(), json!("bytes"))]),
        ..options()
    };
    let pieces = ["\u{1}".to_owned(), "not JSON".to_owned()];
    let reply = decode(VllmBackend::OpenaiEmbeddings, asked.clone(), &pieces, End::Complete);
    assert_eq!((failure(&reply), reply.prompt_tokens), (None, None));
    assert_eq!(reply.last_line, Some(Stamp::from_millis(20)));
    let reply = decode(VllmBackend::OpenaiEmbeddings, asked.clone(), &[], End::Complete);
    assert_eq!(failure(&reply), Some(FailureKind::Empty));
    for (options, want) in [(asked, Some(12)), (options(), None)] {
        let protocol = VllmBackend::OpenaiEmbeddings.protocol("/v1/embeddings", options);
        let mut reply = Reply::default();
        let mut decoder = protocol.decoder(&Request::default());
        decoder.metadata("no JSON", &mut reply);
        decoder.metadata(r#"{"usage": {"prompt_tokens": 12}}"#, &mut reply);
        assert_eq!(reply.prompt_tokens, want);
    }
}

fn pictured(text: &str) -> Sample {
    let picture = Picture { uri: "data:x".into(), width: 1, height: 1 };
    let pictures = Pictures { list: vec![picture], tokens: None };
    Sample { prompt: text.into(), pictures: Some(Box::new(pictures)), ..Sample::default() }
}

#[test]
fn pictures_stand_where_the_model_wants_them() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:x"}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let asked = "Represent the given image with the following question: why";
    for (backend, number, want) in [
        (VllmBackend::OpenaiChat, None, json!([text("why"), image])),
        (VllmBackend::OpenaiEmbeddingsChat, Some(1), json!([text("why"), image])),
        (VllmBackend::OpenaiEmbeddingsClip, Some(1), json!([text(""), image])),
        (VllmBackend::OpenaiEmbeddingsVlm2Vec, Some(1), json!([image, text(asked)])),
        (
            VllmBackend::OpenaiEmbeddingsVlm2Vec,
            Some(2),
            json!([image, text("Represent the given image.")]),
        ),
        (
            VllmBackend::OpenaiEmbeddingsVlm2Vec,
            None,
            json!([image, text("Represent the given image.")]),
        ),
    ] {
        let mut sample = pictured("why");
        backend.adapt(&mut sample, number);
        assert_eq!(body(backend, &sample)["messages"][0]["content"], want, "{backend} {number:?}");
        assert_eq!(backend.refuses(&sample), None);
        let mut plain = Sample { prompt: "why".into(), ..Sample::default() };
        backend.adapt(&mut plain, number);
        assert_eq!(body(backend, &plain)["messages"][0]["content"], json!([text("why")]));
    }
}

#[test]
fn infinity_takes_a_text_or_one_image() {
    let mut sample = pictured("why");
    let plain = body(VllmBackend::InfinityEmbeddings, &sample);
    assert_eq!(plain, json!({"model": "m", "input": "why"}));
    VllmBackend::InfinityEmbeddingsClip.adapt(&mut sample, None);
    let image = body(VllmBackend::InfinityEmbeddingsClip, &sample);
    assert_eq!(image, json!({"model": "m", "input": "data:x", "modality": "image"}));
    sample.pictures = None;
    assert!(VllmBackend::InfinityEmbeddings.refuses(&sample).is_some());
}

#[test]
fn rows_that_cannot_be_sent_are_told() {
    let texts = |texts: &[&str]| Sample {
        prompt: Prompt::Texts(texts.iter().map(|&text| text.to_owned()).collect()),
        ..Sample::default()
    };
    let rerank = VllmBackend::VllmRerank;
    assert!(
        rerank.refuses(&texts(&["q"])).is_some() && rerank.refuses(&"q".into_sample()).is_some()
    );
    let sample = texts(&["q", "a", "b"]);
    assert_eq!((rerank.refuses(&sample), rerank.input_sequences(&sample)), (None, 2));
    let want = json!({"model": "m", "query": "q", "documents": ["a", "b"],
        "truncate_prompt_tokens": -1});
    assert_eq!(body(rerank, &sample), want);
    assert_eq!(VllmBackend::OpenaiEmbeddings.input_sequences(&sample), 3);
    assert_eq!(VllmBackend::OpenaiEmbeddingsChat.input_sequences(&sample), 1);
    assert!(VllmBackend::OpenaiAudio.refuses(&sample).is_some());
}

trait IntoSample {
    fn into_sample(self) -> Sample;
}

impl IntoSample for &str {
    fn into_sample(self) -> Sample {
        Sample { prompt: self.into(), ..Sample::default() }
    }
}

/// A field of a form: name, file name, type, value.
type Field = (String, Option<String>, Option<String>, Vec<u8>);

/// The fields of a form.
fn fields(form: &[u8], content_type: &str) -> Vec<Field> {
    let boundary = content_type.split_once("boundary=").expect("a boundary").1;
    let text: String = form.iter().map(|&byte| char::from(byte)).collect();
    let end = format!("--{boundary}--\r\n");
    let start = format!("--{boundary}\r\n");
    let parts = text.strip_suffix(&end).expect("the end").split(&start);
    let read = |part: &str| {
        let (head, value) = part.split_once("\r\n\r\n").expect("a head");
        let value = value.strip_suffix("\r\n").expect("a line end");
        let quoted = |key: &str| {
            let behind = head.split_once(&format!("{key}=\""))?.1;
            Some(behind.split_once('"').expect("a quote").0.replace("%22", "\""))
        };
        let kind = head.split_once("Content-Type: ").map(|(_, kind)| kind.to_owned());
        let value = value.chars().map(|c| u8::try_from(c).expect("a byte")).collect();
        (quoted(" name").expect("a name"), quoted("filename"), kind, value)
    };
    parts.skip(1).map(read).collect()
}

#[test]
fn forms_are_those_of_the_python_tool() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/vllm_backends.json");
    let golden: Value =
        serde_json::from_str(&std::fs::read_to_string(path).expect("the file")).expect("JSON");
    let cases = golden["cases"].as_array().expect("cases").iter();
    let is_audio =
        |case: &&Value| case["name"].as_str().is_some_and(|it| it.starts_with("openai-audio"));
    let mut compared = 0;
    for case in cases.filter(is_audio) {
        let (asked, exchange) = (&case["arguments"], &case["exchanges"][0]);
        let length =
            |key: &str| asked[key].as_u64().and_then(|n| u32::try_from(n).ok()).expect("a length");
        let recorded = exchange["form"].as_array().expect("fields");
        // A boundary's beginning and bytes that are no text.
        let mut bytes = b"\r\n--servebench\r\n\r\n\xff\0".to_vec();
        bytes.resize(
            usize::try_from(recorded[0]["bytes"].as_u64().expect("a size")).expect("small"),
            7,
        );
        let options = VllmOptions {
            model: asked["model"].as_str().expect("a model").to_owned(),
            ignore_eos: asked["ignore_eos"] == true,
            extra_body: asked["extra_body"].as_object().cloned().unwrap_or_default(),
            ..VllmOptions::default()
        };
        let audio = Audio {
            name: "a \"quoted\" name.wav".into(),
            kind: Some("audio/x-wav".into()),
            bytes: bytes.clone().into(),
            seconds: 0.25,
        };
        let sample = Sample {
            prompt_len: length("prompt_len"),
            output_len: length("output_len"),
            audio: Some(Box::new(audio)),
            ..Sample::default()
        };
        let path = exchange["path"].as_str().expect("a path");
        assert!(VllmBackend::OpenaiAudio.accepts(path));
        let protocol = VllmBackend::OpenaiAudio.protocol(path, options.clone());
        let sent = fields(&protocol.encode(&sample, None), protocol.content_type());
        let ((name, file, kind, value), others) = sent.split_first().expect("a file");
        assert_eq!((&**name, file.as_deref()), ("file", Some("a \"quoted\" name.wav")));
        assert_eq!(json!(kind), recorded[0]["type"]);
        assert_eq!((recorded[0]["name"].as_str(), value), (Some("file"), &bytes));
        let sent: Vec<_> = others
            .iter()
            .map(|(name, _, _, value)| (&**name, String::from_utf8_lossy(value).into_owned()))
            .collect();
        // Values as JSON has them, where the Python tool sends its own literals.
        let own = |text: &str| match text {
            "True" => "true".to_owned(),
            "['a']" => r#"["a"]"#.to_owned(),
            "{'b': True}" => r#"{"b":true}"#.to_owned(),
            text => text.to_owned(),
        };
        let want: Vec<_> = recorded[1..]
            .iter()
            .map(|field| {
                (
                    field["name"].as_str().expect("a name"),
                    own(field["value"].as_str().expect("a value")),
                )
            })
            .collect();
        assert_eq!(sent, want, "{}", case["name"]);
        let pieces: Vec<String> =
            serde_json::from_value(exchange["reply"]["writes"].clone()).expect("texts");
        let reply = decode(VllmBackend::OpenaiAudio, options, &pieces, End::Complete);
        assert_eq!(
            (failure(&reply), &json!(reply.text)),
            (None, &case["output"]["generated_text"])
        );
        assert_eq!(json!(reply.chunks.len() - 1), case["output"]["gaps"]);
        compared += 1;
    }
    assert_eq!(compared, 3);
}
