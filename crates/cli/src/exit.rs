//! How a command ends: the one place where an error meets a person.

use std::fmt;
use std::process::ExitCode;

/// The exit codes of every servebench command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Code {
    /// Done.
    Done,
    /// A bug in servebench.
    Bug,
    /// A command line that makes no sense.
    Usage,
    /// A plan or data that cannot be used.
    Data,
    /// The server is not ready, the warm-up failed, or a control call was refused.
    Server,
    /// No request succeeded, or fewer than `--min-success-rate` asks for.
    Requests,
    /// An objective, a regression gate or `--fail-if-client-bound` was missed.
    Gate,
    /// The output could not be written.
    Output,
    /// The run hung and was ended; a partial result was written and marked.
    Hung,
    /// Interrupted by Ctrl-C; a partial result was written and marked.
    Interrupted,
    /// Ended by SIGTERM; a partial result was written and marked.
    Terminated,
}

impl Code {
    /// Every code with what it means, for the documentation.
    pub const TABLE: [(Self, &'static str); 11] = [
        (Self::Done, "done"),
        (Self::Bug, "a bug in servebench"),
        (Self::Usage, "usage: the command line makes no sense"),
        (Self::Data, "a plan or data that cannot be used"),
        (Self::Server, "server not ready, warm-up failed, or a control call refused"),
        (Self::Requests, "no request succeeded, or fewer than --min-success-rate"),
        (Self::Gate, "an objective, a regression gate or --fail-if-client-bound missed"),
        (Self::Output, "output not written (the result line goes to standard output instead)"),
        (
            Self::Hung,
            "hung: nothing came for --no-progress-timeout; partial result written and marked",
        ),
        (Self::Interrupted, "interrupted by Ctrl-C; partial result written and marked"),
        (Self::Terminated, "ended by SIGTERM; partial result written and marked"),
    ];

    /// The number the process ends with.
    pub const fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Bug => 1,
            Self::Usage => 2,
            Self::Data => 3,
            Self::Server => 4,
            Self::Requests => 5,
            Self::Gate => 6,
            Self::Output => 7,
            Self::Hung => 8,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.number())
    }
}

/// Why a command ended without doing what it was asked to.
#[derive(Debug)]
pub struct Failure {
    /// What the process ends with.
    pub code: Code,
    /// What happened; its sources are shown below it.
    pub error: anyhow::Error,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(code: Code, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into(), hint: None }
    }

    /// A command line that makes no sense.
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(Code::Usage, anyhow::anyhow!("{message}"))
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.error)?;
        for cause in self.error.chain().skip(1) {
            write!(f, "\ncaused by: {cause}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Gives the errors of a stage their exit code.
pub(crate) trait OrCode<T> {
    fn or_code(self, code: Code) -> Result<T, Failure>;
}

impl<T, E: Into<anyhow::Error>> OrCode<T> for Result<T, E> {
    fn or_code(self, code: Code) -> Result<T, Failure> {
        self.map_err(|error| Failure::new(code, error))
    }
}
