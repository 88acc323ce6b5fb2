//! Random streams: reproductions of the Python tools' generators, and named streams of our own.
