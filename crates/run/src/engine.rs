//! Workers and how they are started together.

use crate::worker::{Shared, work};
use crate::{Job, Progress, RunError, Stop, TokioClock};
use rustix::time::{ClockId, clock_gettime};
use servebench_core::{Backend, Clock, Record, Stamp};
use std::rc::Rc;
use std::sync::{Arc, Barrier};
use std::time::Duration;
use tokio::task::LocalSet;

/// What a phase left behind.
#[derive(Debug, Default)]
pub struct Finished {
    /// One record per request that was sent, in plan order.
    pub records: Vec<Record>,
    /// Requests that were never sent, since the run was told to end.
    pub unsent: usize,
    /// When the last request was over.
    pub end: Stamp,
    /// Processor time that each worker's thread used from start to end. Empty when the run had no
    /// threads of its own.
    pub worker_cpu: Vec<Duration>,
}

impl Finished {
    fn new(mut records: Vec<Record>, planned: usize, end: Stamp) -> Self {
        records.sort_unstable_by_key(|record| record.id);
        let unsent = planned.saturating_sub(records.len());
        Self { records, unsent, end, worker_cpu: Vec::new() }
    }
}

/// Runs `job` on `workers` threads, each with a runtime and a backend of its own.
///
/// Backends are built and warmed before the clock starts, and all workers start together. A worker
/// is pinned to a core when there are several. Blocks until the last request is over.
pub fn run_on_threads<B, F>(
    job: &Job,
    workers: usize,
    make: F,
    progress: &Arc<Progress>,
    stop: &Stop,
) -> Result<Finished, RunError>
where
    B: Backend,
    F: Fn(TokioClock) -> B + Sync,
{
    job.check()?;
    let cap = job.max_concurrency;
    let workers = workers.clamp(1, cap.unwrap_or(usize::MAX).min(job.requests.len().max(1)));
    let clock = TokioClock::default();
    let ready = Barrier::new(workers);
    let shared = Shared::new(job.clone(), Arc::clone(progress), stop.clone());
    let cores = if workers > 1 { core_affinity::get_core_ids() } else { None }.unwrap_or_default();
    let results = std::thread::scope(|scope| {
        let spawn = |index: usize| {
            let (shared, clock, ready, make) = (shared.clone(), clock.clone(), &ready, &make);
            let core = cores.get(index % cores.len().max(1)).copied();
            let share = |total: usize| total / workers + usize::from(index < total % workers);
            let (slots, warm) = (cap.map(share), job.expected_in_flight().map(share));
            std::thread::Builder::new().name(format!("worker-{index}")).spawn_scoped(
                scope,
                move || {
                    if let Some(core) = core {
                        core_affinity::set_for_current(core);
                    }
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build()
                        .map_err(|error| error.to_string());
                    let prepared = runtime.map(|runtime| {
                        let backend = Rc::new(make(clock.clone()));
                        runtime.block_on(backend.warm(warm.unwrap_or(0)));
                        (runtime, backend)
                    });
                    // Reached by every worker, ready or not: the others must not wait for ever.
                    if ready.wait().is_leader() {
                        clock.start();
                    }
                    ready.wait();
                    let (runtime, backend) = prepared?;
                    let worker = work(shared, backend, clock.clone(), slots);
                    let before = thread_cpu();
                    let records = LocalSet::new().block_on(&runtime, worker);
                    Ok((records, thread_cpu().saturating_sub(before)))
                },
            )
        };
        let threads: Result<Vec<_>, _> = (0..workers).map(spawn).collect();
        let threads = threads.map_err(|error| RunError::Worker(error.to_string()))?;
        threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(result) => result.map_err(RunError::Worker),
                Err(_) => Err(RunError::Worker("a worker panicked".into())),
            })
            .collect::<Result<Vec<_>, _>>()
    })?;
    let end = clock.now();
    let (records, worker_cpu): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    let records = records.into_iter().flatten().collect();
    Ok(Finished { worker_cpu, ..Finished::new(records, job.requests.len(), end) })
}

/// Processor time that this thread has used so far.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Runs `job` on the caller's own runtime: for tests in virtual time, and for embedding.
///
/// The clock is started after the backend is warm.
pub async fn run_here<B: Backend>(
    job: &Job,
    backend: B,
    clock: TokioClock,
    progress: &Arc<Progress>,
    stop: &Stop,
) -> Result<Finished, RunError> {
    job.check()?;
    let shared = Shared::new(job.clone(), Arc::clone(progress), stop.clone());
    let backend = Rc::new(backend);
    backend.warm(job.expected_in_flight().unwrap_or(0)).await;
    clock.start();
    let slots = job.max_concurrency;
    let records = LocalSet::new().run_until(work(shared, backend, clock.clone(), slots)).await;
    Ok(Finished::new(records, job.requests.len(), clock.now()))
}
