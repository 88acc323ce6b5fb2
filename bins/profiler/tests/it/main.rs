//! The program as a process: against its own simulated server, and against peers that note what
//! they are asked.

mod guide;
mod peer;
mod session;
mod support;
mod wire;
