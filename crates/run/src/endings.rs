//! What ends a run before everything is sent and answered.

use servebench_core::{Failure, FailureKind};
use std::fmt;
use std::time::Duration;

/// When a run ends though not everything was sent and answered. By default never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Endings {
    /// From this time of the run on nothing is sent any more.
    pub duration: Option<Duration>,
    /// How long the requests that are under way then may take before they are cut off.
    pub grace: Duration,
    /// Once nothing has come for this long, for none of the requests under way, the run is cut off.
    ///
    /// Anything counts as progress: a byte of a reply (a comment, too), a connection, a failure, a
    /// request that is sent. It is looked at once a second.
    pub no_progress: Option<Duration>,
}

impl Endings {
    /// Silences shorter than this are not spoken of.
    const PATIENCE: Duration = Duration::from_secs(30);
    /// How often it is looked whether something has come.
    const LOOK: Duration = Duration::from_secs(1);

    /// How long a silence lasts before [`Progress::silence`](crate::Progress::silence) tells of it.
    pub(crate) fn patience(&self) -> Duration {
        self.no_progress.map_or(Self::PATIENCE, |limit| Self::PATIENCE.min(limit / 2))
    }

    /// How often it is looked whether something has come: often enough for a short limit, too.
    pub(crate) fn look(&self) -> Duration {
        let short = self.no_progress.map_or(Self::LOOK, |limit| limit / 8);
        short.clamp(Duration::from_millis(1), Self::LOOK)
    }

    /// When the requests under way are cut off.
    pub(crate) fn cut_off(&self) -> Option<Duration> {
        self.duration.map(|duration| duration.saturating_add(self.grace))
    }
}

/// Why a run ended before everything was sent and answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndedBy {
    /// Somebody outside said so.
    Interrupt,
    /// [`Endings::duration`] was over.
    Duration,
    /// [`Endings::no_progress`] was over.
    NoProgress,
}

impl EndedBy {
    /// The name used in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Duration => "duration_limit",
            Self::NoProgress => "no_progress",
        }
    }

    /// What is said of a request that it cut off.
    pub(crate) fn cancelled(self) -> Failure {
        let words = match self {
            Self::Interrupt => "the run was interrupted",
            Self::Duration => "the run's time and its grace were over",
            Self::NoProgress => "the run made no progress and was ended",
        };
        Failure::new(FailureKind::Cancelled, words)
    }
}

impl fmt::Display for EndedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
