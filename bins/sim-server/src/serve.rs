//! Listens, serves, and leaves on a signal.

use crate::Exit;
use crate::args::Args;
use anyhow::{Context, Error, Result};
use servebench_sim::{Sim, SimConfig, SimError};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::SocketAddr;
use std::path::Path;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Serves until SIGINT or SIGTERM, then writes the truth log.
pub(crate) fn serve(
    args: &Args,
    config: SimConfig,
    out: &mut dyn Write,
) -> Result<(), (Exit, Error)> {
    let tls = Tls::read(args).map_err(|error| (Exit::BadFile, error))?;
    // Too few descriptors show as connections that are not accepted; what can be had is taken.
    drop(rlimit::increase_nofile_limit(u64::MAX));
    let sim = Sim::new(config);
    #[cfg(unix)]
    let served = match &args.socket {
        Some(path) => serve_at_socket(path, &sim, out),
        None => listen_and_serve(args, &sim, &tls, out),
    };
    #[cfg(not(unix))]
    let served = listen_and_serve(args, &sim, &tls, out);
    served.map_err(|error| (Exit::CannotListen, error))?;
    if let Some(path) = &args.truth_log {
        write_truth(&sim, path).map_err(|error| (Exit::LogNotWritten, error))?;
    }
    Ok(())
}

fn listen_and_serve(args: &Args, sim: &Sim, tls: &Tls, out: &mut dyn Write) -> Result<()> {
    let runtime = runtime()?;
    let shared = args.threads > 1;
    let (address, listener) =
        runtime.block_on(async { bind(SocketAddr::new(args.host, args.port), shared) })?;
    let (stop, stopped) = watch::channel(());
    let mut threads = Vec::new();
    for number in 1..args.threads {
        let (sim, tls, mut stopped) = (sim.clone(), tls.clone(), stopped.clone());
        let runtime = self::runtime()?;
        let (_, listener) = runtime.block_on(async { bind(address, true) })?;
        let serve = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = tls.serve(&sim, listener) => {}
                    _ = stopped.changed() => {}
                }
            });
        };
        threads.push(std::thread::Builder::new().name(format!("sim-{number}")).spawn(serve)?);
    }
    let ended: Result<()> = runtime.block_on(async {
        let signal = signal()?;
        writeln!(out, "sim-server listening on {}://{address}", tls.scheme())?;
        out.flush()?;
        tokio::select! {
            () = tls.serve(sim, listener) => {}
            () = signal => {}
        }
        Ok(())
    });
    drop(stop);
    // Ends this thread's connections, so that the truth log has them.
    drop(runtime);
    for thread in threads {
        drop(thread.join());
    }
    ended
}

/// Serves at a Unix socket, which is removed in the end.
#[cfg(unix)]
fn serve_at_socket(path: &Path, sim: &Sim, out: &mut dyn Write) -> Result<()> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let listener = tokio::net::UnixListener::bind(path)
            .with_context(|| format!("cannot listen at {}", path.display()))?;
        let signal = signal()?;
        writeln!(out, "sim-server listening on unix:{}", path.display())?;
        out.flush()?;
        tokio::select! {
            () = sim.serve_unix(listener) => {}
            () = signal => {}
        }
        std::fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))
    })
}

fn runtime() -> Result<Runtime> {
    Builder::new_current_thread().enable_all().build().context("cannot start the event loop")
}

fn bind(address: SocketAddr, shared: bool) -> Result<(SocketAddr, TcpListener), SimError> {
    let listener = Sim::listen(address, shared)?;
    let bound = listener.local_addr().map_err(|source| SimError::Bind { address, source })?;
    Ok((bound, listener))
}

/// Installs the handlers at once; the future completes when a signal to stop comes.
#[cfg(unix)]
fn signal() -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "the same shape as on Unix")]
fn signal() -> Result<impl Future<Output = ()>> {
    Ok(async {
        drop(tokio::signal::ctrl_c().await);
    })
}

fn write_truth(sim: &Sim, path: &Path) -> Result<()> {
    let write = || -> Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        for record in sim.truth() {
            serde_json::to_writer(&mut file, &record)?;
            file.write_all(b"\n")?;
        }
        file.flush()?;
        Ok(())
    };
    write().with_context(|| format!("cannot write the truth log {}", path.display()))
}

/// HTTPS, or not.
#[derive(Clone)]
struct Tls {
    #[cfg(feature = "tls")]
    acceptor: Option<servebench_sim::TlsAcceptor>,
}

#[cfg(feature = "tls")]
impl Tls {
    fn read(args: &Args) -> Result<Self> {
        let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) else {
            return Ok(Self { acceptor: None });
        };
        let read = |path: &Path| {
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))
        };
        let acceptor = servebench_sim::tls_acceptor(&read(cert)?, &read(key)?)
            .with_context(|| format!("{} and {} cannot be used", cert.display(), key.display()))?;
        Ok(Self { acceptor: Some(acceptor) })
    }

    fn scheme(&self) -> &'static str {
        if self.acceptor.is_some() { "https" } else { "http" }
    }

    async fn serve(&self, sim: &Sim, listener: TcpListener) {
        match &self.acceptor {
            Some(acceptor) => sim.serve_tls(listener, acceptor.clone()).await,
            None => sim.serve(listener).await,
        }
    }
}

#[cfg(not(feature = "tls"))]
#[expect(clippy::unnecessary_wraps, clippy::unused_self, reason = "the same shape as with TLS")]
impl Tls {
    fn read(_args: &Args) -> Result<Self> {
        Ok(Self {})
    }

    fn scheme(&self) -> &'static str {
        "http"
    }

    async fn serve(&self, sim: &Sim, listener: TcpListener) {
        sim.serve(listener).await;
    }
}
