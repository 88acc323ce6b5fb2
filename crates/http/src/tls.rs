//! TLS through rustls with ring.

use crate::{BaseUrl, Identity, TlsOptions};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::io;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How HTTP/2 is called where protocols are negotiated.
const H2: &[u8] = b"h2";

/// The connector for an `https` base URL, `None` for `http`. With `http2` nothing else is offered.
pub(crate) fn connector(
    base: &BaseUrl,
    options: &TlsOptions,
    http2: bool,
) -> io::Result<Option<(TlsConnector, ServerName<'static>)>> {
    if !base.is_tls() {
        return Ok(None);
    }
    let invalid = |message: String| io::Error::new(io::ErrorKind::InvalidInput, message);
    let name = ServerName::try_from(base.host().to_owned())
        .map_err(|error| invalid(format!("`{}` is no name for TLS: {error}", base.host())))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    let builder = if options.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(TrustAnything(provider)))
    } else {
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(pem) = &options.ca_pem {
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate =
                    certificate.map_err(|error| invalid(format!("CA file: {error}")))?;
                roots.add(certificate).map_err(|error| invalid(format!("CA file: {error}")))?;
            }
        }
        builder.with_root_certificates(roots)
    };
    let mut config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some(Identity { certificate_pem, key_pem }) => {
            let chain = CertificateDer::pem_slice_iter(certificate_pem)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| invalid(format!("client certificate: {error}")))?;
            if chain.is_empty() {
                return Err(invalid("client certificate: the file holds none in PEM".to_owned()));
            }
            // Errors of the key's reader tell its kind, never its bytes.
            let key = PrivateKeyDer::from_pem_slice(key_pem)
                .map_err(|error| invalid(format!("client key: {error}")))?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(|error| invalid(format!("client certificate: {error}")))?
        }
    };
    if http2 {
        config.alpn_protocols = vec![H2.to_vec()];
    }
    Ok(Some((TlsConnector::from(Arc::new(config)), name)))
}

/// Whether the server has agreed to HTTP/2, where that was offered.
pub(crate) fn agreed_on_http2<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(H2)
}

/// Accepts any certificate: what a user asks for with `--insecure`.
#[derive(Debug)]
struct TrustAnything(Arc<CryptoProvider>);

impl ServerCertVerifier for TrustAnything {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
