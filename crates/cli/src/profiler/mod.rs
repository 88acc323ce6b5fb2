//! A live server's profiler, cache and report: what people otherwise do with curl.

mod args;
mod around;
mod commands;
mod live;
mod profile;
mod session;
mod traces;

pub use args::{ConnectionArgs, LengthArgs, PROFILER_FLAGS, ServerKind, ServersArgs, WhatArgs};
pub use commands::{FlushArgs, flush_cache, server_info, start, stop};
pub use profile::profile;

pub(crate) use around::Around;
pub(crate) use live::LiveServer;
pub(crate) use profile::absolute_folder;
