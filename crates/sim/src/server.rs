//! The simulated server: over one connection, a listener, or a thread of its own.

use crate::front;
use crate::link::{Link, WatchedIo};
use crate::state::{State, Stats};
use crate::sync::lock;
use crate::truth::TruthRecord;
use crate::{SimConfig, SimError};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Connections that may wait to be accepted: as many as a benchmark opens at once.
const BACKLOG: u32 = 16_384;

/// A simulated server. Clones share everything.
#[derive(Clone, Debug)]
pub struct Sim {
    state: Arc<State>,
}

impl Sim {
    /// A server with this configuration, which [`SimConfig::check`] should have passed.
    ///
    /// Its time starts now, on tokio's clock: where that is paused, make it inside the runtime.
    pub fn new(config: SimConfig) -> Self {
        Self { state: Arc::new(State::new(config)) }
    }

    /// The start of its time: what the nanoseconds in the truth log count from.
    pub fn epoch(&self) -> Instant {
        self.state.epoch
    }

    /// The configuration in force.
    pub fn config(&self) -> SimConfig {
        self.state.live().config.clone()
    }

    /// Changes fields of the configuration, as `POST /sim/config` does. Requests already received
    /// keep the old one.
    pub fn configure(&self, json: &[u8]) -> Result<(), SimError> {
        self.state.patch(json)
    }

    /// The truth about the generation requests that have ended, in the order of their ends.
    pub fn truth(&self) -> Vec<TruthRecord> {
        lock(&self.state.truth).records().to_vec()
    }

    /// The counts.
    pub fn stats(&self) -> Stats {
        self.state.stats()
    }

    /// Forgets the truth log and sets the counts to zero, as `POST /sim/reset` does.
    pub fn reset(&self) {
        self.state.reset();
    }

    /// Serves one connection until either side ends it. Dropping the future drops the connection.
    ///
    /// Works on any I/O object, so over `tokio::io::duplex` in virtual time too. An injected reset
    /// shows as a plain end here; [`Sim::serve`] makes it a real one, [`Sim::serve_with`] what the caller
    /// makes of it.
    pub async fn serve_connection<I>(&self, io: I)
    where
        I: AsyncRead + AsyncWrite + Unpin,
    {
        self.serve_with(io, |_| {}).await;
    }

    /// As [`Sim::serve_connection`]; `abort` is called before the connection is dropped if that is to
    /// look like a reset to the peer.
    pub async fn serve_with<I>(&self, io: I, abort: fn(&I))
    where
        I: AsyncRead + AsyncWrite + Unpin,
    {
        let state = &self.state;
        let _open = Open::new(state);
        let link = Arc::new(Link::new());
        let service = service_fn(|request| {
            let (state, link) = (Arc::clone(state), Arc::clone(&link));
            async move { front::answer(&state, &link, request).await }
        });
        let io = TokioIo::new(WatchedIo::new(io, Arc::clone(&link), abort));
        let mut connection = pin!(http1::Builder::new().serve_connection(io, service));
        let mut closed = pin!(link.closed());
        // A response that wants the connection closed says so while the connection is polled, so
        // that is when to look. How it ends else is the peer's doing or an injected fault: nothing
        // to report.
        poll_fn(|cx| {
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(());
            }
            if link.is_closing() { closed.as_mut().poll(cx) } else { Poll::Pending }
        })
        .await;
    }

    /// Accepts and serves connections, until dropped with all of them.
    pub async fn serve(&self, listener: TcpListener) {
        self.accept(listener, |sim, stream| async move {
            sim.serve_with(stream, reset_tcp).await;
        })
        .await;
    }

    /// As [`Sim::serve`], over TLS. Connections whose handshake fails are dropped.
    #[cfg(feature = "tls")]
    pub async fn serve_tls(&self, listener: TcpListener, acceptor: tokio_rustls::TlsAcceptor) {
        self.accept(listener, |sim, stream| {
            let acceptor = acceptor.clone();
            async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    sim.serve_with(stream, |tls| reset_tcp(tls.get_ref().0)).await;
                }
            }
        })
        .await;
    }

    /// As [`Sim::serve`], at a Unix socket. An injected reset shows as a plain end.
    #[cfg(unix)]
    pub async fn serve_unix(&self, listener: tokio::net::UnixListener) {
        let mut connections = JoinSet::new();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let sim = self.clone();
                    connections.spawn(async move { sim.serve_with(stream, |_| {}).await });
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
            while connections.try_join_next().is_some() {}
        }
    }

    async fn accept<F>(&self, listener: TcpListener, serve: impl Fn(Self, TcpStream) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut connections = JoinSet::new();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // Fails only on a connection that is already gone, which serving finds out.
                    drop(stream.set_nodelay(true));
                    connections.spawn(serve(self.clone(), stream));
                }
                // Out of descriptors, or a connection gone before it was accepted.
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
            while connections.try_join_next().is_some() {}
        }
    }

    /// Listens at `address` with a long backlog. Several listeners made with `shared` may have the
    /// same port, each for a thread of its own.
    ///
    /// Must be called inside a tokio runtime.
    pub fn listen(address: SocketAddr, shared: bool) -> Result<TcpListener, SimError> {
        let listen = || -> io::Result<TcpListener> {
            let socket = match address {
                SocketAddr::V4(_) => TcpSocket::new_v4(),
                SocketAddr::V6(_) => TcpSocket::new_v6(),
            }?;
            #[cfg(unix)]
            socket.set_reuseaddr(true)?;
            #[cfg(target_os = "linux")]
            socket.set_reuseport(shared)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)
        };
        listen().map_err(|source| SimError::Bind { address, source })
    }

    /// Serves on a free loopback port from a thread of its own, until the handle is dropped.
    pub fn spawn_in_thread(&self) -> Result<SimHandle, SimError> {
        let sim = self.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let (report, started) = mpsc::sync_channel(1);
        let serve = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(source) => {
                    drop(report.send(Err(SimError::Thread { source })));
                    return;
                }
            };
            runtime.block_on(async move {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
                let bound = Self::listen(address, false).and_then(|listener| {
                    let local = listener.local_addr();
                    let local = local.map_err(|source| SimError::Bind { address, source })?;
                    Ok((listener, local))
                });
                match bound {
                    Ok((listener, local)) => {
                        drop(report.send(Ok(local)));
                        tokio::select! {
                            () = sim.serve(listener) => {}
                            _ = stopped => {}
                        }
                    }
                    Err(error) => {
                        drop(report.send(Err(error)));
                    }
                }
            });
        };
        let thread = std::thread::Builder::new()
            .name("servebench-sim".to_owned())
            .spawn(serve)
            .map_err(|source| SimError::Thread { source })?;
        let gone = |_| SimError::Thread { source: io::Error::other("the thread ended early") };
        let addr = started.recv().map_err(gone)??;
        Ok(SimHandle { addr, sim: self.clone(), stop: Some(stop), thread: Some(thread) })
    }
}

fn reset_tcp(stream: &TcpStream) {
    // Fails only on a connection that is already gone.
    drop(stream.set_zero_linger());
}

/// Counts a connection while it is open.
struct Open<'a>(&'a State);

impl<'a> Open<'a> {
    fn new(state: &'a State) -> Self {
        state.counts.connections.fetch_add(1, Relaxed);
        state.counts.open_connections.fetch_add(1, Relaxed);
        Self(state)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.counts.open_connections.fetch_sub(1, Relaxed);
    }
}

/// A simulated server on a thread of its own. Dropping it stops the server.
#[derive(Debug)]
pub struct SimHandle {
    /// Where it listens.
    pub addr: SocketAddr,
    /// The server.
    pub sim: Sim,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl SimHandle {
    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }
}

impl Drop for SimHandle {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed; there is nobody left to tell.
            drop(thread.join());
        }
    }
}
