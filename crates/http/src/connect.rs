//! How connections are made. The one place that opens sockets.

use crate::BaseUrl;
use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A byte stream to a server.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

/// Opens byte streams to one server: a socket in production, an in-memory pipe in tests.
pub trait Connect: Clone + 'static {
    /// Opens one.
    fn connect(&self) -> impl Future<Output = io::Result<Box<dyn Stream>>>;
}

/// What a connection to a server needs beyond its address.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Certificates of further authorities to trust, in PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// Trust any certificate.
    pub insecure: bool,
}

/// Opens TCP (and, for `https`, TLS) connections to one server, whose name was looked up once.
#[derive(Clone)]
pub struct TcpConnect {
    addresses: Arc<[SocketAddr]>,
    /// The address that answered last: `localhost` often has one that nobody listens on.
    preferred: Arc<AtomicUsize>,
    #[cfg(feature = "tls")]
    tls: Option<(tokio_rustls::TlsConnector, rustls::pki_types::ServerName<'static>)>,
}

impl Debug for TcpConnect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpConnect").field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl TcpConnect {
    /// Looks up the server's name: the only lookup of a run.
    pub async fn resolve(base: &BaseUrl, tls: &TlsOptions) -> io::Result<Self> {
        let addresses: Arc<[SocketAddr]> =
            tokio::net::lookup_host((base.host(), base.port())).await?.collect();
        if addresses.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("no address for `{}`", base.host()),
            ));
        }
        let preferred = Arc::default();
        #[cfg(feature = "tls")]
        return Ok(Self { addresses, preferred, tls: crate::tls::connector(base, tls)? });
        #[cfg(not(feature = "tls"))]
        {
            let _ = tls;
            if base.is_tls() {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "built without the `tls` feature: https is not spoken",
                ));
            }
            Ok(Self { addresses, preferred })
        }
    }

    async fn tcp(&self) -> io::Result<TcpStream> {
        let mut last = None;
        let first = self.preferred.load(Relaxed);
        let count = self.addresses.len();
        for index in (0..count).map(|offset| (first + offset) % count) {
            match TcpStream::connect(self.addresses[index]).await {
                Ok(stream) => {
                    self.preferred.store(index, Relaxed);
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::NotFound.into()))
    }
}

impl Connect for TcpConnect {
    async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let stream = self.tcp().await?;
        #[cfg(feature = "tls")]
        if let Some((connector, name)) = &self.tls {
            return Ok(Box::new(connector.connect(name.clone(), stream).await?));
        }
        Ok(Box::new(stream))
    }
}

type Opening = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>>>>;

/// A connector made of a closure: for in-memory connections.
#[derive(Clone)]
pub struct FnConnect(Arc<dyn Fn() -> Opening>);

impl FnConnect {
    /// Wraps `open`.
    pub fn new<F>(open: impl Fn() -> F + 'static) -> Self
    where
        F: Future<Output = io::Result<Box<dyn Stream>>> + 'static,
    {
        Self(Arc::new(move || Box::pin(open())))
    }
}

impl Debug for FnConnect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FnConnect")
    }
}

impl Connect for FnConnect {
    fn connect(&self) -> impl Future<Output = io::Result<Box<dyn Stream>>> {
        (self.0)()
    }
}
