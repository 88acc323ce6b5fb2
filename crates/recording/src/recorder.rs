//! Writing a recording while a run goes on.

use crate::RecordingError;
use crate::events::Before;
use crate::frames::{self, Asked};
use serde_json::Value;
use servebench_core::Request;
use servebench_http::{Event, Observe};
use servebench_journal::{JournalError, Writer};
use std::io::Write;
use std::mem;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// From how many bytes on a worker's events are fetched without waiting for the next round.
const FULL: usize = 256 << 10;
/// How often they are fetched at least.
const ROUND: Duration = Duration::from_millis(250);

/// What is recorded, and how much memory may wait to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecorderOptions {
    /// Record the bodies of requests, prompts and all.
    pub prompts: bool,
    /// Most bytes of one worker's events that wait to be written; what comes then is lost, and counted.
    pub room: usize,
}

impl Default for RecorderOptions {
    /// No prompts, 64 MB.
    fn default() -> Self {
        Self { prompts: false, room: 64 << 20 }
    }
}

/// Records what happens to the requests of a run, in a thread of its own.
///
/// A worker's observer only appends to memory; nobody who sends waits for a disk. When writing fails that is
/// said once, and what comes after is counted as lost: a run is never lost to its recording.
pub struct Recorder {
    shared: Arc<Shared>,
    options: RecorderOptions,
    thread: Option<JoinHandle<Writing>>,
}

#[derive(Default)]
struct Shared {
    sheets: Mutex<Vec<Arc<Mutex<Sheet>>>>,
    over: AtomicBool,
    /// For the thread to sleep on.
    bed: Mutex<()>,
    bell: Condvar,
}

/// What one worker has noted and the thread has not fetched.
#[derive(Default)]
struct Sheet {
    asked: Vec<Asked>,
    events: Vec<u8>,
    before: Before,
    lost: u64,
}

impl Sheet {
    fn is_empty(&self) -> bool {
        self.asked.is_empty() && self.events.is_empty() && self.lost == 0
    }
}

/// The file and how it goes.
struct Writing {
    writer: Writer<Box<dyn Write + Send>>,
    /// Says once what is wrong.
    say: Box<dyn Fn(&RecordingError) + Send>,
    trouble: Option<RecordingError>,
    /// Events that are not in the file.
    lost: u64,
}

/// How a recording came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Bytes that were written.
    pub bytes: u64,
    /// Events that came faster than they could be written.
    pub lost: u64,
}

impl Recorder {
    /// Begins a recording with these `metadata`. When writing fails, `say` is called once.
    ///
    /// # Errors
    ///
    /// When the header cannot be written, or no thread be started.
    pub fn start(
        out: impl Write + Send + 'static,
        metadata: Value,
        options: RecorderOptions,
        say: impl Fn(&RecordingError) + Send + 'static,
    ) -> Result<Self, RecordingError> {
        let out: Box<dyn Write + Send> = Box::new(out);
        let writer = Writer::create(out, &frames::header(metadata))?;
        let mut writing = Writing { writer, say: Box::new(say), trouble: None, lost: 0 };
        let shared = Arc::<Shared>::default();
        let seen = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("recording".into()).spawn(move || {
            seen.write(&mut writing);
            writing
        });
        let thread = thread.map_err(|error| RecordingError::Writer(error.to_string()))?;
        Ok(Self { shared, options, thread: Some(thread) })
    }

    /// An observer for a backend of one worker, to be called in that worker's thread.
    pub fn observer(&self) -> Rc<dyn Observe> {
        let sheet = Arc::<Mutex<Sheet>>::default();
        lock(&self.shared.sheets).push(Arc::clone(&sheet));
        Rc::new(Worker { sheet, shared: Arc::clone(&self.shared), options: self.options })
    }

    /// Writes what is still to be written, and the end, in which stands a log of records with what is known
    /// of the requests beside their replies: `records` writes it.
    ///
    /// # Errors
    ///
    /// The first that kept something from being written: the file then ends without an end.
    pub fn finish(
        mut self,
        records: impl FnOnce(&mut Vec<u8>) -> Result<(), JournalError>,
    ) -> Result<Recorded, RecordingError> {
        let writing = self.stop();
        let mut writing = writing.ok_or_else(|| RecordingError::Writer("it panicked".into()))?;
        if let Some(trouble) = writing.trouble {
            return Err(trouble);
        }
        let mut end = frames::end();
        records(&mut end)?;
        writing.writer.push(&end)?;
        writing.writer.flush()?;
        Ok(Recorded { bytes: writing.writer.written(), lost: writing.lost })
    }

    fn stop(&mut self) -> Option<Writing> {
        self.shared.over.store(true, Relaxed);
        self.shared.bell.notify_one();
        self.thread.take()?.join().ok()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // No thread is left behind; without an end the file is known to be incomplete.
        drop(self.stop());
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("options", &self.options).finish_non_exhaustive()
    }
}

impl Shared {
    /// Fetches and writes, until the recording is over.
    fn write(&self, writing: &mut Writing) {
        loop {
            // Seen before the last round, so that nothing noted before it is left.
            let over = self.over.load(Relaxed);
            let sheets: Vec<_> = lock(&self.sheets).clone();
            for (worker, sheet) in (0..).zip(&sheets) {
                let sheet = mem::take(&mut *lock(sheet));
                if !sheet.is_empty() {
                    writing.write(worker, &sheet);
                }
            }
            if over {
                return;
            }
            let asleep = self.bell.wait_timeout(lock(&self.bed), ROUND);
            drop(asleep.unwrap_or_else(PoisonError::into_inner));
        }
    }
}

impl Writing {
    fn write(&mut self, worker: u64, sheet: &Sheet) {
        self.lost += sheet.lost;
        if self.trouble.is_some() {
            return;
        }
        let mut write = || {
            if !sheet.asked.is_empty() {
                self.writer.push(&frames::requests(&sheet.asked))?;
            }
            if !sheet.events.is_empty() || sheet.lost > 0 {
                self.writer.push(&frames::events(worker, sheet.lost, &sheet.events))?;
            }
            self.writer.flush()
        };
        if let Err(error) = write() {
            let error = error.into();
            (self.say)(&error);
            self.trouble = Some(error);
        }
    }
}

/// Notes what one worker's requests do.
struct Worker {
    sheet: Arc<Mutex<Sheet>>,
    shared: Arc<Shared>,
    options: RecorderOptions,
}

impl Observe for Worker {
    fn note(&self, request: &Request, event: &Event<'_>) {
        let mut sheet = lock(&self.sheet);
        let before = sheet.events.len();
        if before >= self.options.room {
            sheet.lost += 1;
            return;
        }
        if let Event::Began { .. } = event {
            sheet.asked.push(Asked::of(request, self.options.prompts));
        }
        let Sheet { before: last, events, .. } = &mut *sheet;
        last.write(request.id, event, events);
        if before < FULL && sheet.events.len() >= FULL {
            drop(sheet);
            self.shared.bell.notify_one();
        }
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
