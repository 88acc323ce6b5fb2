//! Tokenizers and chat templates for LLM benchmarks, by hub name or local path.
