//! What each of several servers had of a run.

use crate::Plan;
use serde_json::{Map, Value, json};
use servebench_core::Record;
use servebench_metrics::Measured;

/// Adds `targets` to a result: one entry for each server, in the order of the command line. Nothing is
/// added with one server.
pub(super) fn report(plan: &Plan, records: &[Record], result: &mut Map<String, Value>) {
    if plan.further_base_urls.is_empty() {
        return;
    }
    let bases = plan.base_url.iter().chain(&plan.further_base_urls);
    let rows = (0u32..).zip(bases).map(|(place, base)| {
        let own = || records.iter().filter(move |it| it.reply.rare().target == Some(place));
        let successes = || own().filter(|record| record.is_success()).map(Measured::from);
        let completed = successes().count();
        json!({
            "base_url": base.to_string(),
            "requests": own().count(),
            "completed": completed,
            "failed": own().count() - completed,
            "mean_ttft_ms": mean_ms(successes().filter_map(|it| it.ttft())),
            "mean_e2e_latency_ms": mean_ms(successes().filter_map(|it| it.latency())),
        })
    });
    result.insert("targets".to_owned(), rows.collect());
}

/// The mean of times in seconds, in milliseconds.
fn mean_ms(seconds: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = seconds.fold((0u64, 0.0), |(count, sum), one| (count + 1, sum + one));
    (count > 0).then(|| sum / count as f64 * 1e3)
}
