//! Any body gets one complete answer from the simulated server.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_sim::fuzzing::request_bodies(data));
