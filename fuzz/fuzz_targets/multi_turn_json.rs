//! Any bytes are read as conversations, as what makes them or as a ShareGPT file, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_datasets::fuzzing::multi_turn_json(data));
