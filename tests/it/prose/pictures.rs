//! Requests with pictures.

use super::bench::{Bench, count};
use super::peer::{Peer, usual};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

fn pictures(peer: &Peer, flags: &str) -> Bench {
    Bench::of(peer).and("--dataset-name image").and(flags)
}

/// DATA-08 (a), (c), (d).
#[test]
fn pictures_come_before_the_text_as_what_they_are() {
    for (format, magic, size) in
        [("png", &b"\x89PNG"[..], "1x1"), ("jpeg", b"\xff\xd8\xff", "1x400")]
    {
        let peer = Peer::start(usual);
        let flags = format!("--image-count 2 --image-resolution {size} --image-format {format}");
        pictures(&peer, &flags).run().code(0);
        let body = peer.generations().first().expect("a request").json();
        let parts = body["messages"][0]["content"].as_array().expect("parts").clone();
        let kinds: Vec<&Value> = parts.iter().map(|part| &part["type"]).collect();
        assert_eq!(kinds, ["image_url", "image_url", "text"]);
        for part in &parts[..2] {
            let uri = part["image_url"]["url"].as_str().expect("a URL");
            let head = format!("data:image/{format};base64,");
            let bytes = BASE64_STANDARD.decode(uri.strip_prefix(&head).expect("its kind"));
            assert!(bytes.expect("base64").starts_with(magic), "{format}");
        }
    }
    let peer = Peer::start(usual);
    let none = pictures(&peer, "--image-count 0").run().code(2);
    none.says(&["--image-count"]);
    assert!(peer.generations().is_empty());
}

/// DATA-08 (b).
#[test]
fn a_server_that_takes_fewer_pictures_is_quoted() {
    let peer = Peer::start(|seen, wire| {
        if seen.generates() {
            return wire.json(400, &json!({"error": {"message": "at most 1 image per prompt"}}));
        }
        usual(seen, wire)
    });
    let flags = "--image-count 3 --image-resolution 8x8 --num-prompts 4";
    let ended = pictures(&peer, flags).run().code(5);
    ended.says(&["at most 1 image per prompt", "4 of 4 requests failed"]);
    assert_eq!(
        (count(&ended.line()["failed"]), &ended.line()["failures"]),
        (4, &json!({"status": 4}))
    );
}

/// DATA-08 (e): made before the clock starts, and sent with its length.
#[test]
fn a_body_of_many_megabytes_is_sent_with_its_length() {
    let peer = Peer::start(usual);
    pictures(&peer, "--image-count 4 --image-resolution 1080p --image-format png").run().code(0);
    let seen = peer.generations();
    let request = seen.first().expect("a request");
    assert!(request.body.len() > 20 << 20, "{}", request.body.len());
    let length = request.header("content-length").and_then(|length| length.parse().ok());
    assert_eq!(length, Some(request.body.len()));
    assert_eq!((request.header("transfer-encoding"), request.header("expect")), (None, None));
}
