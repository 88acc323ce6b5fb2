//! Schedules recorded from the Python tool, with adapters drawn between the gaps.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use serde_json::Value;
use servebench_arrival::{PoissonGaps, Rate};
use servebench_core::random::Draws;

const REQUESTS: usize = 20;
/// Ids in the vocabulary of the recording's tokenizer.
const VOCABULARY: u32 = 4096;

/// The generators as the recording's dataset (`random-ids`, at most 8 tokens in and 4 out) leaves
/// them: lengths in, lengths out and offsets are drawn before the first request is sent.
fn after_the_dataset(seed: u32) -> Draws {
    let mut draws = Draws::new(seed);
    draws.numpy.randint(1..=8, REQUESTS);
    draws.numpy.randint(1..=4, REQUESTS);
    draws.numpy.randint(0..=VOCABULARY - 1, REQUESTS);
    draws
}

#[test]
fn gaps_and_adapters_are_those_of_the_python_tool() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/arrivals.json");
    let golden: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 9);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let (adapters, seed) = name.split_once("/seed-").unwrap();
        let mut draws = after_the_dataset(seed.parse().unwrap());
        let gaps = PoissonGaps::new(Rate::per_second(10.0).unwrap());
        for request in 0..REQUESTS {
            let adapter = match adapters {
                "uniform" => Some(draws.python.choice_index(3) as usize),
                "skewed" => {
                    let weights = [0, 1, 2].map(|i| 1.5_f64.powi(-i));
                    Some(draws.numpy.choice_weighted(&weights))
                }
                _ => None,
            };
            let adapter = adapter.map(|i| ["a", "b", "c"][i]);
            assert_eq!(case["lora"][request].as_str(), adapter, "{name}, request {request}");
            let gap = gaps.next_gap(&mut draws.numpy);
            let recorded = case["gaps"][request].as_f64().unwrap();
            // Two logarithms may differ in the last bit.
            let close = (gap - recorded).abs() <= 4.0 * f64::EPSILON * recorded;
            assert!(close, "{name}, request {request}: {gap} is not {recorded}");
        }
    }
}
