//! A worker's event loop, and watching from inside when it stood still.

use crate::TokioClock;
#[cfg(target_os = "linux")]
use crate::timer::Timer;
use servebench_core::{Clock, Stamp};
#[cfg(target_os = "linux")]
use servebench_reactor::Reactor;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
#[cfg(target_os = "linux")]
use tokio::task::spawn_local;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// How one worker's event loop fared between the start of the run and its end.
///
/// The loop runs in turns: it waits until there is input or a time has come, then does what there is
/// to do. It *stalls* when it does not come round for more than 5 ms: a turn took that long, or the
/// thread was kept from running (the machine was busy, the process was stopped). What is received
/// in a stall is read late, and what is due is sent late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopHealth {
    /// Processor time that the worker's thread used.
    pub cpu: Duration,
    /// Turns of the loop.
    pub turns: u64,
    /// How often it stalled.
    pub stalls: u64,
    /// The longest stall.
    pub longest_stall: Duration,
    /// All stalls together.
    pub stalled: Duration,
}

/// The loop has stalled when it does not come round for longer than this.
const STALL: Duration = Duration::from_millis(5);

/// How often the loop comes round at least.
///
/// Measured on a virtual machine, where a wake-up is dear: 2.6 % of a core that has nothing else to do,
/// 0.4 % of one whose loop makes 3,000 turns a second anyway, nothing that shows at 7,000.
const HEARTBEAT: Duration = Duration::from_millis(1);

/// No wait of a loop with a heartbeat should be longer: tokio's timer counts whole milliseconds.
const LONGEST_WAIT: Duration = HEARTBEAT.saturating_mul(2);

/// Stamps of one event loop, kept by the loop's own thread. All are nanoseconds of the run's clock.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Since when the loop waits, or works.
    since: AtomicU64,
    turns: AtomicU64,
    stalls: AtomicU64,
    longest: AtomicU64,
    total: AtomicU64,
}

impl Watch {
    pub(crate) fn health(&self, cpu: Duration) -> LoopHealth {
        LoopHealth {
            cpu,
            turns: self.turns.load(Relaxed),
            stalls: self.stalls.load(Relaxed),
            longest_stall: Duration::from_nanos(self.longest.load(Relaxed)),
            stalled: Duration::from_nanos(self.total.load(Relaxed)),
        }
    }

    /// The loop works: it is about to wait for input, or a task that is ready every millisecond has its turn.
    fn is_awake(&self, now: Stamp) {
        self.came_round(now, Duration::ZERO);
    }

    /// The wait is over: what had been received is about to be read.
    fn wait_ended(&self, now: Stamp) {
        self.came_round(now, LONGEST_WAIT);
        add(&self.turns, 1);
    }

    /// The loop is alive `now`, and might have been for `allowed` without a sign of it.
    fn came_round(&self, now: Stamp, allowed: Duration) {
        let late = now.since(Stamp(self.since.load(Relaxed))).saturating_sub(allowed);
        self.since.store(now.0, Relaxed);
        if late > STALL {
            let late = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
            add(&self.stalls, 1);
            add(&self.total, late);
            self.longest.store(self.longest.load(Relaxed).max(late), Relaxed);
        }
    }
}

/// Adds without a locked instruction: only the loop's own thread writes.
fn add(to: &AtomicU64, value: u64) {
    to.store(to.load(Relaxed).saturating_add(value), Relaxed);
}

/// A runtime for one worker, whose loop is watched by `watch` on `clock`.
pub(crate) fn watched_runtime(
    clock: &TokioClock,
    watch: &Arc<Watch>,
) -> std::io::Result<LocalRuntime> {
    let mut builder = Builder::new_current_thread();
    let hook = |note: fn(&Watch, Stamp)| {
        let (clock, watch) = (clock.clone(), Arc::clone(watch));
        move || note(&watch, clock.now())
    };
    builder
        .enable_all()
        // How many tasks have their turns before timers are looked at, and so a due request: at 10 µs a
        // task as many as a request may be late. A look costs less than a tenth of a task.
        .event_interval(16)
        .on_thread_park(hook(Watch::is_awake))
        .on_thread_unpark(hook(Watch::wait_ended))
        .build_local(LocalOptions::default())
}

/// Makes the loop come round every millisecond, so that its last look for input is never old and a stall
/// shows.
pub(crate) async fn heartbeat(clock: TokioClock, watch: Arc<Watch>) {
    let mut beats = Beats::new();
    loop {
        beats.next().await;
        watch.is_awake(clock.now());
    }
}

/// From now on a reactor looks after what this thread opens. Must be called where local tasks can be spawned.
#[cfg(target_os = "linux")]
pub(crate) fn drive_sockets(clock: &TokioClock) -> std::io::Result<()> {
    let clock = clock.clone();
    spawn_local(Reactor::new()?.drive(move || clock.now())?);
    Ok(())
}

/// The runtime looks after them.
#[cfg(not(target_os = "linux"))]
pub(crate) fn drive_sockets(_clock: &TokioClock) -> std::io::Result<()> {
    Ok(())
}

/// Completes once in every [`HEARTBEAT`].
///
/// The runtime's own timers would take two turns for each: it interrupts its own next wait whenever a
/// timer is set that is the first to come.
struct Beats {
    #[cfg(target_os = "linux")]
    timer: Option<Timer>,
    fallback: Interval,
}

impl Beats {
    fn new() -> Self {
        let mut fallback = interval(HEARTBEAT);
        fallback.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self {
            #[cfg(target_os = "linux")]
            timer: Reactor::current().and_then(|it| Timer::every(HEARTBEAT, &it).ok()),
            fallback,
        }
    }

    async fn next(&mut self) {
        #[cfg(target_os = "linux")]
        if let Some(timer) = &self.timer {
            match timer.expired().await {
                Ok(()) => return,
                Err(_) => self.timer = None,
            }
        }
        self.fallback.tick().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Stamp {
        Stamp::from_millis(ms)
    }

    #[test]
    fn long_turns_and_late_waits_are_stalls() {
        let watch = Watch::default();
        watch.wait_ended(ms(0));
        watch.is_awake(ms(5));
        watch.wait_ended(ms(12));
        assert_eq!(watch.health(Duration::ZERO).stalls, 0);
        watch.is_awake(ms(18));
        watch.wait_ended(ms(40));
        watch.is_awake(ms(45));
        watch.is_awake(ms(50));
        let health = watch.health(Duration::from_secs(1));
        let expected = LoopHealth {
            cpu: Duration::from_secs(1),
            turns: 3,
            stalls: 2,
            longest_stall: Duration::from_millis(20),
            stalled: Duration::from_millis(26),
        };
        assert_eq!(health, expected);
    }
}
