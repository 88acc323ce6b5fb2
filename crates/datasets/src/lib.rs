//! Benchmark datasets: files and generators to prompts, with the draws of the Python tools.
