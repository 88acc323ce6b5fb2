//! The simulator as a client sees it: over an in-memory connection in virtual time, and, where the
//! socket itself matters, over loopback.

mod client;
mod control;
mod faults;
mod laws;
mod others;
mod sockets;
mod timing;
#[cfg(feature = "tls")]
mod tls;
mod wire;
