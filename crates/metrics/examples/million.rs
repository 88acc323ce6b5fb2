//! What a million finished requests of 256 tokens cost: memory of the records and of their numbers.
//!
//! `cargo run --release -p servebench-metrics --example million [requests]` prints the peak resident
//! set and the time. The goal is 1 GB for 1 000 000 requests, aggregation included, texts and bodies
//! not.

#![allow(clippy::print_stdout, reason = "an example prints")]

use servebench_core::{ReadLag, Record, Stamp};
use servebench_metrics::{Measured, Options, aggregate};
use std::time::{Duration, Instant};

const TOKENS: u32 = 256;

/// As the binaries have it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let requests = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1_000_000);
    #[allow(clippy::disallowed_methods, reason = "a stopwatch, not a run's clock")]
    let now = Instant::now;
    let start = now();
    let mut noise = Noise(1);
    let mut records = Vec::with_capacity(requests);
    records.extend((0..requests as u64).map(|id| record(id, &mut noise)));
    let built = start.elapsed();
    let chunks: usize = records.iter().map(|record| record.reply.chunks.size()).sum();
    let chunks = chunks as f64 / requests as f64;
    println!("a record:     {} bytes, and {chunks:.1} for its chunks", size_of::<Record>());
    println!("records:      {built:6.2?}, peak {}", peak_memory());
    let start = now();
    let options = Options::default();
    let run = aggregate(records.iter().map(Measured::from), &options);
    println!("aggregation:  {:6.2?}, peak {}", start.elapsed(), peak_memory());
    let itl = run.itl.map(|itl| itl.scaled(1e3));
    println!("ITL in ms: {itl:?}");
    println!("most tokens in one second: {:?}", run.own.max_output_tokens_per_s);
    let exact = run.reception.and_then(|reception| reception.exact_share_itl);
    println!("exact share of ITL: {exact:?}");
}

/// A request sent a millisecond after the one before it: TTFT about 50 ms, ITL about 10 ms with a
/// spread of half a millisecond and now and then a stall; one read in five hundred is late and brings
/// two tokens.
fn record(id: u64, noise: &mut Noise) -> Record {
    let mut record = Record { id, prompt_len: 1024, output_len: TOKENS, ..Record::default() };
    record.intended = Stamp::from_millis(id);
    record.dispatched = Stamp(record.intended.0 + noise.below(50_000));
    let mut lag = ReadLag::default();
    let reply = &mut record.reply;
    reply.sent = Some(Stamp(record.dispatched.0 + 10_000));
    let mut at = record.dispatched.0 + 40_000_000 + noise.below(20_000_000);
    reply.headers = Some(Stamp(at));
    reply.status = Some(200);
    let mut late = false;
    for _ in 0..TOKENS {
        // The sum of four is nearly normal.
        let jitter: u64 = (0..4).map(|_| noise.below(870_000)).sum();
        let gap = 8_260_000 + jitter + if noise.below(200) == 0 { 40_000_000 } else { 0 };
        if !late {
            reply.chunks.read_after(Stamp(at - noise.below(100_000)));
        }
        late = noise.below(500) == 0;
        // Read with the token after it, whose stamp it has then.
        reply.push_stamp(Stamp(if late { at + gap } else { at }), Some(1), 0);
        lag.add(Duration::from_micros(noise.below(20)), Duration::from_nanos(500));
        at += gap;
    }
    reply.chunks.shrink();
    reply.last_line = reply.last_token();
    reply.prompt_tokens = Some(1024);
    reply.completion_tokens = Some(TOKENS);
    reply.finish_reason = Some("length".into());
    reply.read_lag = Some(lag);
    record
}

/// A multiplicative generator: noise enough, the same on each run.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % limit
    }
}

/// The largest resident set this process had so far, as Linux tells it.
fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("unknown".into(), |peak| peak.trim().to_owned())
}
