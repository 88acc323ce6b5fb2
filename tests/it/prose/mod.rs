//! The cases that are told in prose: scripted servers, and what the command must make of them.

mod bench;
mod control;
mod data;
mod endings;
mod failures;
mod interrupts;
mod load;
mod network;
mod output;
mod peer;
mod pictures;
mod secrets;
mod sets;
mod streams;
mod ways;
