//! Any bytes are read as a table of JSON, with the rows that are there, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_datasets::table::fuzzing::table_json(data));
