//! Records of LLM requests to numbers: TTFT, TPOT, ITL, throughput, goodput, percentiles.
