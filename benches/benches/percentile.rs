//! The numbers of a family of 10⁶ samples. Budget: 100 ms.

use divan::Bencher;
use servebench_benches as _;
use servebench_metrics::Distribution;

fn main() {
    divan::main();
}

#[divan::bench(args = [1_000, 1_000_000])]
fn distribution(bencher: Bencher<'_, '_>, samples: u64) {
    // A multiplicative generator is noise enough for a sort.
    let noise = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64;
    let samples: Vec<f64> = (1..=samples).map(noise).collect();
    bencher
        .with_inputs(|| samples.clone())
        .bench_local_values(|mut samples| Distribution::of(&mut samples));
}
