//! LLM serving benchmarks as a library: one dependency, features pick the parts.
