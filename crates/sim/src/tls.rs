//! TLS from PEM files' contents.

use crate::SimError;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
/// Accepts TLS connections for [`Sim::serve_tls`](crate::Sim::serve_tls).
pub use tokio_rustls::TlsAcceptor;

/// An acceptor for [`Sim::serve_tls`](crate::Sim::serve_tls) that speaks HTTP/1.1, from a PEM
/// certificate chain and its PEM key.
pub fn tls_acceptor(certificates: &[u8], key: &[u8]) -> Result<TlsAcceptor, SimError> {
    let error = |message: String| SimError::Tls { message };
    let chain = CertificateDer::pem_slice_iter(certificates)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|cause| error(format!("certificate: {cause}")))?;
    if chain.is_empty() {
        return Err(error("no certificate in the PEM text".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|cause| error(format!("key: {cause}")))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|cause| error(cause.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|cause| error(cause.to_string()))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
