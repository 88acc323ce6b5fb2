//! The console table, character by character.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod common;

use common::{broken, cached, info, measured, options, refused, report, slos, success};
use servebench_core::Stamp;
use servebench_metrics::Options;
use servebench_report::{RequestRate, RunInfo, table};
use std::time::Duration;

#[test]
fn a_plain_run_has_the_python_tools_rows_and_tells_of_its_stamps() {
    let records = [success(0, 0), success(1, 300)];
    let requests = measured(&records);
    let expected = "
============ Serving Benchmark Result ============
Backend:                                 sglang    .
Traffic request rate:                    inf       .
Max request concurrency:                 not set   .
Successful requests:                     2         .
Benchmark duration (s):                  0.60      .
Total input tokens:                      16        .
Total input text tokens:                 16        .
Total generated tokens:                  8         .
Total generated tokens (retokenized):    10        .
Request throughput (req/s):              3.33      .
Input token throughput (tok/s):          26.67     .
Output token throughput (tok/s):         13.33     .
Peak output token throughput (tok/s):    8.00      .
Peak concurrent requests:                1         .
Total token throughput (tok/s):          40.00     .
Concurrency:                             0.83      .
----------------End-to-End Latency----------------
Mean E2E Latency (ms):                   250.00    .
Median E2E Latency (ms):                 250.00    .
P90 E2E Latency (ms):                    250.00    .
P95 E2E Latency (ms):                    250.00    .
P99 E2E Latency (ms):                    250.00    .
---------------Time to First Token----------------
Mean TTFT (ms):                          100.00    .
Median TTFT (ms):                        100.00    .
P90 TTFT (ms):                           100.00    .
P95 TTFT (ms):                           100.00    .
P99 TTFT (ms):                           100.00    .
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          50.00     .
Median TPOT (ms):                        50.00     .
P90 TPOT (ms):                           50.00     .
P95 TPOT (ms):                           50.00     .
P99 TPOT (ms):                           50.00     .
---------------Inter-Token Latency----------------
Mean ITL (ms):                           50.00     .
Median ITL (ms):                         50.00     .
P90 ITL (ms):                            50.00     .
P95 ITL (ms):                            50.00     .
P99 ITL (ms):                            50.00     .
Max ITL (ms):                            50.00     .
----------------------Client----------------------
Receive stamps:                          user      .
==================================================
";
    // Dots stand for the ends of padded lines.
    let expected = expected.replace(".\n", "\n");
    assert_eq!(table(&report(&requests, &options(), info())), expected);
}

#[test]
fn objectives_and_cache_come_in_sections() {
    let records = [cached(success(0, 0), 1, Some(2)), cached(success(1, 0), 3, None)];
    let requests = measured(&records);
    let options = Options { slos: slos(), ..options() };
    let info = RunInfo {
        cache_report: true,
        request_rate: RequestRate::PerSecond(50.0),
        max_concurrency: Some(4),
        server_accept_length: Some(2.5),
        ..info()
    };
    let text = table(&report(&requests, &options, info));
    let part = |from: &str, to: &str| {
        let start = text.find(from).unwrap();
        let end = text[start..].find(to).unwrap();
        text[start..start + end].replace(" \n", " .\n")
    };
    assert_eq!(
        part("Traffic", "Successful"),
        "Traffic request rate:                    50.0      .
Max request concurrency:                 4         .
"
    );
    assert_eq!(
        part("Accept", "----------------End"),
        "Accept length:                           2.50      .
---------------------Goodput----------------------
SLOs (ms):                               ttft:500 tpot:50 e2el:3
Request goodput (req/s):                 0.00      .
SLO attainment (%):                      0.00      .
TTFT SLO attainment (%):                 100.00    .
TPOT SLO attainment (%):                 100.00    .
E2EL SLO attainment (%):                 0.00      .
"
    );
    assert_eq!(
        part("----------------Cache", "----------------------Client"),
        "----------------Cache Hit Details-----------------
Total prompt tokens:                     16        .
Total cached tokens:                     6         .
  Device:                                4         .
  Host:                                  0         .
  Storage (X):                           2         .
Cache hit rate:                          37.5%
  Device:                                66.7%
  Host:                                  0.0%
  Storage (X):                           33.3%
"
    );
}

#[test]
fn a_run_without_a_success_shows_zeros() {
    let records = [refused(0), refused(1)];
    let requests = measured(&records);
    let text = table(&report(&requests, &options(), RunInfo { cache_report: true, ..info() }));
    for row in [
        "Successful requests:                     0         \n",
        "Benchmark duration (s):                  0.00      \n",
        "Request throughput (req/s):              0.00      \n",
        "Peak concurrent requests:                0         \n",
        "P99 E2E Latency (ms):                    0.00      \n",
        "Max ITL (ms):                            0.00      \n",
        "Cache hit rate:                          0.0%\n",
        "----------------------Client----------------------\n",
        "Failed requests:                         2         \n",
        "Failures (status):                       2         \n",
    ] {
        assert!(text.contains(row), "no `{row}` in\n{text}");
    }
    assert!(!text.contains("NaN") && !text.contains("inf\n"));
}

#[test]
fn our_own_rows_stand_last_and_only_when_they_matter() {
    let mut late = success(1, 0);
    late.dispatched = Stamp::from_millis(80);
    late.lateness = Some(Duration::from_millis(2));
    late.reply.rare_mut().connect = Some(Duration::from_millis(3));
    late.reply.rare_mut().reconnects = 1;
    late.reply.rare_mut().retries = 2;
    let records = [success(0, 0), late, broken(2)];
    let requests = measured(&records);
    let paced = RunInfo {
        request_rate: servebench_report::RequestRate::PerSecond(10.0),
        interrupted: true,
        partial: true,
        simulated: true,
        ..info()
    };
    let burst =
        RunInfo { request_rate: servebench_report::RequestRate::default(), ..paced.clone() };
    let text = table(&report(&requests, &options(), paced));
    let labels = |text: &str| -> Vec<String> {
        let (_, own) = text.split_once("Client").unwrap();
        own.lines().filter_map(|line| Some(line.split_once(':')?.0.to_owned())).collect()
    };
    // When all are due at once, waiting for a slot is no news.
    let silent = table(&report(&requests, &options(), burst));
    assert!(!labels(&silent).iter().any(|label| label.contains("intended")), "{silent}");
    let labels = labels(&text);
    assert_eq!(
        labels,
        [
            "Receive stamps",
            "Failed requests",
            "Failures (reset)",
            "Requests sent per second",
            "Mean queue wait (ms)",
            "P99 queue wait (ms)",
            "Mean TTFT from intended (ms)",
            "P99 TTFT from intended (ms)",
            "Mean E2E from intended (ms)",
            "P99 E2E from intended (ms)",
            "P99 timer lateness (ms)",
            "Connects inside requests",
            "Mean connect time (ms)",
            "Reconnects",
            "Retries",
            "Interrupted",
            "Partial",
            "Simulated server",
        ]
    );
    assert!(text.ends_with(&format!("\n{}\n", "=".repeat(50))));
    assert!(text.find("Client").unwrap() > text.find("Max ITL").unwrap());
}

#[test]
fn the_table_says_which_inter_token_latency_it_shows() {
    let mut record = success(0, 0);
    record.reply.chunks = servebench_core::Chunks::default();
    for (ms, tokens) in [(100, 1), (200, 4)] {
        record.reply.push_stamp(Stamp::from_millis(ms), Some(tokens), 0);
    }
    let records = [record];
    let requests = measured(&records);
    let mut report = report(&requests, &Options::default(), info());
    report.itl_rule = servebench_metrics::ItlRule::PerChunk;
    let text = table(&report);
    for row in [
        "Mean ITL (ms):                           100.00    \n",
        "Inter-Token Latency above is:            per chunk \n",
        "Median ITL per token (ms):               25.00     \n",
    ] {
        assert!(text.contains(row), "no `{row}` in\n{text}");
    }
}

/// A request of which the second and third token were read together, the reads 40 ms apart.
fn received(id: u64, lag: Duration) -> servebench_core::Record {
    let mut record = success(id, 0);
    let mut chunks = servebench_core::Chunks::default();
    for (after, ms) in [(90, 100), (150, 190), (150, 190), (230, 240)] {
        chunks.read_after(Stamp::from_millis(after));
        chunks.push(Stamp::from_millis(ms), Some(1), 0);
    }
    record.reply.chunks = chunks;
    let mut lags = servebench_core::ReadLag::default();
    lags.add(lag, Duration::ZERO);
    lags.add(lag * 3, Duration::ZERO);
    record.reply.read_lag = Some(lags);
    record
}

#[test]
fn bounds_are_shown_where_they_matter() {
    let records = [received(0, Duration::from_micros(10)), received(1, Duration::from_millis(1))];
    let requests = measured(&records);
    let text = table(&report(&requests, &options(), info()));
    let (_, own) = text.split_once("Client----------------------\n").unwrap();
    let rows = "Receive stamps:                          kernel    .
Read lag, P50 / P99 / max (ms):          1.01 / 1.98 / 3.00.
Exact to 0.1 ms, TTFT / ITL (%):         100.00 / 33.33.
P99 ITL, by bounds (ms):                 50.00 to 90.00.
";
    let rows = rows.replace(".\n", "\n");
    assert!(own.starts_with(&rows), "{own}");

    // Nothing is bounded, nothing is said.
    let mut exact = received(2, Duration::from_micros(10));
    exact.reply.chunks = success(2, 0).reply.chunks;
    let records = [exact];
    let text = table(&report(&measured(&records), &options(), info()));
    assert!(text.contains("Exact to 0.1 ms, TTFT / ITL (%):         100.00 / 100.00\n"), "{text}");
    assert!(!text.contains("by bounds"), "{text}");
}

#[test]
fn embeddings_have_no_token_rows() {
    let mut record = success(0, 0);
    record.reply.chunks = servebench_core::Chunks::default();
    let records = [record];
    let requests = measured(&records);
    let text = table(&report(&requests, &options(), RunInfo { embeddings: true, ..info() }));
    assert!(text.contains("Mean E2E Latency (ms):                   300.00    \n"));
    for absent in ["generated", "Output", "Peak output", "Total token", "TTFT", "TPOT", "ITL"] {
        assert!(!text.contains(absent), "{absent}");
    }
}
