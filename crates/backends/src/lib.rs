//! LLM serving protocols without I/O: samples to request bodies, response bytes to token events.
