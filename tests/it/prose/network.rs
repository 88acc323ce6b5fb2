//! Ways to the server: addresses, redirects, TLS, names, keys.

use super::bench::{Bench, tokenizer};
use super::peer::{Peer, Seen, Then, Wire, usual};
use rustls::pki_types::PrivatePkcs8KeyDer;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Every helper call that there is around a run.
const ALL_CALLS: &str = "--backend sglang --ready-check-timeout-sec 30 --warmup-requests 1 \
                         --flush-cache --profile";

/// A server on whose machine the tokenizer of the cases is used.
fn with_model_info(seen: &Seen, wire: &mut Wire) -> Then {
    if seen.path.ends_with("/model_info") {
        return wire.json(200, &json!({"tokenizer_path": tokenizer("bytes")}));
    }
    usual(seen, wire)
}

/// The different paths that were called, queries aside.
fn paths(peer: &Peer) -> BTreeSet<String> {
    let path = |seen: &Arc<Seen>| seen.path.split('?').next().unwrap_or_default().to_owned();
    peer.requests().iter().map(path).collect()
}

/// What [`ALL_CALLS`] calls without `--model` and `--tokenizer`.
fn every_path(prefix: &str) -> BTreeSet<String> {
    ["v1/models", "model_info", "generate", "flush_cache", "start_profile", "stop_profile"]
        .iter()
        .chain(&["server_info"])
        .map(|path| format!("{prefix}/{path}"))
        .collect()
}

fn every_call(bench: Bench) -> Bench {
    bench.and(ALL_CALLS).without("--model").without("--tokenizer")
}

/// NET-01.
#[test]
fn every_form_of_a_base_url_reaches_the_endpoint() {
    for (form, want) in [
        ("http://HOST", "/v1/chat/completions"),
        ("http://HOST/", "/v1/chat/completions"),
        ("http://HOST/pre/fix", "/pre/fix/v1/chat/completions"),
        ("http://HOST/pre/fix/", "/pre/fix/v1/chat/completions"),
        ("http://HOST/v1", "/v1/chat/completions"),
        ("HOST", "/v1/chat/completions"),
    ] {
        let peer = Peer::start(usual);
        let url = form.replace("HOST", &format!("127.0.0.1:{}", peer.port()));
        Bench::at(&url).run().code(0);
        let [seen] = &peer.generations()[..] else { panic!("one request") };
        assert_eq!(seen.path, want, "{form}");
    }
}

#[test]
fn base_urls_that_cannot_be_kept_are_refused() {
    for (url, word) in [
        ("http://user:hunter2@127.0.0.1:1", "credentials"),
        ("http://127.0.0.1:1?api-version=2", "query"),
        ("ftp://127.0.0.1:1", "ftp"),
    ] {
        let ended = Bench::at(url).run().code(2);
        ended.says(&["--base-url", word]);
        assert!(!ended.everything().contains("hunter2"));
    }
}

#[test]
fn every_call_uses_the_same_prefix() {
    for prefix in ["", "/pre/fix"] {
        let peer = Peer::start(with_model_info);
        every_call(Bench::at(&format!("{}{prefix}/", peer.url()))).run().code(0);
        assert_eq!(paths(&peer), every_path(prefix));
    }
}

#[test]
fn host_and_port_are_an_address_too() {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer).without("--base-url").and("--host 127.0.0.1");
    bench.with("--port", &peer.port().to_string()).run().code(0);
    assert_eq!(peer.generations().len(), 1);
}

/// NET-01: redirects.
#[test]
fn redirects_are_refused_and_shown() {
    for status in [301, 302, 307, 308] {
        let peer = Peer::start(move |seen, wire| {
            if !seen.generates() {
                return usual(seen, wire);
            }
            let head = format!("HTTP/1.1 {status} Elsewhere\r\nlocation: http://127.0.0.1:1/else");
            wire.send(format!("{head}\r\ncontent-length: 0\r\n\r\n").as_bytes());
            Then::KeepAlive
        });
        let ended = Bench::of(&peer).run_with([("OPENAI_API_KEY", "k")]).code(5);
        ended.says(&[&status.to_string(), "http://127.0.0.1:1/else"]);
        assert_eq!(peer.generations().len(), 1, "{status}");
        assert_eq!(ended.line()["failures"], json!({"status": 1}));
    }
}

/// A server under TLS with a certificate that nobody knows, and the certificate.
fn secured(alpn: &[&[u8]]) -> (Peer, String) {
    let names = vec!["localhost".to_owned()];
    let certified = rcgen::generate_simple_self_signed(names).expect("a certificate");
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            let chain = vec![certified.cert.der().clone()];
            builder.with_no_client_auth().with_single_cert(chain, key.into())
        })
        .expect("a configuration");
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    (Peer::start_tls(config, with_model_info), certified.cert.pem())
}

/// NET-03 (a): waiting would not mend it.
#[test]
fn an_unknown_certificate_is_an_error_at_once() {
    let (peer, _) = secured(&[]);
    let ended = Bench::of(&peer).and("--ready-check-timeout-sec 600").run().code(4);
    ended.says(&["certificate"]);
    assert!(!ended.err.contains("not ready within"), "{}", ended.err);

    let ended = Bench::of(&peer).run().code(5);
    ended.says(&["certificate"]);
    assert_eq!(ended.line()["failures"], json!({"connect": 1}));
    assert!(peer.requests().is_empty());
}

/// NET-03 (b), (c), (e).
#[test]
fn trust_can_be_given_in_four_ways_and_holds_for_every_call() {
    let (peer, pem) = secured(&[b"h2", b"http/1.1"]);
    every_call(Bench::of(&peer)).and("--insecure").run().code(0);
    assert_eq!(paths(&peer), every_path(""));

    let bench = Bench::of(&peer);
    let file = bench.file("ca.pem", &pem);
    every_call(bench).with("--ca-file", &file).run().code(0);

    for variable in ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"] {
        let bench = every_call(Bench::of(&peer));
        let file = bench.file("ca.pem", &pem);
        bench.run_with([(variable, &file)]).code(0);
    }
    let bench = Bench::of(&peer).with("--ca-file", "no/such/ca.pem");
    bench.run().code(3).says(&["no/such/ca.pem", "--ca-file"]);
}

/// NET-03 (d).
#[test]
fn plain_http_to_a_tls_port_shows_what_the_server_says() {
    let (peer, _) = secured(&[]);
    let ended = Bench::at(&format!("http://127.0.0.1:{}", peer.port())).run().code(5);
    ended.says(&["400", "plain HTTP request"]);
}

/// The server of NET-05.
fn named() -> Peer {
    Peer::start(|seen, wire| {
        if seen.path.ends_with("/v1/models") {
            let models = [json!({"id": "ad1", "parent": "served"}), json!({"id": "served"})];
            return wire.json(200, &json!({"data": models}));
        }
        if seen.generates() && seen.json()["model"] == "wrong" {
            return wire.json(404, &json!({"message": "The model `wrong` does not exist."}));
        }
        usual(seen, wire)
    })
}

/// NET-05.
#[test]
fn the_model_is_the_first_that_is_no_adapter_or_the_one_given() {
    for (flags, want) in [
        (&[][..], "served"),
        (&["--model", "org/name", "--served-model-name", "served"], "served"),
        (&["--model", "org/name"], "org/name"),
        (&["--model", "m:tag v2/ä"], "m:tag v2/ä"),
    ] {
        let peer = named();
        let bench = Bench::of(&peer).without("--model");
        let bench = flags.chunks(2).fold(bench, |bench, pair| bench.with(pair[0], pair[1]));
        bench.run().code(0);
        assert_eq!(peer.generations()[0].json()["model"], want, "{flags:?}");
    }
}

#[test]
fn a_served_name_is_no_name_on_the_hub() {
    // The server tells of no tokenizer: an error that names the flag.
    let peer = named();
    let bench = Bench::of(&peer).and("--model served").without("--tokenizer");
    let ended = bench.run().code(3);
    ended.says(&["served", "--tokenizer"]);
    assert!(peer.generations().is_empty());

    // It tells of one: that one.
    let peer = Peer::start(with_model_info);
    let bench = Bench::of(&peer).and("--model served").without("--tokenizer");
    let ended = bench.run().code(0);
    assert_eq!(peer.calls("/model_info").len(), 1);
    ended.says(&["tokenizers/bytes"]);
}

#[test]
fn without_any_model_the_flag_is_named() {
    for (status, body) in [(200, json!({"data": []})), (404, json!({})), (200, json!("odd"))] {
        let peer = Peer::start(move |seen, wire| {
            if seen.path.ends_with("/v1/models") {
                wire.json(status, &body)
            } else {
                usual(seen, wire)
            }
        });
        let ended = Bench::of(&peer).without("--model").run().code(4);
        ended.says(&["--model", "/v1/models"]);
        Bench::of(&peer).and("--model given").run().code(0);
        assert_eq!(peer.generations()[0].json()["model"], "given");
    }
}

/// NET-05: adapters, on the route's own field.
#[test]
fn adapters_are_drawn_evenly_and_by_the_seed() {
    let choices = |backend: &str, field: &str, seed: &str| -> Vec<String> {
        let peer = named();
        let bench = Bench::of(&peer).and("--num-prompts 100 --max-concurrency 1");
        let bench = bench.and("--lora-name ad1 ad2").with("--backend", backend);
        bench.with("--seed", seed).run().code(0);
        let name = |seen: &Arc<Seen>| seen.json()[field].as_str().expect("a name").to_owned();
        peer.generations().iter().map(name).collect()
    };
    for (backend, field) in [("sglang-oai-chat", "model"), ("sglang", "lora_path")] {
        let first = choices(backend, field, "1");
        for name in ["ad1", "ad2"] {
            let count = first.iter().filter(|choice| *choice == name).count();
            assert!((30..=70).contains(&count), "{backend}: {name} {count} times");
        }
        assert_eq!(first, choices(backend, field, "1"), "{backend}");
        assert_ne!(first, choices(backend, field, "2"), "{backend}");
    }
}

/// NET-05: what the server says about a wrong model is shown, and what it would take.
#[test]
fn a_wrong_model_is_shown_with_those_there_are() {
    let peer = named();
    let ended = Bench::of(&peer).and("--model wrong --warmup-requests 1").run().code(4);
    ended.says(&["404", "The model `wrong` does not exist.", "served", "ad1"]);
    let ended = Bench::of(&peer).and("--model wrong").run().code(5);
    ended.says(&["404", "The model `wrong` does not exist."]);
}

/// NET-06: who asks for a key gets it with every call, and nobody else does.
#[test]
fn the_key_goes_with_every_call_and_nowhere_else() {
    for (variable, key, want) in [
        ("OPENAI_API_KEY", "hidden-key", "Bearer hidden-key"),
        ("API_KEY", "hidden-key", "hidden-key"),
    ] {
        let peer = Peer::start(with_model_info);
        let bench = every_call(Bench::of(&peer)).and("--header X-Team=hidden-team");
        let ended = bench.run_with([(variable, key)]).code(0);
        assert_eq!(paths(&peer), every_path(""));
        for seen in peer.requests() {
            assert_eq!(seen.header("authorization"), Some(want), "{}", seen.path);
            assert_eq!(seen.header("x-team"), Some("hidden-team"), "{}", seen.path);
        }
        assert!(!ended.everything().contains("hidden-"), "{}", ended.everything());
        assert_eq!(ended.line()["plan"]["header_names"], json!(["X-Team"]));
    }
    let peer = Peer::start(with_model_info);
    every_call(Bench::of(&peer)).run().code(0);
    assert!(peer.requests().iter().all(|seen| seen.header("authorization").is_none()));
}

#[test]
fn a_refused_key_is_said_at_once_and_not_shown() {
    let peer = Peer::start(|_, wire| wire.json(401, &json!({"error": "invalid key"})));
    let bench = Bench::of(&peer).and("--ready-check-timeout-sec 600 --header X-Team=hidden-team");
    let ended = bench.run_with([("OPENAI_API_KEY", "hidden-key")]).code(4);
    ended.says(&["401", "invalid key"]);
    assert_eq!(peer.requests().len(), 1);
    assert!(!ended.everything().contains("hidden-"), "{}", ended.err);

    let ended = Bench::of(&peer).run_with([("OPENAI_API_KEY", "hidden\nkey")]).code(2);
    assert!(!ended.everything().contains("hidden"), "{}", ended.err);
}
