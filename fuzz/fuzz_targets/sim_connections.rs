//! Any bytes on a connection leave the simulated server alive.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_sim::fuzzing::connections(data));
