//! How connections are made. The one place that opens sockets.

use crate::BaseUrl;
use crate::meter::Tap;
use servebench_core::Clock;
use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// A byte stream to a server.
pub trait Stream: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Stream for T {}

/// Opens byte streams to one server: a socket in production, an in-memory pipe in tests.
pub trait Connect: Clone + 'static {
    /// Opens one, whose reads are stamped by `tap`: at the socket, below all that is spoken over it.
    fn connect<C: Clock + Unpin>(&self, tap: Tap<C>) -> impl Future<Output = io::Result<Opened>>;
}

/// A stream that was opened.
pub struct Opened {
    /// The stream, below HTTP.
    pub stream: Box<dyn Stream>,
    /// How long the TLS handshake took, if there was one.
    pub tls: Option<Duration>,
}

impl Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").field("tls", &self.tls).finish_non_exhaustive()
    }
}

/// Where the times at which bytes were received come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stamps {
    /// The kernel, where it tells; else as [`User`](Self::User).
    #[default]
    Kernel,
    /// The time of the read that returned them.
    User,
}

/// What a connection to a server needs beyond its address.
#[derive(Clone, Debug, Default)]
pub struct TlsOptions {
    /// Certificates of further authorities to trust, in PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// Trust any certificate.
    pub insecure: bool,
}

/// Opens connections to one server: TCP, and TLS for `https`, to a name that was looked up once; or
/// those of a Unix socket, whose receive times are always those of the reads, since the kernel stamps no
/// bytes there.
#[derive(Clone)]
pub struct TcpConnect {
    addresses: Arc<[SocketAddr]>,
    /// Where the Unix socket is that takes their place.
    socket: Option<Arc<Path>>,
    /// The address that answered last: `localhost` often has one that nobody listens on.
    preferred: Arc<AtomicUsize>,
    stamps: Stamps,
    lookup: Duration,
    #[cfg(feature = "tls")]
    tls: Option<(tokio_rustls::TlsConnector, rustls::pki_types::ServerName<'static>)>,
}

impl Debug for TcpConnect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpConnect")
            .field("addresses", &self.addresses)
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl TcpConnect {
    /// Looks up the server's name: the only lookup of a run.
    #[expect(clippy::disallowed_methods, reason = "a lookup lies before any run and its clock")]
    pub async fn resolve(base: &BaseUrl, tls: &TlsOptions) -> io::Result<Self> {
        let began = Instant::now();
        let socket: Option<Arc<Path>> = base.socket().map(Arc::from);
        let addresses: Arc<[SocketAddr]> = match &socket {
            Some(_) => Arc::default(),
            None => tokio::net::lookup_host((base.host(), base.port())).await?.collect(),
        };
        if addresses.is_empty() && socket.is_none() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("no address for `{}`", base.host()),
            ));
        }
        let (preferred, stamps, lookup) = (Arc::default(), Stamps::default(), began.elapsed());
        #[cfg(feature = "tls")]
        return Ok(Self {
            addresses,
            socket,
            preferred,
            stamps,
            lookup,
            tls: crate::tls::connector(base, tls)?,
        });
        #[cfg(not(feature = "tls"))]
        {
            let _ = tls;
            if base.is_tls() {
                return Err(io::Error::new(
                    io::ErrorKind::Unsupported,
                    "built without the `tls` feature: https is not spoken",
                ));
            }
            Ok(Self { addresses, socket, preferred, stamps, lookup })
        }
    }

    /// Takes receive times from there.
    #[must_use]
    pub fn with_stamps(self, stamps: Stamps) -> Self {
        Self { stamps, ..self }
    }

    /// How long the lookup of the server's name took.
    pub fn lookup(&self) -> Duration {
        self.lookup
    }

    /// Where receive times really come from: the kernel tells none of a Unix socket, nor outside Linux.
    pub fn stamps(&self) -> Stamps {
        let untold = self.socket.is_some() || cfg!(not(target_os = "linux"));
        if untold { Stamps::User } else { self.stamps }
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
    #[expect(
        clippy::disallowed_methods,
        reason = "connections are also opened before the run's clock"
    )]
    async fn connect<C: Clock + Unpin>(&self, tap: Tap<C>) -> io::Result<Opened> {
        if let Some(path) = &self.socket {
            return Ok(Opened { stream: tap.stamp_reads(unix(path).await?), tls: None });
        }
        let socket = self.tcp().await?;
        let stream = match self.stamps {
            Stamps::Kernel => tap.stamp_arrivals(socket),
            Stamps::User => tap.stamp_reads(socket),
        };
        #[cfg(feature = "tls")]
        if let Some((connector, name)) = &self.tls {
            let began = Instant::now();
            let stream = Box::new(connector.connect(name.clone(), stream).await?);
            return Ok(Opened { stream, tls: Some(began.elapsed()) });
        }
        Ok(Opened { stream, tls: None })
    }
}

#[cfg(unix)]
async fn unix(path: &Path) -> io::Result<tokio::net::UnixStream> {
    tokio::net::UnixStream::connect(path).await
}

#[cfg(not(unix))]
async fn unix(_path: &Path) -> io::Result<TcpStream> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no Unix sockets"))
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
    async fn connect<C: Clock + Unpin>(&self, tap: Tap<C>) -> io::Result<Opened> {
        Ok(Opened { stream: tap.stamp_reads((self.0)().await?), tls: None })
    }
}
