//! HTTP transport for LLM load generation: warm connections, read stamps, one retry rule.
