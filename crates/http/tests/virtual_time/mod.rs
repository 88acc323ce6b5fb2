//! Tests in virtual time: exact, and over at once.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use std::time::Duration;

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Runs `test`, which may spawn local tasks, in virtual time.
pub(crate) fn in_virtual_time<T>(test: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    tokio::task::LocalSet::new().block_on(&runtime.unwrap(), test)
}
