//! Ways to the server that are not straight: proxies, client certificates, HTTP/2, IPv6; and what comes
//! of limits and retries.

use super::bench::{Bench, Ended, tokenizer};
use super::peer::{Peer, Then, pause, usual};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bench_vllm::run as run_vllm;
use flate2::Compression;
use flate2::write::GzEncoder;
use rcgen::{CertifiedKey, KeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::json;
use servebench_cli::{Environment, Io};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Every helper call there is around a run, and two requests.
const ALL_CALLS: &str = "--ready-check-timeout-sec 30 --warmup-requests 1 --backend sglang --flush-cache --num-prompts 2";

/// Carries the bytes of each connection to another address, once `greet` has agreed to it.
fn relay(
    listener: TcpListener,
    to: SocketAddr,
    greet: impl Fn(&mut TcpStream) -> bool + Send + 'static,
) -> SocketAddr {
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { continue };
            if !greet(&mut client) {
                continue;
            }
            let Ok(server) = TcpStream::connect(to) else { continue };
            for (mut from, mut to) in [(&client, &server), (&server, &client)]
                .map(|(a, b)| (a.try_clone().expect("a socket"), b.try_clone().expect("a socket")))
            {
                thread::spawn(move || {
                    let mut room = [0; 4096];
                    while let Ok(count @ 1..) = from.read(&mut room) {
                        if to.write_all(&room[..count]).is_err() {
                            break;
                        }
                    }
                    // The other side may have left already.
                    drop(to.shutdown(Shutdown::Write));
                });
            }
        }
    });
    address
}

fn loopback() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").expect("a free port")
}

fn here(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The head of a request.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
        head.push(byte[0]);
    }
    String::from_utf8_lossy(&head).into_owned()
}

/// The header that a proxy is to be shown.
fn credentials(user: &str, password: &str) -> String {
    format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}")))
}

#[test]
fn every_call_goes_through_the_proxy_of_the_environment_and_says_so() {
    let proxy = Peer::start(usual);
    let url = format!("http://me:hidden-pass@127.0.0.1:{}", proxy.port());
    // An address for documentation: nobody has it, and nobody asks for it.
    let bench = || Bench::at("http://192.0.2.1:8000/pre").and(ALL_CALLS);
    let variables = [("HTTP_PROXY", url.as_str()), ("OPENAI_API_KEY", "hidden-key")];
    let ended = bench().run_with(variables).code(0);
    let requests = proxy.requests();
    assert!(requests.len() >= 6, "{requests:?}");
    for seen in &requests {
        assert!(seen.path.starts_with("http://192.0.2.1:8000/pre/"), "{}", seen.path);
        assert_eq!(seen.header("host"), Some("192.0.2.1:8000"));
        assert_eq!(seen.header("proxy-authorization"), Some(&*credentials("me", "hidden-pass")));
        assert_eq!(seen.header("authorization"), Some("Bearer hidden-key"));
    }
    ended.says(&[&format!("through the proxy 127.0.0.1:{} (HTTP_PROXY)", proxy.port())]);
    assert!(!ended.everything().contains("hidden"), "{}", ended.everything());

    // The hyper reader says the same.
    bench().and("--http-reader hyper").run_with(variables).code(0);
    assert!(proxy.generations().iter().all(|seen| seen.path.starts_with("http://192.0.2.1:8000/")));
}

#[test]
fn a_server_on_this_machine_is_reached_without_any_proxy() {
    for variable in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        let peer = Peer::start(usual);
        // Nobody listens there, and the second is none that is spoken to.
        for proxy in ["http://127.0.0.1:9", "socks5://127.0.0.1:9"] {
            let ended = Bench::of(&peer).run_with([(variable, proxy)]).code(0);
            assert!(!ended.err.contains("proxy"), "{}", ended.err);
        }
    }
    let bench = Bench::at("http://192.0.2.1:8000");
    let ended = bench.run_with([("ALL_PROXY", "socks5://me:hidden-pass@127.0.0.1:9")]).code(2);
    ended.says(&["ALL_PROXY", "`socks5`", "--no-proxy"]);
    assert!(!ended.everything().contains("hidden"));
}

#[test]
fn a_proxy_that_refuses_is_what_the_failure_names() {
    let bench = Bench::at("http://192.0.2.1:8000");
    let ended = bench.run_with([("HTTP_PROXY", "http://127.0.0.1:9")]).code(5);
    ended.says(&["x connect, the first is request 0: the proxy 127.0.0.1:9: ", "--no-proxy"]);
}

/// A certificate for this name, and its key.
fn certified(name: &str) -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("a certificate")
}

/// A server's configuration, with a client's certificate that is asked for, and protocols offered.
fn config(
    server: &CertifiedKey<KeyPair>,
    client: Option<&CertifiedKey<KeyPair>>,
    protocols: &[&[u8]],
) -> ServerConfig {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("versions");
    let builder = match client {
        None => builder.with_no_client_auth(),
        Some(client) => {
            let mut roots = RootCertStore::empty();
            roots.add(client.cert.der().clone()).expect("a root");
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
        }
    };
    let key = PrivatePkcs8KeyDer::from(server.signing_key.serialize_der());
    let chain = vec![server.cert.der().clone()];
    let mut config = builder.with_single_cert(chain, key.into()).expect("a configuration");
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    config
}

#[test]
fn https_goes_through_a_proxy_that_sees_nothing_of_it() {
    let own = certified("model.test");
    let peer = Peer::start_tls(config(&own, None, &[]), usual);
    let heads = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&heads);
    let proxy = relay(loopback(), here(peer.port()), move |client| {
        kept.lock().expect("a list").push(head(client));
        client.write_all(b"HTTP/1.1 200 Connected\r\nvia: test\r\n\r\n").is_ok()
    });
    let url = format!("me:hidden-pass@{proxy}");
    let bench = Bench::at("https://model.test:8443").and(ALL_CALLS);
    let file = bench.file("ca.pem", &own.cert.pem());
    let bench = bench.with("--ca-file", &file);
    let ended = bench.run_with([("https_proxy", &*url), ("OPENAI_API_KEY", "hidden-key")]).code(0);
    ended.says(&[&format!("through the proxy {proxy} (https_proxy)")]);
    assert!(!ended.everything().contains("hidden"), "{}", ended.everything());
    assert_eq!(peer.generations().len(), 3);
    for seen in peer.requests() {
        assert_eq!(seen.header("host"), Some("model.test:8443"));
        assert_eq!(seen.header("authorization"), Some("Bearer hidden-key"));
        assert_eq!(seen.header("proxy-authorization"), None, "that is the proxy's");
    }
    let heads = heads.lock().expect("a list");
    assert!(heads.len() >= 4, "{heads:?}");
    for head in heads.iter() {
        assert!(head.starts_with("CONNECT model.test:8443 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(&credentials("me", "hidden-pass")), "{head}");
        assert!(!head.contains("hidden-key"), "{head}");
    }
}

#[test]
fn what_a_proxy_refuses_is_said() {
    let refuses = relay(loopback(), here(9), |client| {
        let head = head(client);
        let answer = format!("HTTP/1.1 407 Who are you\r\nx-seen: {}\r\n\r\n", head.len());
        drop(client.write_all(answer.as_bytes()));
        false
    });
    let url = format!("http://me:hidden-pass@{refuses}");
    let ended = Bench::at("https://model.test").run_with([("HTTPS_PROXY", &*url)]).code(5);
    ended.says(&[&format!("the proxy {refuses} answered CONNECT with 407 Who are you")]);
    assert_eq!(ended.line()["failures"], json!({"connect": 1}));
    assert!(!ended.everything().contains("hidden"), "{}", ended.everything());
}

#[test]
fn a_client_shows_its_certificate_where_it_is_asked_for() {
    let (server, client) = (certified("localhost"), certified("client"));
    let peer = Peer::start_tls(config(&server, Some(&client), &[]), usual);
    let bench = || Bench::of(&peer).and(ALL_CALLS).and("--insecure");
    let (certificate, key) = (client.cert.pem(), client.signing_key.serialize_pem());

    let apart = bench();
    let files = [("cert.pem", &certificate), ("key.pem", &key)];
    let [cert_file, key_file] = files.map(|(name, text)| apart.file(name, text));
    apart.with("--client-cert", &cert_file).with("--client-key", &key_file).run().code(0);
    let together = bench();
    let file = together.file("both.pem", &format!("{certificate}{key}"));
    together.with("--client-cert", &file).run().code(0);

    let ended = Bench::of(&peer).and("--insecure").run().code(5);
    ended.says(&["CertificateRequired"]);
    for (name, text, word) in [
        ("none.pem", "", "client certificate"),
        ("alone.pem", &*certificate, "client key"),
        ("broken.pem", "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n", "client"),
    ] {
        let bench = bench();
        let file = bench.file(name, text);
        bench.with("--client-cert", &file).run().code(4).says(&[word]);
    }
    let ended = bench().with("--client-cert", "no/such.pem").run().code(3);
    ended.says(&["no/such.pem", "--client-cert"]);
}

/// A server that speaks HTTP/2 alone, and how many connections and requests it has seen.
fn serve_http2(tls: Option<ServerConfig>) -> (SocketAddr, Arc<Mutex<(usize, usize)>>) {
    let listener = loopback();
    let address = listener.local_addr().expect("an address");
    let counts = Arc::new(Mutex::new((0, 0)));
    let seen = Arc::clone(&counts);
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async move {
            listener.set_nonblocking(true).expect("a socket");
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            let tls = tls.map(|config| tokio_rustls::TlsAcceptor::from(Arc::new(config)));
            let mut tasks = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, tls) = (Arc::clone(&seen), tls.clone());
                tasks.spawn(async move {
                    seen.lock().expect("counts").0 += 1;
                    match tls {
                        None => answer_http2(stream, &seen).await,
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                answer_http2(stream, &seen).await;
                            }
                        }
                    }
                });
            }
        });
    });
    (address, counts)
}

async fn answer_http2<S>(stream: S, seen: &Mutex<(usize, usize)>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let path = request.uri().path().to_owned();
        let body = if path.ends_with("/v1/models") {
            json!({"data": [{"id": "m"}]}).to_string()
        } else if path.ends_with("/v1/chat/completions") {
            seen.lock().expect("counts").1 += 1;
            let chunk = json!({"choices": [{"index": 0, "delta": {"content": "a"},
                "finish_reason": "length"}], "usage": {"prompt_tokens": 8, "completion_tokens": 1}});
            format!("data: {chunk}\n\ndata: [DONE]\n\n")
        } else {
            "{}".to_owned()
        };
        let response = http::Response::new(());
        let sent = respond.send_response(response, false);
        if let Ok(mut stream) = sent {
            drop(stream.send_data(body.into_bytes().into(), true));
        }
    }
}

#[test]
fn http2_is_spoken_where_it_is_asked_for() {
    let flags =
        "--http2 --num-prompts 30 --ready-check-timeout-sec 30 --warmup-requests 1 --workers 1";
    let own = certified("localhost");
    for tls in [false, true] {
        let config = tls.then(|| config(&own, None, &[b"h2"]));
        let (address, counts) = serve_http2(config);
        let scheme = if tls { "https://localhost" } else { "http://127.0.0.1" };
        let bench = Bench::at(&format!("{scheme}:{}", address.port())).and(flags).and("--insecure");
        let ended = bench.run().code(0);
        let line = ended.line();
        assert_eq!((&line["completed"], &line["reconnects"]), (&json!(30), &json!(0)));
        assert_eq!(line["plan"]["network"]["http2"], true);
        let counts = *counts.lock().expect("counts");
        assert_eq!(counts.1, 31);
        // One for the warm-up, one for the run, and those of the calls around it.
        assert!(counts.0 <= 6, "{counts:?}");
    }
}

#[test]
fn a_server_without_http2_is_told_at_once() {
    let flags = "--http2 --ready-check-timeout-sec 600 --insecure";
    let own = certified("localhost");
    for protocols in [&[][..], &[&b"http/1.1"[..]]] {
        let peer = Peer::start_tls(config(&own, None, protocols), usual);
        let ended = Bench::of(&peer).and(flags).run().code(4);
        ended.says(&["does not agree to HTTP/2"]);
    }
    let peer = Peer::start(usual);
    let ended = Bench::of(&peer).and(flags).run().code(4);
    ended.says(&["does not speak HTTP/2"]);
    let ended = Bench::of(&peer).and("--http2 --http-reader lean").run().code(2);
    ended.says(&["--http2", "--http-reader"]);
}

#[test]
fn an_ipv6_address_is_one_with_or_without_brackets() {
    let peer = Peer::start(usual);
    let listener = TcpListener::bind("[::1]:0").expect("IPv6 on the loopback device");
    let address = relay(listener, here(peer.port()), |_| true);
    let port = address.port().to_string();
    Bench::at(&format!("http://[::1]:{port}/pre")).and(ALL_CALLS).run().code(0);
    let requests = peer.requests();
    assert!(requests.len() >= 6);
    assert!(requests.iter().all(|seen| seen.path.starts_with("/pre/")));
    assert!(requests.iter().all(|seen| seen.header("host") == Some(&format!("[::1]:{port}"))));
    for host in ["::1", "[::1]"] {
        let bench = Bench::of(&peer).without("--base-url").with("--host", host);
        bench.with("--port", &port).run().code(0);
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("memory");
    encoder.finish().expect("memory")
}

#[test]
fn compressed_answers_are_understood_in_calls_and_in_the_load() {
    let peer = Peer::start(|seen, wire| {
        assert_eq!(seen.header("accept-encoding"), None, "none is asked for");
        let body = if seen.path.ends_with("/v1/models") {
            json!({"data": [{"id": "served"}]}).to_string()
        } else if seen.generates() {
            let chunk = json!({"choices": [{"index": 0, "delta": {"content": "a"},
                "finish_reason": "length"}], "usage": {"prompt_tokens": 8, "completion_tokens": 1}});
            format!("data: {chunk}\n\ndata: [DONE]\n\n")
        } else {
            return usual(seen, wire);
        };
        let body = gzip(body.as_bytes());
        let head = format!("content-encoding: gzip\r\ncontent-length: {}", body.len());
        wire.send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n").as_bytes());
        wire.send(&body);
        Then::KeepAlive
    });
    let ended =
        Bench::of(&peer).without("--model").and("--ready-check-timeout-sec 9").run().code(0);
    assert_eq!(peer.generations()[0].json()["model"], "served");
    assert_eq!(ended.line()["generated_texts"], json!(["a"]));
}

/// NET-01 for the calls around a run.
#[test]
fn a_redirected_call_is_an_error_at_once() {
    let peer = Peer::start(|_, wire| {
        let head = "HTTP/1.1 308 Elsewhere\r\nlocation: http://127.0.0.1:9/login";
        wire.send(format!("{head}\r\ncontent-length: 0\r\n\r\n").as_bytes());
        Then::KeepAlive
    });
    let bench = Bench::of(&peer).and("--ready-check-timeout-sec 600");
    let ended = bench.run_with([("OPENAI_API_KEY", "hidden-key")]).code(4);
    ended.says(&["308", "redirect to http://127.0.0.1:9/login refused", "--base-url"]);
    assert_eq!(peer.requests().len(), 1);
}

/// A server that says nothing to what is measured.
fn silent() -> Peer {
    Peer::start(|seen, wire| if seen.generates() { Then::Hang } else { usual(seen, wire) })
}

#[test]
fn limits_end_what_takes_too_long_and_name_their_flag() {
    let silent = silent();
    let drips = Peer::start(|_, wire| {
        wire.begin();
        for _ in 0..400 {
            wire.chunk(": alive\n\n");
            pause(Duration::from_millis(5));
        }
        wire.end()
    });
    for (peer, flags, flag) in [
        (&silent, "--first-byte-timeout 0.2", "--first-byte-timeout"),
        (&silent, "--idle-timeout 0.2", "--idle-timeout"),
        (
            &drips,
            "--request-timeout 0.3 --idle-timeout 0 --first-byte-timeout 9",
            "--request-timeout",
        ),
    ] {
        let ended = Bench::of(peer).and(flags).run().code(5);
        assert_eq!(ended.line()["failures"], json!({"timeout": 1}), "{flags}");
        ended.says(&[&format!("({flag})")]);
    }
    let ended = Bench::of(&silent).and("--connect-timeout -1").run().code(2);
    ended.says(&["--connect-timeout"]);
}

/// A server that resets the first two connections before one byte of an answer, then answers.
fn reluctant() -> Peer {
    let resets = Mutex::new(2);
    Peer::start(move |seen, wire| {
        let mut left = resets.lock().expect("a count");
        if seen.generates() && *left > 0 {
            *left -= 1;
            return Then::Reset;
        }
        usual(seen, wire)
    })
}

/// ERR-07: what is tried again is counted, and its time is in the latency.
#[test]
fn retries_are_made_when_asked_for_and_counted() {
    let peer = reluctant();
    let ended = Bench::of(&peer).run().code(5);
    assert_eq!(ended.line()["retries"], 0);
    assert_eq!(peer.generations().len(), 1, "nothing is repeated without being asked");

    let peer = reluctant();
    let ended = Bench::of(&peer).and("--retries 2").run().code(0);
    let line = ended.line();
    assert_eq!((&line["completed"], &line["retries"]), (&json!(1), &json!(2)));
    assert!(line["mean_ttft_ms"].as_f64().expect("a number") >= 300.0, "{}", line["mean_ttft_ms"]);
    assert!(ended.out.contains("Retries:                                 2"), "{}", ended.out);
    assert_eq!(peer.generations().len(), 3);
}

/// The other command has the same flags.
#[test]
fn bench_vllm_knows_limits_and_ways_too() {
    let run = |peer: &Peer, flags: &str| -> Ended {
        let (io, captured) = Io::captured();
        let url = peer.url();
        let tokenizer = tokenizer("bytes");
        let words = format!(
            "serve --backend openai-chat --endpoint /v1/chat/completions --base-url {url} --model m \
             --tokenizer {} --dataset-name random --random-input-len 8 --random-output-len 4 \
             --num-prompts 1 --disable-tqdm {flags}",
            tokenizer.display()
        );
        let words = words.split_whitespace().map(Into::into).collect();
        let (code, failure) = match run_vllm(words, &Environment::default(), &io) {
            Ok(code) => (code, String::new()),
            Err(failure) => (failure.code, failure.to_string()),
        };
        let err = captured.err() + &failure;
        Ended { code: code.number().into(), out: captured.out(), err, lines: Vec::new() }
    };
    let silent = silent();
    let ended = run(&silent, "--first-byte-timeout 0.2");
    assert_eq!(ended.code, 5, "{}{}", ended.out, ended.err);
    ended.says(&["(--first-byte-timeout)"]);
    let ended = run(&reluctant(), "--retries 2 --no-proxy");
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
}
