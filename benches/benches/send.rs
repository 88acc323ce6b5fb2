//! One request over a kept-alive in-memory connection, both ends in one thread: the floor of the
//! client's cost per request, with the simulated server's on top. Budget: 40 µs.

use divan::Bencher;
use servebench_backends::{BackendKind, GenerateOptions};
use servebench_benches as _;
use servebench_core::{Backend, Clock, Reply, Request, Sample, Stamp};
use servebench_http::{FnConnect, HttpBackend, Limits, Stream, Target};
use servebench_sim::{Sim, SimConfig, Timing};
use std::time::Duration;
use tokio::task::LocalSet;

fn main() {
    divan::main();
}

/// Stamps do not matter here.
#[derive(Clone)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Stamp {
        Stamp(0)
    }

    fn sleep_until(&self, _at: Stamp) -> impl Future<Output = ()> {
        std::future::pending()
    }
}

#[divan::bench(args = [1, 128])]
fn request(bencher: Bencher<'_, '_>, tokens: u32) {
    let timing = Timing::canned(Duration::ZERO, Duration::ZERO);
    let sim = Sim::new(SimConfig { timing, ..SimConfig::default() });
    let connect = FnConnect::new(move || {
        let (client, server) = tokio::io::duplex(1 << 20);
        let sim = sim.clone();
        tokio::task::spawn_local(async move { sim.serve_connection(server).await });
        async move { Ok(Box::new(client) as Box<dyn Stream>) }
    });
    let options = GenerateOptions { model: "sim".into(), ..GenerateOptions::default() };
    let protocol = BackendKind::SglangOai.protocol(options);
    let sample = Sample { prompt: "Hello".into(), output_len: tokens, ..Sample::default() };
    let body = protocol.encode(&sample, None);
    let request = Request { body, output_len: tokens, ..Request::default() };
    let target = Target::new("http://sim".parse().expect("a URL"));
    let backend = HttpBackend::new(NoClock, connect, &target, protocol, Limits::default());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let (runtime, local) = (runtime.expect("a runtime"), LocalSet::new());
    bencher.bench_local(|| {
        let mut reply = Reply::default();
        local.block_on(&runtime, backend.send(&request, &mut reply));
        assert!(reply.failure.is_none(), "{:?}", reply.failure);
        reply
    });
}
