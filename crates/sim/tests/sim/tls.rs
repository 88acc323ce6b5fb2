//! HTTPS over loopback.

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use servebench_sim::{Sim, SimConfig, tls_acceptor};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

const METRICS: &[u8] = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n";
const HEALTH: &[u8] = b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

fn connector(root: CertificateDer<'static>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(root).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

#[tokio::test]
async fn tls_serves_and_resets() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let key = made.signing_key.serialize_pem();
    let acceptor = tls_acceptor(made.cert.pem().as_bytes(), key.as_bytes()).expect("usable");
    let listener = Sim::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false).expect("listens");
    let address = listener.local_addr().expect("bound");
    let sim = Sim::new(SimConfig::default());
    let connector = connector(made.cert.der().clone());
    let exchange = async |request: &[u8]| {
        let socket = TcpStream::connect(address).await.expect("connects");
        let name = ServerName::try_from("localhost").expect("a name");
        let mut stream = connector.connect(name, socket).await.expect("shakes hands");
        stream.write_all(request).await.expect("sends");
        let mut reply = Vec::new();
        let ended = stream.read_to_end(&mut reply).await;
        (String::from_utf8_lossy(&reply).into_owned(), ended.map_err(|error| error.kind()))
    };
    let client = async {
        // A client that does not speak TLS harms nobody.
        let mut plain = TcpStream::connect(address).await.expect("connects");
        plain.write_all(HEALTH).await.expect("sends");
        let (reply, ended) = exchange(HEALTH).await;
        assert!(reply.starts_with("HTTP/1.1 200 OK") && ended.is_ok(), "{reply} {ended:?}");
        let faults = r#"{"faults": [{"when": {"path": "/metrics"}, "action": {"reset": {}}}]}"#;
        sim.configure(faults.as_bytes()).expect("fine");
        exchange(METRICS).await
    };
    tokio::select! {
        () = sim.serve_tls(listener, acceptor) => unreachable!("it serves until it is dropped"),
        (_, ended) = client => assert_eq!(ended, Err(ErrorKind::ConnectionReset)),
    }
}

#[test]
fn unusable_certificates_are_named() {
    let message = |cert: &str, key: &str| {
        let error = tls_acceptor(cert.as_bytes(), key.as_bytes()).err().expect("refused");
        error.to_string()
    };
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    let (cert, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    assert!(message("", &key).contains("no certificate"));
    assert!(message(&cert, "").contains("key"));
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("made");
    assert!(!message(&cert, &other.signing_key.serialize_pem()).is_empty());
}
