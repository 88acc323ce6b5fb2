//! Any bytes are read as a custom JSONL file or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_datasets::fuzzing::custom_json_lines(data));
