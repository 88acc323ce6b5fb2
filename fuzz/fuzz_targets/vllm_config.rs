//! Any bytes are read as a configuration file and as counters of vLLM, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_cli::fuzzing::vllm_config_and_counters(data));
