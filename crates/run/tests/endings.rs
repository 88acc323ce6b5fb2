//! What ends a run before everything is sent and answered, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]

use servebench_core::{Backend, Clock, FailureKind, Reply, Request, Stamp};
use servebench_run::{
    Encoder, EndedBy, Endings, Finished, Job, Progress, Silence, Stop, TokioClock, UnderWay,
    run_here, run_on_threads,
};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(seconds: u64) -> Stamp {
    Stamp::from_millis(seconds * 1000)
}

/// Answers with a token a second, as many as were asked for; 0 is a server that answers nothing.
struct Server(TokioClock);

impl Backend for Server {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        for _ in 0..request.output_len {
            self.0.sleep_until(Stamp::from(self.0.now().offset() + seconds(1))).await;
            reply.push_chunk(self.0.now(), Some(1), 0, "t");
        }
        if request.output_len == 0 {
            pending::<()>().await;
        }
    }
}

/// A burst of requests for so many tokens each.
fn job(output_lens: &[u32], max_concurrency: Option<usize>, endings: Endings) -> Job {
    let request = |(id, output_len): (usize, &u32)| Request {
        id: id as u64,
        output_len: *output_len,
        ..Request::default()
    };
    let requests = output_lens.iter().enumerate().map(request).collect();
    Job { max_concurrency, endings, ..Job::burst(requests) }
}

async fn run_with(job: &Job, progress: &Arc<Progress>) -> Finished {
    let clock = TokioClock::default();
    run_here(job, Server(clock.clone()), clock, progress, &Stop::default()).await.unwrap()
}

fn run(job: &Job) -> Finished {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(run_with(job, &Arc::default()))
}

/// How each request failed, and with how many tokens.
fn fates(finished: &Finished) -> Vec<(Option<FailureKind>, usize)> {
    let fate = |record: &servebench_core::Record| {
        (record.reply.failure.as_ref().map(|failure| failure.kind), record.reply.chunks.len())
    };
    finished.records.iter().map(fate).collect()
}

#[test]
fn when_the_time_is_over_nothing_is_sent_and_what_is_under_way_has_a_grace() {
    let endings = Endings { duration: Some(seconds(10)), grace: seconds(5), no_progress: None };
    // Three seconds each, one at a time: the fourth is under way at 10 and ends at 12.
    let finished = run(&job(&[3; 100], Some(1), endings));
    assert_eq!(fates(&finished), [(None, 3); 4]);
    assert_eq!((finished.unsent, finished.end), (96, at(12)));
    assert_eq!(finished.ended_by, Some(EndedBy::Duration));
}

#[test]
fn what_takes_longer_than_the_grace_is_cut_off_with_what_it_has() {
    let grace = Duration::from_millis(4500);
    let endings = Endings { duration: Some(seconds(10)), grace, no_progress: None };
    let finished = run(&job(&[9, 20, 0], Some(3), endings));
    use FailureKind::Cancelled;
    assert_eq!(fates(&finished), [(None, 9), (Some(Cancelled), 14), (Some(Cancelled), 0)]);
    assert_eq!((finished.unsent, finished.end), (0, Stamp::from_millis(14_500)));
    assert_eq!(finished.ended_by, Some(EndedBy::Duration));
    let words = &finished.records[1].reply.failure.as_ref().unwrap().detail;
    assert_eq!(&**words, "the run's time and its grace were over");
}

#[test]
fn a_run_that_is_done_in_time_was_ended_by_nobody() {
    // The second ends in the grace, after the order and not because of it.
    let endings = Endings { duration: Some(seconds(10)), grace: seconds(5), no_progress: None };
    for lens in [&[3, 4][..], &[3, 12]] {
        let finished = run(&job(lens, None, endings));
        assert_eq!((finished.unsent, finished.ended_by), (0, None), "{lens:?}");
        assert!(finished.records.iter().all(servebench_core::Record::is_success));
    }
}

#[test]
fn a_schedule_that_goes_on_is_cut_at_the_time() {
    let duration = Some(Duration::from_millis(3500));
    let endings = Endings { duration, ..Endings::default() };
    let schedule = (0..10).map(at).collect();
    let finished = run(&Job { schedule, ..job(&[1; 10], None, endings) });
    // What was sent at 3 has no grace.
    assert_eq!((finished.records.len(), finished.unsent), (4, 6));
    assert_eq!(fates(&finished)[2..], [(None, 1), (Some(FailureKind::Cancelled), 0)]);
    assert_eq!(finished.ended_by, Some(EndedBy::Duration));
}

#[test]
fn a_run_without_progress_ends_with_what_it_has() {
    let endings = Endings { no_progress: Some(seconds(60)), ..Endings::default() };
    let finished = run(&job(&[2, 0, 5, 7], Some(2), endings));
    let cancelled = Some(FailureKind::Cancelled);
    assert_eq!(fates(&finished), [(None, 2), (cancelled, 0), (None, 5), (None, 7)]);
    assert_eq!(finished.ended_by, Some(EndedBy::NoProgress));
    // The last token came at 14; it is looked once a second.
    assert!((at(74)..=at(76)).contains(&finished.end), "{:?}", finished.end);
}

#[test]
fn a_slow_run_is_no_hung_one() {
    let endings = Endings { no_progress: Some(seconds(3)), ..Endings::default() };
    // One of them says something every second, and so the other is waited for.
    let finished = run(&job(&[100, 0], None, endings));
    assert_eq!(fates(&finished)[0], (None, 100));
    assert!((at(102)..=at(104)).contains(&finished.end), "{:?}", finished.end);
    // Nothing is under way while the schedule waits.
    let schedule = vec![at(0), at(1000)].into();
    let finished = run(&Job { schedule, ..job(&[1, 1], None, endings) });
    assert_eq!((finished.end, finished.ended_by), (at(1001), None));
}

#[test]
fn a_long_silence_names_the_requests_that_are_waited_for() {
    let endings = Endings { no_progress: Some(seconds(600)), ..Endings::default() };
    // Request 1 says three tokens and stops; requests 2 to 14 never say anything.
    struct Stops(TokioClock);
    impl Backend for Stops {
        async fn send(&self, request: &Request, reply: &mut Reply) {
            Server(self.0.clone()).send(request, reply).await;
            if request.id == 1 {
                pending::<()>().await;
            }
        }
    }
    let lens: Vec<u32> = [2, 3].into_iter().chain([0; 13]).collect();
    let job = job(&lens, None, endings);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let (progress, stop) = (Arc::<Progress>::default(), Stop::default());
        let clock = TokioClock::default();
        let told = Arc::clone(&progress);
        let order = stop.clone();
        let watching = async move {
            tokio::time::sleep(seconds(29)).await;
            assert_eq!(told.silence(), None, "nobody speaks of a short silence");
            tokio::time::sleep(Duration::from_millis(31_500)).await;
            let silence = told.silence().unwrap();
            assert_eq!((silence.lasts, silence.under_way), (seconds(57), 14));
            assert_eq!(silence.oldest.len(), Silence::NAMED);
            let named = |id, silent, has_begun| UnderWay {
                id,
                age: seconds(60),
                silent: seconds(silent),
                has_begun,
            };
            assert_eq!(silence.oldest[..2], [named(1, 57, true), named(2, 60, false)]);
            order.abort();
            tokio::time::sleep(seconds(1)).await;
            assert_eq!(told.silence(), None, "it is over with the run");
        };
        let running = run_here(&job, Stops(clock.clone()), clock, &progress, &stop);
        let (finished, ()) = tokio::join!(running, watching);
        let finished = finished.unwrap();
        assert_eq!(finished.ended_by, Some(EndedBy::Interrupt));
        assert_eq!(finished.records.len(), 15);
    });
}

#[test]
fn on_threads_one_worker_that_goes_on_is_progress_for_all() {
    let endings = Endings { no_progress: Some(Duration::from_millis(200)), ..Endings::default() };
    struct Beats(TokioClock);
    impl Backend for Beats {
        async fn send(&self, request: &Request, reply: &mut Reply) {
            for _ in 0..request.output_len {
                let next = self.0.now().offset() + Duration::from_millis(50);
                self.0.sleep_until(Stamp::from(next)).await;
                reply.push_chunk(self.0.now(), Some(1), 0, "t");
            }
            if request.output_len == 0 {
                pending::<()>().await;
            }
        }
    }
    let job = job(&[20, 0], Some(2), endings);
    let finished = run_on_threads(&job, 2, Beats, &Arc::default(), &Stop::default()).unwrap();
    assert_eq!(fates(&finished), [(None, 20), (Some(FailureKind::Cancelled), 0)]);
    assert!(finished.end >= Stamp::from_millis(1000 + 200), "{:?}", finished.end);
    assert_eq!(finished.ended_by, Some(EndedBy::NoProgress));
}

#[test]
fn a_body_that_cannot_be_encoded_is_one_failed_request() {
    let encode = |index: usize| {
        assert_ne!(index % 10, 3, "no body for {index}");
        vec![b'x'; 20].into()
    };
    // Of the first the window finds out, of others the thread that keeps ahead of the workers.
    let encoder = Some(Encoder::new(200, encode));
    let job = Job { encoder, ..job(&[1; 40], Some(40), Endings::default()) };
    let check = |finished: &Finished| {
        assert_eq!((finished.records.len(), finished.unsent), (40, 0));
        let failed: Vec<_> =
            finished.records.iter().filter(|record| !record.is_success()).collect();
        assert_eq!(failed.iter().map(|record| record.id).collect::<Vec<_>>(), [3, 13, 23, 33]);
        let failure = failed[2].reply.failure.as_ref().unwrap();
        assert_eq!(failure.kind, FailureKind::Client);
        assert!(failure.detail.contains("no body for 23"), "{failure}");
    };
    check(&run(&job));
    let make = |clock: TokioClock| Server(clock);
    check(&run_on_threads(&job, 2, make, &Arc::default(), &Stop::default()).unwrap());
}
