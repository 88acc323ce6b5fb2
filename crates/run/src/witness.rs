//! Somebody who sees each record as soon as there is one.

use servebench_core::{Record, Stamp};
use std::fmt;
use std::sync::Arc;

type See = dyn Fn(&Record, Stamp) + Send + Sync;

/// Sees each record of a job when its request is over: to keep it elsewhere while the run goes on.
///
/// It is called on the worker's thread, between two looks at its sockets, and so must neither wait nor take
/// long.
#[derive(Clone)]
pub struct Witness(Arc<See>);

impl Witness {
    /// `see` is given the record and when its request was over for the client.
    pub fn new(see: impl Fn(&Record, Stamp) + Send + Sync + 'static) -> Self {
        Self(Arc::new(see))
    }

    pub(crate) fn see(&self, record: &Record, end: Stamp) {
        (self.0)(record, end);
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Witness").finish_non_exhaustive()
    }
}
