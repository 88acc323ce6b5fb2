//! Any bytes are read as a picture, or as the JSON of one, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_datasets::fuzzing::picture(data));
