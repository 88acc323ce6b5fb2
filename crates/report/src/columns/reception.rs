//! The keys that tell how true the receive stamps are.

use super::Table;
use super::statistics::{BOUNDED, INTENDED, READ_LAG, READ_LAGS};
use crate::Report;
use servebench_metrics::Reception;

fn reception<'a>(report: &'a Report<'_>) -> Option<&'a Reception> {
    report.aggregates.reception.as_ref()
}

pub(super) fn add(t: &mut Table) {
    t.text(
        "stamps",
        "Whose receive times the tokens have: `kernel`, those of the bytes' arrival at this machine, \
         or `user`, those of the client's reads.",
        |r| Some(if r.aggregates.reception.is_some() { "kernel" } else { "user" }),
    );
    t.delay(&READ_LAG, READ_LAGS);
    t.number(
        "read_lag_max_ms",
        "ms",
        "The longest time that any received bytes waited for the client.",
        |r| Some(reception(r)?.longest_read_lag * 1e3),
    );
    t.number(
        "receive_clock_error_ms",
        "ms",
        "The most by which the kernel's stamps may be off against the run's clock.",
        |r| Some(reception(r)?.clock_error * 1e3),
    );
    t.number(
        "exact_share_ttft",
        "",
        "Share of the TTFT samples that are exact, from 0 to 1: the interval in which the true value \
         lies is at most 0.1 ms wide. Null with `user` stamps: nothing is known to be exact.",
        |r| reception(r)?.exact_share_ttft,
    );
    t.number(
        "exact_share_itl",
        "",
        "Share of the ITL samples that are exact, from 0 to 1: the interval in which the true value \
         lies is at most 0.1 ms wide. Null with `user` stamps: nothing is known to be exact.",
        |r| reception(r)?.exact_share_itl,
    );
    t.optional(
        "bounded_chunks",
        "chunks",
        "Token-bearing chunks whose stamp is an upper bound: they were read together with what came \
         after them.",
        |r| Some(reception(r)?.bounded_chunks),
    );
    for (low, high) in &BOUNDED {
        t.bound(low, "low", INTENDED);
        t.bound(high, "high", INTENDED);
    }
}
