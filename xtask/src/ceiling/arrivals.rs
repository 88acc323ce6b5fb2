//! Whether requests arrive as a Poisson process does.

use super::figures::median;
use crate::rig::{Load, Run, Scenario};

/// What one run says about its arrivals.
#[derive(Clone, Debug)]
pub(super) struct Arrivals {
    /// Requests a second, as the server saw them.
    achieved: f64,
    /// The same by the client's own times of sending, and by how much its plan may differ from
    /// them, in percent.
    own: Option<(f64, f64)>,
    /// Kolmogorov–Smirnov distance of the gaps to the exponential distribution of the rate asked
    /// for: at the server, and by the client's own times of sending.
    distance: f64,
    own_distance: Option<f64>,
    /// Share of gaps below 50 µs, in percent.
    short: f64,
    lateness: Option<[f64; 2]>,
}

pub(super) const HEAD: &str = "\
| scenario | client | req/s at the server | off the plan % | KS at the server | KS as sent | \
bound (1 %) | gaps < 50 µs % (true) | lateness p50 / p99 ms | goals |
|---|---|---|---|---|---|---|---|---|---|";

/// Largest share by which the rate at the server may differ from the plan's, in percent.
const RATE_GOAL: f64 = 0.5;

impl Arrivals {
    /// From one run of an open loop; `None` for a closed one.
    pub(super) fn of(scenario: &Scenario, run: &Run) -> Option<Self> {
        let Load::Open(rate) = scenario.load else { return None };
        let seen = &run.truth.arrivals;
        let mut sent = run.report.numbers("start_times");
        sent.sort_by(f64::total_cmp);
        let millis = |key: &str| run.report.number(key);
        let own = rate_of(&sent).zip(millis("lateness_max_ms")).map(|(own, late)| {
            let span = sent[sent.len() - 1] - sent[0];
            (own, late / 1e3 / span * 100.0)
        });
        let gaps = gaps(seen);
        let short = gaps.iter().filter(|gap| **gap < 50e-6).count() as f64;
        Some(Self {
            achieved: rate_of(seen)?,
            own,
            distance: distance_to_exponential(gaps.clone(), rate),
            own_distance: own.map(|_| distance_to_exponential(self::gaps(&sent), rate)),
            short: short / gaps.len() as f64 * 100.0,
            lateness: millis("lateness_p50_ms").zip(millis("lateness_p99_ms")).map(|(a, b)| [a, b]),
        })
    }

    /// A line of the table from several runs of one client: medians of each figure.
    pub(super) fn line(scenario: &Scenario, client: &str, runs: &[Self]) -> String {
        let Load::Open(rate) = scenario.load else { return String::new() };
        let middle = |of: fn(&Self) -> Option<f64>| median(runs.iter().filter_map(of).collect());
        let show = |value: Option<f64>, digits: usize| {
            value.map_or("-".to_owned(), |value| format!("{value:.digits$}"))
        };
        let bound = bound(scenario.requests);
        let off = middle(|run| run.own.map(|(own, _)| (run.achieved / own - 1.0) * 100.0));
        let seen = middle(|run| Some(run.distance));
        let own = middle(|run| run.own_distance);
        let late = [middle(|run| Some(run.lateness?[0])), middle(|run| Some(run.lateness?[1]))];
        let mut goals = Vec::new();
        if let (Some(off), Some(seen), Some(own)) = (off, seen, own) {
            let verdict = |met: bool, by: f64| {
                if met { "met".to_owned() } else { format!("MISSED by {by:.3}") }
            };
            let spare = RATE_GOAL - off.abs();
            goals.push(format!(
                "rate within {RATE_GOAL} % of the plan's: {}",
                verdict(spare >= 0.0, -spare)
            ));
            // Above some rate a server's own turns are the limit, so the times of sending count.
            let (what, distance) =
                if rate > 1000.0 { ("KS as sent", own) } else { ("KS at the server", seen) };
            goals.push(format!(
                "{what} ≤ {bound:.4}: {}",
                verdict(distance <= bound, distance - bound)
            ));
        }
        format!(
            "| {} | {client} | {} | {} ± {} | {} | {} | {bound:.4} | {} ({:.1}) | {} / {} | {} |",
            scenario.name,
            show(middle(|run| Some(run.achieved)), 1),
            show(off, 3),
            show(middle(|run| run.own.map(|(_, slack)| slack)), 3),
            show(seen, 4),
            show(own, 4),
            show(middle(|run| Some(run.short)), 1),
            (1.0 - (-rate * 50e-6).exp()) * 100.0,
            show(late[0], 3),
            show(late[1], 3),
            goals.join("; "),
        )
    }
}

/// Events a second between the first and the last.
fn rate_of(times: &[f64]) -> Option<f64> {
    let span = times.last()? - times.first()?;
    (span > 0.0).then(|| (times.len() - 1) as f64 / span)
}

fn gaps(times: &[f64]) -> Vec<f64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// The largest difference between the distribution of `gaps` and the exponential of `rate`.
fn distance_to_exponential(mut gaps: Vec<f64>, rate: f64) -> f64 {
    gaps.sort_by(f64::total_cmp);
    let count = gaps.len() as f64;
    let mut distance: f64 = 0.0;
    for (place, gap) in gaps.iter().enumerate() {
        let expected = 1.0 - (-rate * gap).exp();
        let (below, with) = (place as f64 / count, (place + 1) as f64 / count);
        distance = distance.max((expected - below).abs()).max((with - expected).abs());
    }
    distance
}

/// What a true process of that rate exceeds once in a hundred times: Kolmogorov's asymptotic value.
fn bound(requests: u32) -> f64 {
    1.6276 / f64::from(requests.saturating_sub(1)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The quantiles in the middle of each of `count` equal parts.
    fn exponential(count: u32, rate: f64) -> Vec<f64> {
        let middle = |place: u32| (f64::from(place) + 0.5) / f64::from(count);
        (0..count).map(|place| -(1.0 - middle(place)).ln() / rate).collect()
    }

    #[test]
    fn the_distance_to_itself_is_half_a_step() {
        let distance = distance_to_exponential(exponential(100, 7.0), 7.0);
        assert!((distance - 0.005).abs() < 1e-9, "{distance}");
    }

    #[test]
    fn clumps_and_a_wrong_rate_are_far_away() {
        let mut clumped = exponential(100, 500.0);
        for gap in &mut clumped {
            *gap = (*gap * 1e3).floor() / 1e3; // a timer of whole milliseconds
        }
        assert!(distance_to_exponential(clumped, 500.0) > 0.3);
        // sup |e^-x - e^-2x| = 1/4
        let distance = distance_to_exponential(exponential(1000, 1.0), 2.0);
        assert!((distance - 0.25).abs() < 2e-3, "{distance}");
    }

    #[test]
    fn the_bound_is_the_known_one() {
        assert!((bound(5000) - 0.0230).abs() < 1e-4);
    }
}
