//! What variables say of proxies is used or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_http::fuzzing::proxy_settings(data));
