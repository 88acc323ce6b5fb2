//! What the verdict makes of a run's evidence.

#![allow(clippy::unwrap_used, reason = "tests may fail")]

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use servebench_metrics::verdict::{
    Calibrated, Delay, Evidence, Judgement, Stalls, Stamped, Verdict, judge,
};

/// A server with TTFT 50 ms and ITL 10 ms, and a client that was hardly there.
fn calm() -> Evidence {
    let exact =
        |median, p99| Some(Stamped { median, p99, exact_share: Some(0.999), p99_moves: Some(0.0) });
    Evidence {
        duration: 10.0,
        succeeded: 1000,
        lateness: Some(Delay { p50: 3e-5, p99: 1.2e-4 }),
        read_lag: Some(Delay { p50: 5e-5, p99: 2e-4 }),
        worker_cpu: vec![0.41],
        process_cpu: Some(0.2),
        stalls: Some(Stalls::default()),
        ttft: exact(0.05, 0.08),
        itl: exact(0.01, 0.012),
        e2e_median: Some(0.7),
        tokens_per_second: Some(10_000.0),
        retransmits: Some(0),
        ..Evidence::default()
    }
}

/// The same with stamps of the reads.
fn unstamped() -> Evidence {
    let own = |stamped: Option<Stamped>| {
        stamped.map(|stamped| Stamped { exact_share: None, p99_moves: None, ..stamped })
    };
    let calm = calm();
    Evidence { ttft: own(calm.ttft), itl: own(calm.itl), read_lag: None, ..calm }
}

#[track_caller]
fn weightiest(evidence: &Evidence, verdict: Verdict, words: &str) {
    let judgement = judge(evidence);
    assert_eq!(judgement.verdict, verdict, "{judgement:#?}");
    assert!(judgement.reasons[0].text.contains(words), "{judgement:#?}");
}

#[test]
fn a_client_with_head_room_measures_the_server() {
    for evidence in [calm(), unstamped()] {
        let Judgement { verdict, reasons } = judge(&evidence);
        assert_eq!(verdict, Verdict::ServerBound, "{reasons:#?}");
        assert!(reasons.len() >= 7);
    }
    assert_eq!(calm().summary(), "lateness p99 0.12 ms, read lag p99 0.20 ms, busiest worker 41 %");
}

#[test]
fn without_a_success_there_is_nothing_to_judge() {
    let stalled = Stalls { count: 9, longest: 0.2, total: 5.0 };
    let none = Evidence { succeeded: 0, worker_cpu: vec![0.99], stalls: Some(stalled), ..calm() };
    weightiest(&none, Verdict::Undecided, "no request succeeded");
    // Unless it was the client that could not.
    let starved = Evidence { client_failures: 5, ..none };
    weightiest(&starved, Verdict::ClientBound, "want of the client's own descriptors");
}

#[test]
fn late_arrivals_are_the_clients_load() {
    let late = |p99| Evidence { lateness: Some(Delay { p50: 1e-4, p99 }), ..calm() };
    assert_eq!(judge(&late(4e-3)).verdict, Verdict::ServerBound, "8 % of the median TTFT");
    weightiest(&late(6e-3), Verdict::Undecided, "6.00 ms at p99 (limit 25.00 ms)");
    weightiest(&late(30e-3), Verdict::ClientBound, "30.00 ms at p99 (limit 25.00 ms)");
}

#[test]
fn a_saturated_loop_limits_a_closed_loop_even_with_exact_stamps() {
    let busy = |closed_loop| Evidence { worker_cpu: vec![0.1, 0.97], closed_loop, ..calm() };
    weightiest(&busy(true), Verdict::ClientBound, "worker 1 was on the processor 97.0 %");
    // Its open loop kept the schedule and its stamps are the kernel's; it had no head-room.
    weightiest(&busy(false), Verdict::Undecided, "latencies hold");
    let unstamped = Evidence { worker_cpu: vec![0.97], ..unstamped() };
    weightiest(&unstamped, Verdict::ClientBound, "worker 0 was on the processor 97.0 %");
}

#[test]
fn moderate_load_leaves_doubt_only_without_kernel_stamps() {
    let busy = |evidence| Evidence { worker_cpu: vec![0.6], ..evidence };
    assert_eq!(judge(&busy(calm())).verdict, Verdict::ServerBound);
    weightiest(&busy(unstamped()), Verdict::Undecided, "60.0 % of the time");
}

#[test]
fn late_reads_matter_as_far_as_their_bounds_do() {
    let read_late = Evidence { read_lag: Some(Delay { p50: 4e-3, p99: 8e-3 }), ..calm() };
    assert_eq!(judge(&read_late).verdict, Verdict::ServerBound, "the stamps are the kernel's");
    let moved = |p99_moves| Evidence {
        itl: Some(Stamped {
            exact_share: Some(0.8),
            p99_moves: Some(p99_moves),
            ..calm().itl.unwrap()
        }),
        ..read_late.clone()
    };
    weightiest(&moved(0.0006), Verdict::Undecided, "80.0 % of the ITL samples");
    weightiest(&moved(0.003), Verdict::ClientBound, "could move p99 by 25.0 % (limit 10 %)");
    weightiest(&moved(0.2), Verdict::ClientBound, "could move p99 by over 1000 % (limit 10 %)");
}

#[test]
fn a_stop_of_the_process_turns_the_verdict() {
    let stalls = |count, longest, total| {
        let stalls = Some(Stalls { count, longest, total });
        (Evidence { stalls, ..calm() }, Evidence { stalls, ..unstamped() })
    };
    // 200 ms of 10 s are 2 %: they are in every 99th percentile.
    let (stamped, unstamped) = stalls(1, 0.2, 0.2);
    weightiest(&stamped, Verdict::ClientBound, "stood still 1 times, for 200.00 ms at most, 2.0 %");
    weightiest(&unstamped, Verdict::ClientBound, "stood still");
    // Many short ones are a busy loop: exact stamps see through them.
    let (stamped, unstamped) = stalls(100, 0.008, 0.7);
    assert_eq!(judge(&stamped).verdict, Verdict::ServerBound);
    weightiest(&unstamped, Verdict::ClientBound, "stood still 100 times");
    // One long stop in a long run touches no percentile that is usually read.
    let long_run = Evidence { duration: 600.0, ..stalls(1, 0.2, 0.2).0 };
    weightiest(&long_run, Verdict::Undecided, "stood still");
}

#[test]
fn empty_slots_failures_and_a_known_limit_are_the_clients() {
    let slow = Evidence { turnaround_p99: Some(0.08), closed_loop: true, ..calm() };
    weightiest(&slow, Verdict::ClientBound, "stood empty for 80.00 ms at p99 (limit 70.00 ms)");
    let starved = |client_failures| Evidence { client_failures, ..calm() };
    weightiest(&starved(1), Verdict::Undecided, "1 requests failed");
    weightiest(&starved(50), Verdict::ClientBound, "50 requests failed");
    let calibrated = |saturation, ttft_bias| Evidence {
        calibrated: Some(Calibrated {
            saturation_tokens_per_second: Some(saturation),
            ttft_bias: Some(ttft_bias),
            itl_error_p99: Some(2e-4),
        }),
        ..calm()
    };
    assert_eq!(judge(&calibrated(100_000.0, 1e-4)).verdict, Verdict::ServerBound);
    weightiest(&calibrated(15_000.0, 1e-4), Verdict::Undecided, "66.7 % of the 15000");
    weightiest(&calibrated(11_000.0, 1e-4), Verdict::ClientBound, "90.9 % of the 11000");
    weightiest(
        &calibrated(1e6, 3e-3),
        Verdict::Undecided,
        "TTFT on average 3.00 ms (limit 2.50 ms)",
    );
}

#[test]
fn little_evidence_decides_nothing() {
    weightiest(&Evidence::default(), Verdict::Undecided, "no request succeeded");
    weightiest(&Evidence { succeeded: 3, ..calm() }, Verdict::Undecided, "3 requests succeeded");
    weightiest(&Evidence { duration: 0.1, ..calm() }, Verdict::Undecided, "in 0.10 s");
    weightiest(&Evidence { unsent: 7, ..calm() }, Verdict::Undecided, "7 requests of the plan");
    weightiest(&Evidence { process_cpu: Some(0.99), ..calm() }, Verdict::Undecided, "99.0 %");
    weightiest(&Evidence { retransmits: Some(200), ..calm() }, Verdict::Undecided, "200 segments");
}

prop_compose! {
    fn a_delay()(p50 in 0.0..0.05_f64, more in 0.0..0.1_f64) -> Delay {
        Delay { p50, p99: p50 + more }
    }
}

prop_compose! {
    fn a_latency()(
        median in 0.0..0.1_f64,
        more in 0.0..0.2_f64,
        stamps in option::of((0.0..=1.0_f64, option::of(0.0..0.05_f64))),
    ) -> Stamped {
        Stamped {
            median,
            p99: median + more,
            exact_share: stamps.map(|(exact, _)| exact),
            p99_moves: stamps.and_then(|(_, moves)| moves),
        }
    }
}

prop_compose! {
    fn evidence()(
        (duration, succeeded, unsent, client_failures) in
            (0.0..60.0_f64, 0..2000_u64, 0..2_u64, 0..30_u64),
        closed_loop in any::<bool>(),
        lateness in option::of(a_delay()),
        turnaround_p99 in option::of(0.0..0.05_f64),
        read_lag in option::of(a_delay()),
        worker_cpu in vec(0.0..=1.0_f64, 0..4),
        process_cpu in option::of(0.0..=1.0_f64),
        stalls in option::of((0..50_u64, 0.0..0.3_f64, 0.0..1.0_f64)),
        (ttft, itl) in (option::of(a_latency()), option::of(a_latency())),
        e2e_median in option::of(0.0..2.0_f64),
        tokens_per_second in option::of(0.0..200_000.0_f64),
        retransmits in option::of(0..300_u64),
        calibrated in option::of((1.0..300_000.0_f64, -0.02..0.02_f64, 0.0..0.01_f64)),
    ) -> Evidence {
        Evidence {
            duration, succeeded, unsent, client_failures, closed_loop, lateness, turnaround_p99,
            read_lag, worker_cpu, process_cpu, ttft, itl, e2e_median, tokens_per_second, retransmits,
            stalls: stalls.map(|(count, longest, total)| Stalls { count, longest, total }),
            calibrated: calibrated.map(|(saturation, bias, itl)| Calibrated {
                saturation_tokens_per_second: Some(saturation),
                ttft_bias: Some(bias),
                itl_error_p99: Some(itl),
            }),
        }
    }
}

/// Every way in which evidence against the client can grow.
const WORSE: &[fn(&mut Evidence, f64)] = &[
    |e, by| e.lateness.iter_mut().for_each(|lateness| lateness.p99 += by),
    |e, by| e.turnaround_p99.iter_mut().for_each(|turnaround| *turnaround += by),
    |e, by| e.read_lag.iter_mut().for_each(|lag| lag.p99 += by),
    |e, by| e.worker_cpu.iter_mut().for_each(|share| *share += by),
    |e, by| e.worker_cpu.push(by),
    |e, by| e.process_cpu.iter_mut().for_each(|share| *share += by),
    |e, by| e.stalls.iter_mut().for_each(|stalls| stalls.longest += by),
    |e, by| e.stalls.iter_mut().for_each(|stalls| stalls.total += by),
    |e, _| e.stalls.iter_mut().for_each(|stalls| stalls.count += 1),
    |e, by| e.ttft.iter_mut().filter_map(|s| s.p99_moves.as_mut()).for_each(|moves| *moves += by),
    |e, by| e.itl.iter_mut().filter_map(|s| s.p99_moves.as_mut()).for_each(|moves| *moves += by),
    |e, by| e.tokens_per_second.iter_mut().for_each(|rate| *rate *= 1.0 + by),
    |e, _| e.client_failures += 1,
    |e, _| e.unsent += 1,
    |e, _| e.closed_loop = true,
    |e, _| e.retransmits.iter_mut().for_each(|segments| *segments += 10),
    // Without kernel stamps there is nothing that would keep a busy client's latencies true.
    |e, _| {
        let narrow = |s: &Stamped| s.p99_moves.is_none_or(|moves| moves < 0.03 * s.p99);
        for latency in e.ttft.iter_mut().chain(&mut e.itl).filter(|s| narrow(s)) {
            (latency.exact_share, latency.p99_moves) = (None, None);
        }
    },
];

proptest! {
    #[test]
    fn worse_evidence_never_makes_the_verdict_lighter(
        before in evidence(), way in 0..WORSE.len(), by in 0.0..0.5_f64,
    ) {
        let mut after = before.clone();
        WORSE[way](&mut after, by);
        let (first, second) = (judge(&before), judge(&after));
        prop_assert!(second.verdict >= first.verdict, "{first:#?}\n{second:#?}");
    }

    #[test]
    fn the_verdict_is_that_of_its_first_reason(evidence in evidence()) {
        let Judgement { verdict, reasons } = judge(&evidence);
        prop_assert_eq!(reasons.first().map(|reason| reason.weight), Some(verdict));
        prop_assert!(reasons.is_sorted_by(|a, b| a.weight >= b.weight));
        for reason in &reasons {
            prop_assert!(!reason.text.is_empty() && !reason.text.contains("NaN"), "{}", reason.text);
            // What is held against the client has a limit that it went over.
            prop_assert!(
                reason.weight == Verdict::ServerBound || reason.text.contains("(limit ")
                    || reason.text.contains("(at least "),
                "{}", reason.text
            );
        }
    }
}
