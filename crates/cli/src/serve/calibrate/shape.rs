//! The shape of a load: what of it a built-in server can repeat.

use servebench_core::{Record, Request, Stamp};
use servebench_run::{Endings, Finished, Job};
use servebench_sim::{SimConfig, TextStyle, Timing};
use std::time::Duration;

/// Times of the server where there was no warm-up.
const UNSEEN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_millis(10));
/// A longer TTFT would leave nothing of the time for tokens.
const LONGEST_TTFT: Duration = Duration::from_secs(1);
/// Bytes of text per token from which on the server writes words instead of single letters.
const WORD: f64 = 2.5;
/// Most requests in the job of a calibration.
const MOST: usize = 200_000;
/// Tokens per second and worker from which on a load counts as heavy: a fifth of what one core takes
/// when every token has a read of its own (7 µs each, see the guide on what the client costs).
const HEAVY_TOKENS: f64 = 30_000.0;
/// Requests per second and worker from which on it does.
const HEAVY_REQUESTS: f64 = 1_000.0;
/// Seconds that a run takes at least for a calibration not to be asked for in vain.
const LONG: f64 = 10.0;

/// How a server answers.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) ttft: Duration,
    /// Per token.
    pub(super) itl: Duration,
    pub(super) tokens_per_event: u32,
    text: TextStyle,
}

/// What is expected of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    tokens_per_second: f64,
    requests_per_second: f64,
    seconds: f64,
}

impl Load {
    pub(super) fn is_heavy(self, workers: usize) -> bool {
        let workers = workers as f64;
        self.seconds >= LONG
            && (self.tokens_per_second >= HEAVY_TOKENS * workers
                || self.requests_per_second >= HEAVY_REQUESTS * workers)
    }
}

impl Shape {
    /// What the warm-up saw: the fastest of its requests, since only the first ones of a server are
    /// slow.
    pub(super) fn seen(warm: Option<&Finished>) -> Self {
        let records = warm.map_or(&[][..], |warm| &warm.records);
        let successes = records.iter().filter(|record| record.is_success());
        let latency =
            |record: &&Record| record.reply.last_token().map(|at| at.since(record.dispatched));
        successes.min_by_key(latency).and_then(Self::of).unwrap_or(Self {
            ttft: UNSEEN.0,
            itl: UNSEEN.1,
            tokens_per_event: 1,
            text: TextStyle::Words,
        })
    }

    fn of(record: &Record) -> Option<Self> {
        let reply = &record.reply;
        let (first, last) = (reply.first_token()?, reply.last_token()?);
        let events = reply.chunks.len() as f64;
        let tokens = reply.completion_tokens.map_or(events, f64::from).max(1.0);
        // Those of the first event have no gap before them.
        let gaps = (tokens - tokens / events).max(1.0);
        let bytes = reply.text.len() as f64 / tokens;
        Some(Self {
            ttft: first.since(record.dispatched).min(LONGEST_TTFT),
            itl: last.since(first).div_f64(gaps),
            tokens_per_event: (tokens / events).round().max(1.0) as u32,
            text: if bytes < WORD { TextStyle::Bytes } else { TextStyle::Words },
        })
    }

    /// A server of this shape.
    pub(super) fn server(&self) -> SimConfig {
        SimConfig {
            timing: Timing::canned(self.ttft, self.itl),
            coalesce: self.tokens_per_event,
            text: self.text,
            ..SimConfig::default()
        }
    }

    /// How long a request with so many output tokens takes.
    fn latency(&self, tokens: f64) -> f64 {
        self.ttft.as_secs_f64() + self.itl.as_secs_f64() * (tokens - 1.0).max(0.0)
    }

    /// What `job` asks of the client at `rate` requests per second.
    pub(super) fn load(&self, job: &Job, rate: f64) -> Load {
        let requests = job.requests.len().max(1) as f64;
        let latency = self.latency(mean_output(job)).max(1e-6);
        let capped = job.expected_in_flight().map_or(rate, |in_flight| in_flight as f64 / latency);
        let requests_per_second = capped.min(rate);
        Load {
            tokens_per_second: requests_per_second * mean_output(job),
            requests_per_second,
            seconds: requests / requests_per_second.max(1e-9),
        }
    }

    /// What `job` is like over `span`, with headers by which the server's log names its requests.
    ///
    /// Requests that are due over time may live longer than `span`. Then as many as will be under way
    /// at once are sent in its first quarter, and the arrivals follow from there.
    pub(super) fn job(&self, job: &Job, span: Duration) -> Job {
        let latency = self.latency(mean_output(job));
        let seconds = span.as_secs_f64();
        let in_flight = job.expected_in_flight().unwrap_or(1);
        let all_at_once = job.schedule.last().is_none_or(|last| *last == Stamp(0));
        let schedule: Vec<Stamp> = if all_at_once {
            let rounds = (seconds / latency.max(1e-6)).ceil() + 1.0;
            let count = job
                .max_concurrency
                .map_or(job.requests.len() as f64, |cap| cap as f64 * rounds)
                .min(MOST as f64);
            vec![Stamp(0); count as usize]
        } else {
            let long = latency > seconds / 2.0;
            let head = if long { span / 4 } else { Duration::ZERO };
            let before = if long { in_flight } else { 0 };
            let spread = |index: usize| Stamp::from(head.mul_f64(index as f64 / before as f64));
            let later = job.schedule.iter().map(|due| Stamp::from(due.offset() + head));
            let later = later.take_while(|due| due.offset() < span);
            (0..before).map(spread).chain(later).take(MOST).collect()
        };
        let request = |(id, request): (usize, &Request)| Request {
            id: id as u64,
            headers: [("x-request-id".to_owned(), id.to_string())].into(),
            // Of a conversation its first turn alone.
            conversation: None,
            ..request.clone()
        };
        let requests = job.requests.iter().cycle().enumerate().map(request);
        Job {
            requests: requests.take(schedule.len()).collect(),
            encoder: job.encoder.as_ref().map(|encoder| encoder.cycled(job.requests.len())),
            schedule: schedule.into(),
            release_slot: false,
            endings: Endings::default(),
            ..job.clone()
        }
    }
}

fn mean_output(job: &Job) -> f64 {
    let tokens: f64 = job.requests.iter().map(|request| f64::from(request.output_len)).sum();
    tokens / job.requests.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job(count: u64, output_len: u32, gap_ms: u64) -> Job {
        let request = |id| Request { id, output_len, ..Request::default() };
        let schedule = (0..count).map(|id| Stamp::from_millis(id * gap_ms)).collect();
        Job { schedule, ..Job::burst((0..count).map(request).collect()) }
    }

    fn shape(ttft: u64, itl: u64) -> Shape {
        let ms = Duration::from_millis;
        Shape { ttft: ms(ttft), itl: ms(itl), tokens_per_event: 1, text: TextStyle::Bytes }
    }

    const SPAN: Duration = Duration::from_secs(3);

    #[test]
    fn a_warm_up_tells_times_tokens_per_event_and_kind_of_text() {
        let mut record = Record { dispatched: Stamp::from_millis(100), ..Record::default() };
        for ms in [150, 170, 190] {
            record.reply.push_chunk(Stamp::from_millis(ms), None, 0, "some words");
        }
        record.reply.completion_tokens = Some(6);
        let mut slow = record.clone();
        slow.dispatched = Stamp(0);
        let warm = Finished { records: vec![slow, record], ..Finished::default() };
        let seen = Shape::seen(Some(&warm));
        let ms = Duration::from_millis;
        assert_eq!((seen.ttft, seen.itl, seen.tokens_per_event), (ms(50), ms(10), 2));
        assert_eq!(seen.text, TextStyle::Words);
        let unseen = Shape::seen(None);
        assert_eq!((unseen.ttft, unseen.itl), UNSEEN);
        assert_eq!(seen.server().timing, Timing::canned(ms(50), ms(10)));
    }

    #[test]
    fn a_closed_loop_is_kept_full_for_the_whole_time() {
        let closed = Job { max_concurrency: Some(4), ..job(10, 51, 0) };
        // 0.5 s each, in 3 s six rounds and one for luck.
        let calibration = shape(0, 10).job(&closed, SPAN);
        assert_eq!(calibration.requests.len(), 4 * 7);
        assert_eq!(calibration.max_concurrency, Some(4));
        assert_eq!(
            calibration.requests[13].headers,
            [("x-request-id".to_owned(), "13".to_owned())]
        );
    }

    #[test]
    fn long_requests_are_under_way_early() {
        // 10 s each at 100 requests per second: 1000 under way.
        let open = Job { in_flight_guess: Some(1000), ..job(5000, 1001, 10) };
        let calibration = shape(0, 10).job(&open, SPAN);
        let early = calibration.schedule.iter().filter(|due| **due < Stamp::from_millis(750));
        assert_eq!(early.count(), 1000);
        assert_eq!(calibration.requests.len(), 1000 + 225);
        // Short ones come as planned.
        assert_eq!(shape(0, 1).job(&open, SPAN).requests.len(), 300);
    }

    #[test]
    fn a_load_is_heavy_by_its_tokens_or_requests_if_it_lasts() {
        let heavy = |job: &Job, rate, workers| shape(50, 10).load(job, rate).is_heavy(workers);
        // 500 under way at 10 ms: 50 000 tokens per second; the run takes 13 s.
        let closed = Job { max_concurrency: Some(500), ..job(5000, 128, 0) };
        assert!(heavy(&closed, f64::INFINITY, 1));
        assert!(!heavy(&closed, f64::INFINITY, 2));
        let short = Job { max_concurrency: Some(500), ..job(1000, 128, 0) };
        assert!(!heavy(&short, f64::INFINITY, 1));
        assert!(heavy(&job(20_000, 4, 1), 1000.0, 1));
        assert!(!heavy(&job(20_000, 4, 1), 500.0, 1));
    }

    proptest! {
        #[test]
        fn every_calibration_can_be_run(
            (count, output, gap) in (1..50_u64, 0..2000_u32, 0..200_u64),
            cap in proptest::option::of(1..100_usize),
            guess in proptest::option::of(1..500_usize),
            (ttft, itl) in (0..2000_u64, 0..50_u64),
        ) {
            let job = Job { max_concurrency: cap, in_flight_guess: guess, ..job(count, output, gap) };
            let calibration = shape(ttft, itl).job(&job, SPAN);
            prop_assert_eq!(calibration.requests.len(), calibration.schedule.len());
            prop_assert!(!calibration.requests.is_empty() && calibration.requests.len() <= MOST);
            prop_assert!(calibration.schedule.is_sorted());
            prop_assert!(calibration.schedule.iter().all(|due| due.offset() < SPAN));
            for (index, request) in calibration.requests.iter().enumerate() {
                prop_assert_eq!(request.id, index as u64);
            }
        }
    }
}
