//! What the block hashes of a prefix cache cost on this machine.

mod args;

pub use args::{BLOCK_HASH_FLAGS, HASH_FLAGS, HashArgs, PrefixBlockHashArgs};

use crate::exit::OrCode as _;
use crate::{Code, Failure, Io};
use servebench_core::Clock as _;
use servebench_hashes::{CallTiming, Payload, blocks, measure_blocks, measure_calls};
use servebench_run::TokioClock;
use std::fmt::Write as _;

/// Width of the rules of the table.
const WIDTH: usize = 60;
/// What the first block's parent is a hash of, where vLLM takes `PYTHONHASHSEED`. The time does not
/// depend on it.
const HASH_SEED: &str = "0";

/// Times single hashes of one payload: vLLM's `benchmark_hash.py`.
///
/// # Errors
///
/// When the output cannot be written.
pub fn hash(args: &HashArgs, io: &Io) -> Result<Code, Failure> {
    let payload = Payload::new(args.seed);
    let timings = measure_calls(&payload, args.iterations as usize, nanoseconds());
    io.write(table(&timings, args.iterations)).or_code(Code::Output)?;
    Ok(Code::Done)
}

/// Times whole chains of blocks: vLLM's `benchmark_prefix_block_hash.py`.
///
/// # Errors
///
/// When the output cannot be written.
pub fn prefix_block_hash(args: &PrefixBlockHashArgs, io: &Io) -> Result<Code, Failure> {
    let (count, size) = (args.num_blocks as usize, args.block_size as usize);
    let blocks = blocks(count, size, args.vocab_size, args.seed);
    let algorithms = args.algorithms();
    io.print(format_args!(
        "Benchmarking {} algorithms on {count} blocks (block size={size}).",
        algorithms.len()
    ))
    .or_code(Code::Output)?;
    for algorithm in algorithms {
        let trials = args.trials as usize;
        let timing = measure_blocks(algorithm, HASH_SEED, &blocks, trials, nanoseconds());
        io.print(format_args!(
            "{:<14} avg: {:.6}s  best: {:.6}s  throughput: {:.2}M tokens/s",
            algorithm,
            timing.mean_s,
            timing.best_s,
            timing.tokens_per_s / 1e6
        ))
        .or_code(Code::Output)?;
    }
    Ok(Code::Done)
}

/// A clock that starts now.
fn nanoseconds() -> impl FnMut() -> u64 {
    let clock = TokioClock::default();
    clock.start();
    move || clock.now().0
}

fn table(timings: &[CallTiming], iterations: u32) -> String {
    let rule = "=".repeat(WIDTH);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{rule}\nHASH FUNCTION MICRO BENCHMARK\n{rule}");
    let _ = writeln!(text, "Test data: (32 bytes, 32 integers)");
    let _ = writeln!(text, "Iterations: {}\n{rule}\n\nResults:", grouped(iterations));
    for timing in timings {
        let (mean, deviation) = (timing.mean_us, timing.deviation_us);
        let _ = writeln!(text, "  {:<16}: {mean:8.2} ± {deviation:6.2} μs", label(timing));
    }
    let built_in = timings.iter().find(|timing| timing.algorithm.is_none());
    let base = built_in.map_or(0.0, |timing| timing.mean_us);
    let _ = writeln!(text, "\n{rule}\nSUMMARY (relative to built-in hash())\n{rule}");
    for timing in timings.iter().filter(|timing| timing.algorithm.is_some() && base > 0.0) {
        let times = timing.mean_us / base;
        let _ = writeln!(text, "• {} is {times:.1}x slower than built-in hash()", label(timing));
    }
    text
}

fn label(timing: &CallTiming) -> &'static str {
    timing.algorithm.map_or("built-in hash()", |algorithm| algorithm.name())
}

/// With a comma between thousands.
fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use servebench_hashes::Algorithm;

    #[test]
    fn the_table_of_calls() {
        let timing = |algorithm, mean_us| CallTiming { algorithm, mean_us, deviation_us: 0.25 };
        let timings = [timing(Some(Algorithm::Sha256Cbor), 1.5), timing(None, 0.5)];
        let wanted = "\
============================================================
HASH FUNCTION MICRO BENCHMARK
============================================================
Test data: (32 bytes, 32 integers)
Iterations: 1,234,567
============================================================

Results:
  sha256_cbor     :     1.50 ±   0.25 μs
  built-in hash() :     0.50 ±   0.25 μs

============================================================
SUMMARY (relative to built-in hash())
============================================================
• sha256_cbor is 3.0x slower than built-in hash()
";
        assert_eq!(table(&timings, 1_234_567), wanted);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 10_000].map(grouped), ["0", "999", "1,000", "10,000"]);
    }

    #[test]
    fn both_commands_print_what_they_measured() {
        let (io, captured) = Io::captured();
        let args = HashArgs { iterations: 3, seed: 42 };
        assert_eq!(hash(&args, &io).unwrap().number(), 0);
        assert_eq!(captured.out().matches(" ± ").count(), 5);

        let (io, captured) = Io::captured();
        let args = PrefixBlockHashArgs {
            num_blocks: 3,
            block_size: 4,
            vocab_size: 10,
            seed: 0,
            trials: 2,
            algorithms: vec!["xxhash".into()],
        };
        assert_eq!(prefix_block_hash(&args, &io).unwrap().number(), 0);
        let out = captured.out();
        assert!(
            out.starts_with("Benchmarking 1 algorithms on 3 blocks (block size=4).\nxxhash "),
            "{out}"
        );
        assert!(out.trim_end().ends_with("M tokens/s"), "{out}");
    }
}
