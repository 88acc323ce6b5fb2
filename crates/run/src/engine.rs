//! Workers and how they are started together.

use crate::bodies::Closing;
use crate::pacer::Pacer;
use crate::watch::{Watch, drive_sockets, heartbeat, watched_runtime};
use crate::worker::{Share, Shared, work};
use crate::{EndedBy, Job, LoopHealth, Progress, RunError, Stop, TokioClock};
use core_affinity::CoreId;
use rustix::time::{ClockId, clock_gettime};
use servebench_core::{Backend, Failure, FailureKind, Record, Stamp};
use std::rc::Rc;
use std::sync::{Arc, RwLock, mpsc};
use std::thread::ScopedJoinHandle;
use std::time::Duration;
use tokio::task::{JoinSet, LocalSet};

/// What a phase left behind.
#[derive(Debug, Default)]
pub struct Finished {
    /// One record per request that was sent, in plan order.
    pub records: Vec<Record>,
    /// Requests that were never sent, since the run was told to end.
    pub unsent: usize,
    /// When the last response ended.
    pub end: Stamp,
    /// Why it ended before everything was sent and answered, if it did.
    pub ended_by: Option<EndedBy>,
    /// Failed attempts that were followed by another one: the request's id, and what failed.
    pub retried: Vec<(u64, Failure)>,
    /// With [`clients`](Job::clients): each conversation that was begun, by the id of its first request,
    /// and the client that had it, from 0.
    pub clients: Vec<(u64, usize)>,
    /// How each worker's event loop fared. Empty when the run had no threads of its own.
    pub loops: Vec<LoopHealth>,
}

impl Finished {
    fn new(shares: impl IntoIterator<Item = Share>, planned: usize, stop: &Stop) -> Self {
        let mut this = Self::default();
        for share in shares {
            this.end = this.end.max(share.end);
            this.retried.extend(share.retried);
            this.clients.extend(share.clients);
            if this.records.is_empty() {
                // Records are most of a run's memory: those of the first worker stay where they are.
                this.records = share.records;
            } else {
                this.records.reserve_exact(planned.saturating_sub(this.records.len()));
                this.records.extend(share.records);
            }
        }
        this.records.sort_unstable_by_key(|record| record.id);
        this.clients.sort_unstable();
        this.unsent = planned.saturating_sub(this.records.len());
        let cut_off = |record: &Record| {
            record.reply.failure.as_ref().is_some_and(|it| it.kind == FailureKind::Cancelled)
        };
        // An order that came when all was done ended nothing.
        let ended = this.unsent > 0 || this.records.iter().any(cut_off);
        this.ended_by = stop.ordered_by().filter(|_| ended);
        this
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
    let cores = if workers > 1 { core_affinity::get_core_ids() } else { None }.unwrap_or_default();
    let clock = TokioClock::default();
    let team = Team {
        shared: Shared::new(job.clone(), Arc::clone(progress), stop.clone()),
        clock: clock.clone(),
        make,
        gate: RwLock::new(false),
    };
    let results = std::thread::scope(|scope| {
        // Closed on every way out, since its thread would not end otherwise.
        let window = team.shared.window.as_deref();
        let _closing = window.map(Closing);
        if let Some(window) = window {
            let thread = std::thread::Builder::new().name("bodies".into());
            let ahead = thread.spawn_scoped(scope, || window.keep_ahead());
            ahead.map_err(|error| RunError::Worker(error.to_string()))?;
        }
        // Workers wait at the gate until all are ready; they give up if it opens without a start.
        let mut gate = team.gate.write().map_err(|_| RunError::gate())?;
        let (ready, prepared) = mpsc::channel();
        let spawn = |index: usize| {
            let share = |total: usize| total / workers + usize::from(index < total % workers);
            let seat = Seat {
                worker: index,
                slots: cap.map(share),
                warm: job.expected_in_flight().map_or(0, share),
                core: cores.get(index % cores.len().max(1)).copied(),
                ready: ready.clone(),
            };
            let team = &team;
            let thread = std::thread::Builder::new().name(format!("worker-{index}"));
            thread.spawn_scoped(scope, move || team.work(seat))
        };
        let threads: Result<Vec<_>, _> = (0..workers).map(spawn).collect();
        let threads = threads.map_err(|error| RunError::Worker(error.to_string()))?;
        drop(ready);
        // Ends when every worker has said that it is ready, or is gone.
        for () in prepared {}
        *gate = true;
        clock.start();
        drop(gate);
        let join = |thread: ScopedJoinHandle<'_, _>| match thread.join() {
            Ok(result) => result,
            Err(_) => Err(RunError::Worker("a worker panicked".into())),
        };
        threads.into_iter().map(join).collect::<Result<Vec<_>, RunError>>()
    })?;
    let (shares, loops): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    Ok(Finished { loops, ..Finished::new(shares, job.total(), stop) })
}

/// What all workers have in common.
struct Team<F> {
    shared: Shared,
    clock: TokioClock,
    make: F,
    /// True once the run has started.
    gate: RwLock<bool>,
}

/// One worker's own part.
struct Seat {
    worker: usize,
    slots: Option<usize>,
    warm: usize,
    core: Option<CoreId>,
    ready: mpsc::Sender<()>,
}

impl<B: Backend, F: Fn(TokioClock) -> B + Sync> Team<F> {
    fn work(&self, seat: Seat) -> Result<(Share, LoopHealth), RunError> {
        if let Some(core) = seat.core {
            core_affinity::set_for_current(core);
        }
        let watch = Arc::<Watch>::default();
        let clock = self.clock.clone();
        let runtime = watched_runtime(&clock, &watch);
        let runtime = runtime.map_err(|error| RunError::Worker(error.to_string()))?;
        let backend = Rc::new((self.make)(clock.clone()));
        runtime.block_on(async {
            drive_sockets(&clock).map_err(|error| RunError::Worker(error.to_string()))?;
            backend.warm(seat.warm).await;
            Ok(())
        })?;
        if seat.ready.send(()).is_err() {
            return Err(RunError::gate());
        }
        drop(seat.ready);
        if !*self.gate.read().map_err(|_| RunError::gate())? {
            return Err(RunError::gate());
        }
        let before = thread_cpu();
        let worker = async {
            // Ends with the scope.
            let mut beside = JoinSet::new();
            beside.spawn_local(heartbeat(clock.clone(), Arc::clone(&watch)));
            let shared = self.shared.clone();
            work(seat.worker, shared, backend, clock, Pacer::precise(), seat.slots).await
        };
        let share = runtime.block_on(worker);
        Ok((share, watch.health(thread_cpu().saturating_sub(before))))
    }
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
    let slots = job.max_concurrency;
    // Inside the set from the start: a backend may spawn what serves its connections.
    let tasks = LocalSet::new();
    let share = tasks.run_until(async {
        backend.warm(job.expected_in_flight().unwrap_or(0)).await;
        clock.start();
        work(0, shared, backend, clock, Pacer::of_runtime(), slots).await
    });
    Ok(Finished::new([share.await], job.total(), stop))
}

/// Processor time that this thread has used so far.
fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
