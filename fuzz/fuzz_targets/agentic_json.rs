//! Any bytes are read as a trace of conversations or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_datasets::fuzzing::agentic_json(data));
