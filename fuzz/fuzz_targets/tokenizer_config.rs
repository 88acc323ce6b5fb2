//! Any bytes are read as a tokenizer configuration or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_tokens::fuzzing::tokenizer_config(data));
