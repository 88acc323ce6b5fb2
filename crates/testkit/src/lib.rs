//! Test helpers for servebench: scripted peers, property bodies, golden files.
