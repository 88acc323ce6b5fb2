//! Any bytes are played as a recording, and copied without their text, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_recording::fuzzing::recording(data));
