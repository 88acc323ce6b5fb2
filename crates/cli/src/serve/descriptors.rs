//! File descriptors: how many there may be, and how many a run needs.

use crate::Io;

/// Descriptors kept for everything that is no connection of the load.
const SPARE: u64 = 64;
/// The limit is raised to this at least: the number under way may turn out larger than expected.
const USEFUL: u64 = 65_535;

/// What a run needs, and what it has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Descriptors {
    pub(crate) needed: u64,
    /// The soft limit, once raised. `None` where the system has none.
    pub(crate) limit: Option<u64>,
}

impl Descriptors {
    /// Raises the soft limit as far as the hard one allows, and says so where that is not enough for
    /// `in_flight` requests at once. With a server in this process (`both_ends`) a connection takes
    /// two.
    pub(crate) fn secure(in_flight: u64, both_ends: bool, io: &Io) -> Self {
        let needed = in_flight * if both_ends { 2 } else { 1 } + SPARE;
        let limit = match rlimit::increase_nofile_limit(needed.max(USEFUL)) {
            Ok(limit) => limit,
            Err(error) => {
                io.say(format_args!("warning: cannot raise the descriptor limit: {error}"));
                return Self { needed, limit: None };
            }
        };
        if limit < needed {
            io.say(format_args!(
                "warning: {in_flight} requests at once need {needed} file descriptors, the limit \
                 is {limit}: some will fail; raise it with `ulimit -Hn` or cap --max-concurrency"
            ));
        }
        Self { needed, limit: Some(limit) }
    }
}
