//! Any bytes are read as a file of chat requests or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_datasets::fuzzing::openai_json_lines(data));
