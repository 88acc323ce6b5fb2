//! Any bytes are read as a ShareGPT file or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_datasets::fuzzing::share_gpt_json(data));
