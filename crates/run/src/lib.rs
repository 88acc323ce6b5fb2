//! The load engine: phases, schedule, concurrency, workers and stop rules over any backend.
