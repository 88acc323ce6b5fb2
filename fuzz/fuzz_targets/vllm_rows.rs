//! Any bytes are read as a row of each file that `vllm bench` samples, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_datasets::fuzzing::vllm_rows(data));
