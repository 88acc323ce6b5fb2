//! Control calls to inference servers: readiness, models, cache flush, profiler, server info.
