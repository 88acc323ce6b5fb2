//! Any bytes are read as a Mooncake trace, sent in the order of time, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_datasets::fuzzing::mooncake_json_lines(data));
