//! The command called from within, against simulated servers on loopback.

mod guide;
mod launch;
mod sweep;
mod wrong;

use servebench_cli::{Code, Environment, Failure, Io};
use std::ffi::OsString;

/// What a command printed and how it ended.
struct Ran {
    out: String,
    err: String,
    ended: Result<Code, Failure>,
}

impl Ran {
    #[track_caller]
    fn done(self) -> String {
        match self.ended {
            Ok(Code::Done) => self.out,
            other => panic!("{other:?}\n{}{}", self.out, self.err),
        }
    }

    /// The failure's text, if it ended with this code.
    #[track_caller]
    fn failed(self, code: u8) -> String {
        let failure = self.ended.expect_err("a failure");
        assert_eq!(failure.code.number(), code, "{failure}");
        failure.to_string()
    }
}

fn run_in(environment: &Environment, words: &[&str]) -> Ran {
    let (io, captured) = Io::captured();
    let arguments = words.iter().map(OsString::from).collect();
    let ended = bench_one_batch_server::run(arguments, environment, &io);
    Ran { out: captured.out(), err: captured.err(), ended }
}

fn run(words: &[&str]) -> Ran {
    run_in(&Environment::default(), words)
}

/// A tokenizer whose tokens are bytes.
fn tokenizer() -> &'static str {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/tokenizers/bytes")
}
