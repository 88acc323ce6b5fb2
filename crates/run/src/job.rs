//! What a run is made of, fixed before its clock starts.

use crate::{Clients, Encoder, Endings, Witness};
use servebench_core::{Request, Stamp};
use std::sync::Arc;
use std::time::Duration;

/// The requests of one phase and when they are due. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Job {
    /// The requests, in plan order.
    pub requests: Arc<[Request]>,
    /// How to encode their bodies, if they hold none.
    pub encoder: Option<Encoder>,
    /// When each is due; as long as `requests`, never decreasing.
    pub schedule: Arc<[Stamp]>,
    /// Most requests under way at once, over all workers. `None`: no cap.
    pub max_concurrency: Option<usize>,
    /// Keep where in the text each chunk's piece ends.
    pub keep_pieces: bool,
    /// Pause between a reply and the next turn of its conversation.
    pub think: Duration,
    /// Whether a conversation gives its place under the cap back after each turn, and waits in turn for
    /// one before the next. Otherwise it keeps its place until its last turn is over.
    pub release_slot: bool,
    /// What each place under the cap is, where it is a client with several conversations under way, all due
    /// at once. `think` and `release_slot` do nothing then.
    pub clients: Option<Clients>,
    /// How many may be under way at once when neither a cap nor a burst tells: a guess, for opening
    /// connections beforehand.
    pub in_flight_guess: Option<usize>,
    /// What ends it before everything is sent and answered.
    pub endings: Endings,
    /// Who sees its records as they come.
    pub witness: Option<Witness>,
}

/// Why a job cannot be run.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// The schedule does not fit the requests.
    #[error("{requests} requests but {offsets} due times")]
    Schedule {
        /// Number of requests.
        requests: usize,
        /// Number of due times.
        offsets: usize,
    },
    /// A cap of zero would never send anything.
    #[error("a concurrency cap of 0 sends nothing")]
    Cap,
    /// A runtime or thread could not be made.
    #[error("cannot start worker: {0}")]
    Worker(String),
}

impl RunError {
    pub(crate) fn gate() -> Self {
        Self::Worker("the workers could not be started together".into())
    }
}

impl Job {
    /// Everything due at once.
    pub fn burst(requests: Vec<Request>) -> Self {
        let schedule = vec![Stamp(0); requests.len()].into();
        Self {
            requests: requests.into(),
            encoder: None,
            schedule,
            max_concurrency: None,
            keep_pieces: false,
            think: Duration::ZERO,
            release_slot: false,
            clients: None,
            in_flight_guess: None,
            witness: None,
            endings: Endings::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), RunError> {
        if self.requests.len() != self.schedule.len() {
            let (requests, offsets) = (self.requests.len(), self.schedule.len());
            return Err(RunError::Schedule { requests, offsets });
        }
        if self.max_concurrency == Some(0) {
            return Err(RunError::Cap);
        }
        Ok(())
    }

    /// True when all requests are due at once, at the start.
    pub(crate) fn is_burst(&self) -> bool {
        self.schedule.last().is_none_or(|last| *last == Stamp(0))
    }

    /// True when each place under the cap can take one request of the plan after the other: then no
    /// request waits for anything else.
    pub(crate) fn has_lanes(&self) -> bool {
        self.is_burst() && !self.release_slot
    }

    /// Requests that are sent in all, with every turn of the conversations.
    pub fn total(&self) -> usize {
        self.requests.iter().map(Request::turns).sum()
    }

    /// Requests that may be under way at once, as far as that is known beforehand: the cap, all of a
    /// burst, or the guess.
    pub fn expected_in_flight(&self) -> Option<usize> {
        let all = self.requests.len();
        let burst = self.is_burst().then_some(all);
        self.max_concurrency.or(burst).or(self.in_flight_guess).map(|expected| expected.min(all))
    }
}
