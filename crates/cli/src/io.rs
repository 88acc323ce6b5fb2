//! Standard output and error of a command, so that commands can be called from tests.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex};

/// Where a command writes. Data goes to `out`, talk to `err`.
#[derive(Clone)]
pub struct Io {
    out: Arc<Mutex<dyn Write + Send>>,
    err: Arc<Mutex<dyn Write + Send>>,
    terminal: bool,
    /// Width of the terminal that shows data.
    columns: Option<usize>,
}

impl Io {
    /// The process's own standard output and error.
    pub fn standard() -> Self {
        Self {
            out: Arc::new(Mutex::new(io::stdout())),
            err: Arc::new(Mutex::new(io::stderr())),
            terminal: io::stderr().is_terminal(),
            columns: terminal_size::terminal_size_of(io::stdout())
                .map(|(terminal_size::Width(columns), _)| columns.into()),
        }
    }

    /// Buffers in place of the process's output, for tests.
    pub fn captured() -> (Self, Captured) {
        let (out, err) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::<Mutex<Vec<u8>>>::default());
        let captured = Captured { out: Arc::clone(&out), err: Arc::clone(&err) };
        (Self { out, err, terminal: false, columns: None }, captured)
    }

    /// True when talk is read by a person at a terminal.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Columns of the terminal that data is printed to; `None` where it goes elsewhere.
    pub fn columns(&self) -> Option<usize> {
        self.columns
    }

    /// Prints data, with a line end. A reader who has left had seen enough, as in `| head -1`: that is no
    /// error.
    pub fn print(&self, data: impl Display) -> io::Result<()> {
        unless_left(line(&self.out, data))
    }

    /// The same for data that are nowhere else: that nobody reads them is an error.
    pub fn deliver(&self, data: impl Display) -> io::Result<()> {
        line(&self.out, data)
    }

    /// Prints data as it is, without a line end: for what comes in pieces.
    pub fn write(&self, data: impl Display) -> io::Result<()> {
        let mut out = self.out.lock().map_err(|_| io::ErrorKind::Other)?;
        unless_left(write!(out, "{data}").and_then(|()| out.flush()))
    }

    /// Says something to the person at the terminal. A closed standard error is no reason to stop.
    pub fn say(&self, message: impl Display) {
        if line(&self.err, message).is_err() {
            // Nobody listens.
        }
    }
}

fn unless_left(written: io::Result<()>) -> io::Result<()> {
    written.or_else(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Ok(()),
        _ => Err(error),
    })
}

fn line(to: &Mutex<dyn Write + Send>, text: impl Display) -> io::Result<()> {
    let mut to = to.lock().map_err(|_| io::ErrorKind::Other)?;
    writeln!(to, "{text}")?;
    to.flush()
}

impl std::fmt::Debug for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io").field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

/// What a command wrote to captured output.
#[derive(Clone, Debug)]
pub struct Captured {
    out: Arc<Mutex<Vec<u8>>>,
    err: Arc<Mutex<Vec<u8>>>,
}

impl Captured {
    /// All data printed so far.
    pub fn out(&self) -> String {
        text(&self.out)
    }

    /// All talk so far.
    pub fn err(&self) -> String {
        text(&self.err)
    }
}

fn text(buffer: &Mutex<Vec<u8>>) -> String {
    buffer.lock().map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
}
