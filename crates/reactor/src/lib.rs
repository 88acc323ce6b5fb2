//! Which sockets of a load client have input, and who reads them, without a task's detour.
//!
#![doc = include_str!("../README.md")]

#[cfg(target_os = "linux")]
mod looking;
#[cfg(target_os = "linux")]
mod source;
#[cfg(all(test, target_os = "linux"))]
mod tests;

#[cfg(target_os = "linux")]
pub use looking::Reactor;
#[cfg(target_os = "linux")]
pub use source::{Handle, Ready, Source};
