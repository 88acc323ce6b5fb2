//! How connections are made. The one place that opens sockets.

use crate::meter::Tap;
use crate::{BaseUrl, Proxy, tunnel};
use servebench_core::Clock;
use socket2::{SockRef, TcpKeepalive};
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

    /// What is spoken over them.
    fn spoken(&self) -> Spoken {
        Spoken::Http1
    }
}

/// What is spoken over a connector's streams.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Spoken {
    /// HTTP/1.1 with the server.
    #[default]
    Http1,
    /// HTTP/1.1 with a proxy that hands requests on.
    Forwarded(Proxy),
    /// HTTP/2 with the server.
    Http2,
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

/// Whom to trust under TLS, and as whom to come.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// Certificates of further authorities to trust, in PEM.
    pub ca_pem: Option<Vec<u8>>,
    /// Trust any certificate.
    pub insecure: bool,
    /// The client's own certificate, for servers that ask for one.
    pub identity: Option<Identity>,
}

impl Debug for TlsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsOptions")
            .field("ca_pem", &self.ca_pem.is_some())
            .field("insecure", &self.insecure)
            .field("identity", &self.identity)
            .finish()
    }
}

/// A client's certificate and its key.
#[derive(Clone)]
pub struct Identity {
    /// The certificate, and those of the authorities between it and a known one, in PEM.
    pub certificate_pem: Vec<u8>,
    /// Its private key, in PEM.
    pub key_pem: Vec<u8>,
}

impl Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

/// How a server is reached, beyond its address.
#[derive(Clone, Debug, Default)]
pub struct Way {
    /// Trust and certificates, for `https`.
    pub tls: TlsOptions,
    /// The proxy before it.
    pub proxy: Option<Proxy>,
    /// Speak HTTP/2: agreed on under TLS, taken for granted without.
    pub http2: bool,
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
    http2: bool,
    proxy: Option<Proxy>,
    /// What the proxy is to connect to, where requests are not for its own eyes.
    tunnel: Option<Arc<str>>,
    #[cfg(feature = "tls")]
    tls: Option<(tokio_rustls::TlsConnector, rustls::pki_types::ServerName<'static>)>,
}

impl Debug for TcpConnect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TcpConnect")
            .field("addresses", &self.addresses)
            .field("socket", &self.socket)
            .field("proxy", &self.proxy)
            .finish_non_exhaustive()
    }
}

impl TcpConnect {
    /// Looks up the server's name: the only lookup of a run.
    pub async fn resolve(base: &BaseUrl, tls: &TlsOptions) -> io::Result<Self> {
        Self::resolve_by(base, &Way { tls: tls.clone(), ..Way::default() }).await
    }

    /// The same for a server that is reached some other way. With a proxy it is the proxy's name that is
    /// looked up; the proxy knows the server's.
    #[expect(clippy::disallowed_methods, reason = "a lookup lies before any run and its clock")]
    pub async fn resolve_by(base: &BaseUrl, way: &Way) -> io::Result<Self> {
        let began = Instant::now();
        let socket: Option<Arc<Path>> = base.socket().map(Arc::from);
        let proxy = way.proxy.clone().filter(|_| socket.is_none());
        let (host, port) = match &proxy {
            Some(proxy) => (proxy.host(), proxy.port()),
            None => (base.host(), base.port()),
        };
        let addresses: Arc<[SocketAddr]> = match &socket {
            Some(_) => Arc::default(),
            None => tokio::net::lookup_host((host, port)).await?.collect(),
        };
        if addresses.is_empty() && socket.is_none() {
            let message = format!("no address for `{host}`");
            return Err(io::Error::new(io::ErrorKind::NotFound, message));
        }
        let sealed = base.is_tls() || way.http2;
        let tunnel = proxy.as_ref().filter(|_| sealed).map(|_| tunnel::destination(base).into());
        #[cfg(feature = "tls")]
        let tls = crate::tls::connector(base, &way.tls, way.http2)?;
        #[cfg(not(feature = "tls"))]
        if base.is_tls() {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "built without the `tls` feature: https is not spoken",
            ));
        }
        Ok(Self {
            addresses,
            socket,
            preferred: Arc::default(),
            stamps: Stamps::default(),
            lookup: began.elapsed(),
            http2: way.http2,
            proxy,
            tunnel,
            #[cfg(feature = "tls")]
            tls,
        })
    }

    /// The proxy before the server.
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
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
                    // A machine that vanished is noticed, where no limit of the run notices it before.
                    SockRef::from(&stream).set_tcp_keepalive(&probes())?;
                    return Ok(stream);
                }
                Err(error) => last = Some(error),
            }
        }
        let error = last.unwrap_or_else(|| io::ErrorKind::NotFound.into());
        Err(match &self.proxy {
            Some(proxy) => io::Error::new(
                error.kind(),
                format!("the proxy {proxy}: {error} (--no-proxy goes without it)"),
            ),
            None => error,
        })
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
        let mut stream = match self.stamps {
            Stamps::Kernel => tap.stamp_arrivals(socket),
            Stamps::User => tap.stamp_reads(socket),
        };
        if let (Some(proxy), Some(destination)) = (&self.proxy, &self.tunnel) {
            tunnel::open(&mut stream, proxy, destination).await?;
        }
        #[cfg(feature = "tls")]
        if let Some((connector, name)) = &self.tls {
            let began = Instant::now();
            let stream = connector.connect(name.clone(), stream).await.map_err(in_tls)?;
            if self.http2 && !crate::tls::agreed_on_http2(&stream) {
                let message = "the server does not agree to HTTP/2 (leave --http2 out)";
                return Err(io::Error::new(io::ErrorKind::Unsupported, message));
            }
            return Ok(Opened { stream: Box::new(stream), tls: Some(began.elapsed()) });
        }
        Ok(Opened { stream, tls: None })
    }

    fn spoken(&self) -> Spoken {
        match &self.proxy {
            _ if self.http2 => Spoken::Http2,
            Some(proxy) if self.tunnel.is_none() => Spoken::Forwarded(proxy.clone()),
            _ => Spoken::Http1,
        }
    }
}

/// How a quiet connection is asked for a sign of life: after a minute, and given up two minutes later.
fn probes() -> TcpKeepalive {
    let probes = TcpKeepalive::new().with_time(Duration::from_mins(1));
    let probes = probes.with_interval(Duration::from_secs(20));
    #[cfg(not(any(target_os = "windows", target_os = "openbsd")))]
    let probes = probes.with_retries(6);
    probes
}

/// Says that it was TLS, where the system's words do not.
#[cfg(feature = "tls")]
fn in_tls(error: io::Error) -> io::Error {
    if error.to_string().contains("NoApplicationProtocol") {
        let message = "the server does not agree to HTTP/2 (leave --http2 out)";
        return io::Error::new(io::ErrorKind::Unsupported, message);
    }
    if error.kind() == io::ErrorKind::UnexpectedEof {
        return io::Error::new(error.kind(), "the connection was closed during the TLS handshake");
    }
    error
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
pub struct FnConnect {
    open: Arc<dyn Fn() -> Opening>,
    spoken: Spoken,
}

impl FnConnect {
    /// Wraps `open`.
    pub fn new<F>(open: impl Fn() -> F + 'static) -> Self
    where
        F: Future<Output = io::Result<Box<dyn Stream>>> + 'static,
    {
        Self { open: Arc::new(move || Box::pin(open())), spoken: Spoken::default() }
    }

    /// The same with something else spoken over its streams.
    #[must_use]
    pub fn speaking(self, spoken: Spoken) -> Self {
        Self { spoken, ..self }
    }
}

impl Debug for FnConnect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FnConnect")
    }
}

impl Connect for FnConnect {
    async fn connect<C: Clock + Unpin>(&self, tap: Tap<C>) -> io::Result<Opened> {
        Ok(Opened { stream: tap.stamp_reads((self.open)().await?), tls: None })
    }

    fn spoken(&self) -> Spoken {
        self.spoken.clone()
    }
}
