//! A simulated LLM inference server with real wire formats, an engine cost model and faults.
