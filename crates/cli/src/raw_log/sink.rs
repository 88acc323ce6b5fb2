//! Writing a raw log while a run goes on.

use super::facts::{EndFacts, PartFacts};
use crate::exit::OrCode;
use crate::serve::Beside;
use crate::{Code, Failure, Io};
use serde::Serialize;
use serde_json::{Value, json};
use servebench_core::{Record, Stamp};
use servebench_journal::records::{Batch, Counted, RecordLog, RecordWriter};
use servebench_journal::{Ending, JournalError};
use servebench_run::Witness;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Records are handed to the system at least this often; with what else may come between, all that was over
/// a second before is there.
const FLUSH: Duration = Duration::from_millis(500);
/// They are handed over earlier when there are so many bytes of them.
const BATCH: usize = 1 << 20;
/// Most bytes that wait for a slow disk. Records beyond them are written when the run is over.
const WAITING: usize = 64 << 20;

/// The file of a raw log, locked, at the place where it is gone on with.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
}

/// A log that is written while a run, or one part of it, goes on.
pub(crate) struct RawLog {
    path: PathBuf,
    /// Elsewhere while the thread has it.
    writer: Mutex<Option<RecordWriter<File>>>,
    thread: Mutex<Option<JoinHandle<RecordWriter<File>>>>,
    shared: Arc<Shared>,
    io: Io,
}

struct Shared {
    state: Mutex<State>,
    /// Told when there is enough for a frame, and at the end.
    wake: Condvar,
    /// Most bytes that wait.
    most: usize,
}

/// What is on its way to the file.
#[derive(Default)]
struct State {
    batch: Batch,
    /// Records that had no room, and when their requests were over.
    late: BTreeMap<u64, Stamp>,
    closed: bool,
    /// Why nothing more is written.
    error: Option<String>,
    written: u64,
}

impl Shared {
    fn new(most: usize) -> Self {
        Self { state: Mutex::default(), wake: Condvar::new(), most }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a record over from the worker that finished it: no wait but for another worker doing the same.
    fn take(&self, record: &Record, end: Stamp) {
        let mut state = self.state();
        if state.error.is_some() {
            return;
        }
        if state.batch.size() >= self.most {
            state.late.insert(record.id, end);
            return;
        }
        let before = state.batch.size();
        state.batch.push(record, end);
        let full = before < BATCH && state.batch.size() >= BATCH;
        drop(state);
        if full {
            self.wake.notify_one();
        }
    }

    /// Writes what comes until the end.
    fn write(&self, mut writer: RecordWriter<File>, path: &Path, io: &Io) -> RecordWriter<File> {
        let mut batch = Batch::default();
        loop {
            let state = self.state();
            let idle = |state: &mut State| !state.closed && state.batch.size() < BATCH;
            let waited = self.wake.wait_timeout_while(state, FLUSH, idle);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut state.batch, &mut batch);
            let closed = state.closed;
            drop(state);
            let result = writer.push(&batch);
            self.note(result, batch.records(), path, io);
            batch.clear();
            if closed {
                return writer;
            }
        }
    }

    /// Counts what was written, and says once why nothing is any more.
    fn note(&self, result: Result<(), JournalError>, records: usize, path: &Path, io: &Io) {
        let mut state = self.state();
        match result {
            Ok(()) => state.written += records as u64,
            Err(error) if state.error.is_none() => {
                let error = error.to_string();
                io.say(format_args!(
                    "warning: {}: {error}; the run goes on, its raw log ends here",
                    path.display()
                ));
                state.error = Some(error);
            }
            Err(_) => {}
        }
    }
}

impl LogFile {
    /// Makes the file, which must not be there yet.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let mut options = OpenOptions::new();
        let file = open(options.read(true).write(true).create(true), path)?;
        let length = file.metadata().map_err(|error| at(path, error))?.len();
        if length > 0 {
            let error = anyhow::anyhow!("--raw-log: {} is there already", path.display());
            return Err(Failure::new(Code::Output, error)
                .hint("give a new name; bench-serving can go on with its run: --resume in place of --raw-log"));
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// Opens the log of a run that was cut, to go on with it; also gives what it holds.
    pub(crate) fn reopen(path: &Path) -> Result<(Self, RecordLog), Failure> {
        let mut file = open(OpenOptions::new().read(true).write(true), path)?;
        let log = super::read(path, &file)?;
        if let Ending::Damaged(loss) = log.ending {
            let (path, at) = (path.display(), loss.at);
            let error = anyhow::anyhow!("--resume: {path} is damaged at byte {at}");
            return Err(Failure::new(Code::Data, error).hint(format!(
                "to go on with what is before it, copy the file and cut it there: truncate -s {at} {path}"
            )));
        }
        // What follows the last whole frame is of no use, and would be in the way.
        let end = file.set_len(log.offset).and_then(|()| file.seek(SeekFrom::Start(log.offset)));
        end.map_err(|error| at(path, error))?;
        Ok((Self { path: path.to_owned(), file }, log))
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the head of a new log.
    pub(crate) fn begin(self, metadata: &impl Serialize, io: &Io) -> Result<RawLog, Failure> {
        let Self { path, file } = self;
        let metadata = serde_json::to_value(metadata).or_code(Code::Bug)?;
        let writer = RecordWriter::create(file, &metadata).map_err(|error| {
            Failure::new(
                Code::Output,
                anyhow::Error::new(error).context(path.display().to_string()),
            )
        })?;
        Ok(RawLog::new(path, writer, io))
    }

    /// Goes on with a log that has a head.
    pub(crate) fn go_on(self, io: &Io) -> RawLog {
        RawLog::new(self.path, RecordWriter::resume(self.file), io)
    }
}

impl RawLog {
    fn new(path: PathBuf, writer: RecordWriter<File>, io: &Io) -> Self {
        let writer = Mutex::new(Some(writer));
        let io = io.clone();
        let shared = Arc::new(Shared::new(WAITING));
        Self { path, writer, thread: Mutex::default(), shared, io }
    }

    /// Who takes the records over.
    pub(crate) fn witness(&self) -> Witness {
        let shared = Arc::clone(&self.shared);
        Witness::new(move |record, end| shared.take(record, end))
    }

    /// Writes what is to be told at the end: the records that had no room before, what was counted, and how
    /// the part ended.
    pub(crate) fn end(&self, records: &[Record], counts: &[Counted], facts: &EndFacts) {
        let Some(mut writer) = lock(&self.writer).take() else { return };
        let late = std::mem::take(&mut self.shared.state().late);
        if !late.is_empty() {
            self.io.say(format_args!(
                "warning: {}: the disk was slow, and {} records were written after the run only",
                self.path.display(),
                late.len()
            ));
        }
        let mut batch = Batch::default();
        let of_late = records.iter().filter_map(|it| Some((it, *late.get(&it.id)?)));
        for (record, end) in of_late {
            batch.push(record, end);
            if batch.size() >= BATCH {
                self.push(&mut writer, &mut batch);
            }
        }
        self.push(&mut writer, &mut batch);
        let facts = serde_json::to_value(facts).unwrap_or_default();
        let end = |writer: &mut RecordWriter<File>| {
            writer.counts(counts)?;
            writer.end_part(&facts)?;
            writer.flush()?;
            // What is complete is worth the wait.
            Ok(writer.get_ref().sync_data()?)
        };
        self.note(end(&mut writer), 0);
    }

    /// What a result says of it.
    pub(crate) fn report(&self) -> Value {
        let state = self.shared.state();
        json!({
            "file": self.path.display().to_string(),
            "records": state.written,
            "complete": state.error.is_none(),
            "error": state.error,
        })
    }

    fn push(&self, writer: &mut RecordWriter<File>, batch: &mut Batch) {
        let result = writer.push(batch);
        self.note(result, batch.records());
        batch.clear();
    }

    fn note(&self, result: Result<(), JournalError>, records: usize) {
        self.shared.note(result, records, &self.path, &self.io);
    }
}

impl Beside for RawLog {
    fn start(&self, _: &Runtime) {
        let Some(mut writer) = lock(&self.writer).take() else { return };
        let facts = PartFacts { started_at_unix_ms: unix_ms() };
        let facts = serde_json::to_value(facts).unwrap_or_default();
        self.note(writer.begin_part(&facts), 0);
        let (shared, path, io) = (Arc::clone(&self.shared), self.path.clone(), self.io.clone());
        let thread = std::thread::Builder::new().name("raw-log".into());
        match thread.spawn(move || shared.write(writer, &path, &io)) {
            Ok(thread) => *lock(&self.thread) = Some(thread),
            Err(error) => self.note(Err(error.into()), 0),
        }
    }

    fn stop(&self, _: &Runtime) {
        self.shared.state().closed = true;
        self.shared.wake.notify_one();
        if let Some(thread) = lock(&self.thread).take() {
            *lock(&self.writer) = thread.join().ok();
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wall-clock time in milliseconds since 1970.
pub(crate) fn unix_ms() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or(0)
}

fn open(options: &OpenOptions, path: &Path) -> Result<File, Failure> {
    let file = options.open(path).map_err(|error| at(path, error))?;
    // Any other error is a file system's that has no locks.
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        let error = anyhow::anyhow!("{}: another run writes to it", path.display());
        return Err(Failure::new(Code::Output, error));
    }
    Ok(file)
}

fn at(path: &Path, error: std::io::Error) -> Failure {
    Failure::new(Code::Output, anyhow::Error::new(error).context(path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use servebench_core::Reply;
    use servebench_report::Calibration;

    fn record(id: u64, text: &str) -> Record {
        Record { id, reply: Reply { text: text.into(), ..Reply::default() }, ..Record::default() }
    }

    fn facts() -> EndFacts {
        EndFacts {
            started_at_unix_ms: 1,
            workers: 1,
            end_ns: 5,
            interrupted: false,
            ended_by: None,
            after_s: 0.1 + 0.2,
            server_info: None,
            cache_flushed: false,
            lookup_ns: 0,
            kernel_stamps: true,
            profile_workers: None,
            cpu_share: Some(1.0 / 3.0),
            tcp: None,
            descriptors_needed: 0,
            descriptor_limit: None,
            loops: Vec::new(),
            beside: None,
            calibration: Some(Calibration { duration: 1e-7 / 3.0, ..Calibration::default() }),
        }
    }

    fn runtime() -> Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn what_has_no_room_is_written_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let (io, said) = Io::captured();
        let file = LogFile::create(&path).unwrap().file;
        let writer = RecordWriter::create(file, &json!({})).unwrap();
        let log =
            RawLog { shared: Arc::new(Shared::new(10)), ..RawLog::new(path.clone(), writer, &io) };
        let records: Vec<Record> = (0..3).map(|id| record(id, "a reply")).collect();
        // Nobody writes yet: the first fills the room.
        for (record, ms) in records.iter().zip(1..) {
            log.shared.take(record, Stamp::from_millis(ms));
        }
        assert_eq!(log.shared.state().late.len(), 2);
        log.start(&runtime());
        log.stop(&runtime());
        log.end(&records, &[], &facts());
        assert_eq!(log.report()["records"], 3);
        assert!(said.err().contains("2 records were written after the run only"), "{}", said.err());
        let read = super::super::open(&path).unwrap();
        let found = read.parts[0].records.iter();
        let found: Vec<_> =
            found.map(|kept| (kept.record.clone(), kept.end.0 / 1_000_000)).collect();
        assert_eq!(found, records.into_iter().zip(1..).collect::<Vec<_>>());
        // Not a digit is lost.
        let end = EndFacts::read(read.parts[0].end_facts.as_ref().unwrap()).unwrap();
        assert_eq!((end.after_s, end.cpu_share), (0.1 + 0.2, Some(1.0 / 3.0)));
        assert_eq!(end.calibration.map(|it| it.duration), Some(1e-7 / 3.0));
    }

    #[test]
    fn a_file_that_fails_is_told_once_and_the_run_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        drop(LogFile::create(&path).unwrap());
        let (io, said) = Io::captured();
        // Open for reading alone.
        let writer = RecordWriter::resume(File::open(&path).unwrap());
        let log = RawLog::new(path, writer, &io);
        log.start(&runtime());
        log.shared.take(&record(0, "x"), Stamp(1));
        log.stop(&runtime());
        log.end(&[record(0, "x")], &[], &facts());
        let report = log.report();
        assert_eq!((&report["complete"], &report["records"]), (&json!(false), &json!(0)));
        assert_eq!(said.err().matches("its raw log ends here").count(), 1, "{}", said.err());
    }

    #[test]
    fn a_log_is_written_by_one_run_and_never_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let first = LogFile::create(&path).unwrap();
        let busy = LogFile::create(&path).err().map(|failure| failure.to_string());
        assert!(busy.is_some_and(|words| words.contains("another run writes to it")));
        drop(first);
        // Of a run that did not begin there is nothing to lose.
        drop(LogFile::create(&path).unwrap());
        std::fs::write(&path, "precious").unwrap();
        let there = LogFile::create(&path).err().map(|failure| failure.to_string());
        assert!(there.is_some_and(|words| words.contains("is there already")));
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }
}
