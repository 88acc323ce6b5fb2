//! How a chat stream is cut changes stamps only.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_backends::fuzzing::chat_frames(data));
