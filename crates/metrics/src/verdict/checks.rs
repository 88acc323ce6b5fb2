//! The single checks: each weighs one piece of evidence and says its figure and limit.

use super::limits::{
    BOUNDS, CALIBRATED_ITL, CALIBRATED_ITL_FLOOR, CALIBRATED_TTFT, CALIBRATED_TTFT_FLOOR,
    CLIENT_FAILURES, EXACT, LATENESS, LATENESS_FLOOR, LEAST_DURATION, LEAST_REQUESTS, LONG_STALL,
    PROCESS, RETRANSMITS, SATURATION, STALLED, TURNAROUND, TURNAROUND_FLOOR, WORKER,
    WORKER_UNSTAMPED,
};
use super::{Delay, Evidence, Reason, Stamped, Verdict};

/// All of them, in the order in which reasons of one weight are given.
pub(super) fn reasons(evidence: &Evidence) -> Vec<Reason> {
    // How a client sent what nobody answered says nothing about any number.
    let shape: &[Check] = if evidence.succeeded == 0 { &[] } else { &SHAPE };
    OUTCOME.iter().chain(shape).filter_map(|check| check(evidence)).collect()
}

type Check = fn(&Evidence) -> Option<Reason>;

/// What became of the requests.
const OUTCOME: [Check; 3] = [|evidence| Some(enough(evidence)), failures, unsent];

/// What may have shaped the numbers of those that succeeded.
const SHAPE: [Check; 11] = [
    lateness,
    turnaround,
    workers,
    stalls,
    |evidence| bounds("TTFT", evidence.ttft.as_ref()),
    |evidence| bounds("ITL", evidence.itl.as_ref()),
    read_lag,
    process,
    saturation,
    calibration,
    network,
];

fn enough(evidence: &Evidence) -> Reason {
    let Evidence { succeeded, duration, .. } = evidence;
    if *succeeded == 0 {
        let text = format!("no request succeeded (at least {LEAST_REQUESTS} are needed to judge)");
        return Reason { weight: Verdict::Undecided, text };
    }
    let enough = *succeeded >= LEAST_REQUESTS && *duration >= LEAST_DURATION;
    let weight = if enough { Verdict::ServerBound } else { Verdict::Undecided };
    Reason {
        weight,
        text: format!(
            "{succeeded} requests succeeded in {duration:.2} s (at least {LEAST_REQUESTS} and \
             {LEAST_DURATION} s are needed to judge)"
        ),
    }
}

fn failures(evidence: &Evidence) -> Option<Reason> {
    let failed = evidence.client_failures;
    let share = failed as f64 / (evidence.succeeded + failed).max(1) as f64;
    let weight = match failed {
        0 => return None,
        _ if share >= CLIENT_FAILURES => Verdict::ClientBound,
        _ => Verdict::Undecided,
    };
    Some(Reason {
        weight,
        text: format!(
            "{failed} requests failed for want of the client's own descriptors, ports or memory, {} \
             of all (limit {:.0} %)",
            percent(share),
            CLIENT_FAILURES * 100.0
        ),
    })
}

fn unsent(evidence: &Evidence) -> Option<Reason> {
    let unsent = evidence.unsent;
    let text = format!("{unsent} requests of the plan were never sent (limit 0)");
    if unsent > 0 { Some(Reason { weight: Verdict::Undecided, text }) } else { None }
}

fn lateness(evidence: &Evidence) -> Option<Reason> {
    let Delay { p50, p99 } = evidence.lateness?;
    let limits = LATENESS.of(evidence.server_delay(), LATENESS_FLOOR);
    Some(Reason {
        weight: limits.weigh(p99),
        text: format!(
            "requests left {} late at the median and {} at p99 (limit {})",
            milliseconds(p50),
            milliseconds(p99),
            milliseconds(limits.certain)
        ),
    })
}

fn turnaround(evidence: &Evidence) -> Option<Reason> {
    let p99 = evidence.turnaround_p99?;
    let limits = TURNAROUND.of(evidence.e2e_median.unwrap_or(0.0), TURNAROUND_FLOOR);
    Some(Reason {
        weight: limits.weigh(p99),
        text: format!(
            "a free slot stood empty for {} at p99 (limit {})",
            milliseconds(p99),
            milliseconds(limits.certain)
        ),
    })
}

fn workers(evidence: &Evidence) -> Option<Reason> {
    let (worker, share) = evidence.busiest_worker()?;
    let stamped = evidence.stamps_hold();
    let limits = if stamped { WORKER } else { WORKER_UNSTAMPED };
    let mut weight = limits.weigh(share);
    let mut text = format!(
        "worker {worker} was on the processor {} of the time (limit {:.0} %)",
        percent(share),
        limits.certain * 100.0
    );
    if weight > Verdict::ServerBound && stamped {
        text.push_str("; latencies hold, their stamps are the kernel's");
        if !evidence.closed_loop {
            // Requests that left late are held against it elsewhere. A higher rate was not tried.
            weight = weight.min(Verdict::Undecided);
        }
    }
    Some(Reason { weight, text })
}

fn stalls(evidence: &Evidence) -> Option<Reason> {
    let stalls = evidence.stalls?;
    let share = stalls.total / evidence.duration.max(f64::MIN_POSITIVE);
    let long = stalls.longest >= LONG_STALL;
    // Short ones are the turns of a busy loop, which exact stamps see through.
    let weight = if stalls.count == 0 || (evidence.stamps_hold() && !long) {
        Verdict::ServerBound
    } else {
        let doubt = if long { Verdict::Undecided } else { Verdict::ServerBound };
        STALLED.weigh(share).max(doubt)
    };
    Some(Reason {
        weight,
        text: format!(
            "event loops stood still {} times, for {} at most, {} of the run (limit {:.0} %)",
            stalls.count,
            milliseconds(stalls.longest),
            percent(share),
            STALLED.certain * 100.0
        ),
    })
}

fn bounds(name: &str, latency: Option<&Stamped>) -> Option<Reason> {
    let latency = latency?;
    let Some((exact, weight)) = latency.exact_share.zip(latency.weight()) else {
        let text = format!("the stamps of {name} are those of the reads, not of the kernel");
        return Some(Reason { weight: Verdict::ServerBound, text });
    };
    let exact_stamps = format!("{} of the {name} samples have exact stamps", percent(exact));
    let text = match latency.moves() {
        Some(moves) => {
            // Of a latency of nothing any bound is an endless share.
            let share = if moves > 10.0 { "over 1000 %".into() } else { percent(moves) };
            let limit = BOUNDS.certain * 100.0;
            format!("{exact_stamps}; the others could move p99 by {share} (limit {limit:.0} %)")
        }
        None => format!("{exact_stamps} (limit {:.0} %)", EXACT * 100.0),
    };
    Some(Reason { weight, text })
}

fn read_lag(evidence: &Evidence) -> Option<Reason> {
    let Delay { p50, p99 } = evidence.read_lag?;
    // What a late read does to stamps and slots is weighed there.
    Some(Reason {
        weight: Verdict::ServerBound,
        text: format!(
            "bytes waited {} at the median and {} at p99 to be read",
            milliseconds(p50),
            milliseconds(p99)
        ),
    })
}

fn process(evidence: &Evidence) -> Option<Reason> {
    let share = evidence.process_cpu?;
    let weight = if share >= PROCESS { Verdict::Undecided } else { Verdict::ServerBound };
    Some(Reason {
        weight,
        text: format!(
            "the process used {} of the processor time it may use (limit {:.0} %)",
            percent(share),
            PROCESS * 100.0
        ),
    })
}

fn saturation(evidence: &Evidence) -> Option<Reason> {
    let saturation = evidence.calibrated?.saturation_tokens_per_second?;
    let rate = evidence.tokens_per_second?;
    let share = rate / saturation.max(f64::MIN_POSITIVE);
    Some(Reason {
        weight: SATURATION.weigh(share),
        text: format!(
            "{rate:.0} tokens/s are {} of the {saturation:.0} that this client was calibrated to \
             take (limit {:.0} %)",
            percent(share),
            SATURATION.certain * 100.0
        ),
    })
}

fn calibration(evidence: &Evidence) -> Option<Reason> {
    let calibrated = evidence.calibrated?;
    let ttft = calibrated.ttft_bias.map(f64::abs).zip(evidence.ttft);
    let itl = calibrated.itl_error_p99.map(f64::abs).zip(evidence.itl);
    let mut texts = Vec::new();
    let mut weight = Verdict::ServerBound;
    let mut weigh = |name: &str, error: f64, limit: f64| {
        if error >= limit {
            weight = Verdict::Undecided;
        }
        let (error, limit) = (milliseconds(error), milliseconds(limit));
        texts.push(format!("{name} {error} (limit {limit})"));
    };
    if let Some((error, ttft)) = ttft {
        let limit = (CALIBRATED_TTFT * ttft.median).max(CALIBRATED_TTFT_FLOOR);
        weigh("TTFT on average", error, limit);
    }
    if let Some((error, itl)) = itl {
        weigh("ITL at p99", error, (CALIBRATED_ITL * itl.median).max(CALIBRATED_ITL_FLOOR));
    }
    if texts.is_empty() {
        return None;
    }
    Some(Reason {
        weight,
        text: format!("on a server with known times the client was off: {}", texts.join(", ")),
    })
}

fn network(evidence: &Evidence) -> Option<Reason> {
    let segments = evidence.retransmits?;
    let share = segments as f64 / evidence.succeeded.max(1) as f64;
    let weight = if share >= RETRANSMITS { Verdict::Undecided } else { Verdict::ServerBound };
    Some(Reason {
        weight,
        text: format!(
            "TCP sent {segments} segments again on this machine, {} of the requests (limit {:.0} %)",
            percent(share),
            RETRANSMITS * 100.0
        ),
    })
}

pub(super) fn milliseconds(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1e3)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}
