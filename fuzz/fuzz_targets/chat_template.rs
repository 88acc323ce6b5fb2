//! Any bytes are compiled as a chat template or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_tokens::fuzzing::chat_template(data));
