//! What all commands do around their own work.

use crate::args::SGLANG_FLAGS;
use crate::{Code, Environment, Failure, Io, Refused, plain_arguments, replica};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs a command as a process: hands it its arguments, its environment and its output, shows what
/// went wrong, and gives the exit code.
pub fn main(
    run: impl FnOnce(Vec<OsString>, &Environment, &Io) -> Result<Code, Failure>,
) -> ExitCode {
    use_small_pages();
    let io = Io::standard();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let ended = if arguments.first().is_some_and(|word| word == replica::WORD) {
        replica::serve(&mut std::io::stdin().lock(), &io)
    } else {
        run(arguments, &Environment::from_process(), &io)
    };
    let code = ended.unwrap_or_else(|failure| {
        io.say(&failure);
        failure.code
    });
    code.into()
}

/// Asks for pages of 4 KB alone. Each thread's heap is small but spread out, and with pages of 2 MB the
/// memory in use was twice as much, for no gain in speed.
fn use_small_pages() {
    #[cfg(target_os = "linux")]
    // Where that is refused the pages are large, and all else as it was.
    let _ = nix::sys::prctl::set_thp_disable(true);
}

/// Reads arguments (without the program's name) the way `sglang.bench_serving` does.
///
/// `Ok(None)` when all that was asked for, as with `--help`, has been printed.
///
/// # Errors
///
/// A usage failure whose message names the flag.
pub fn parse<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    parse_as(arguments, "sglang.bench_serving", SGLANG_FLAGS, io)
}

/// The flags of a command.
fn known_flags(command: &clap::Command) -> Vec<String> {
    let flags = command.get_arguments().filter_map(clap::Arg::get_long).chain(["version"]);
    flags.map(|flag| format!("--{flag}")).collect()
}

/// The arguments of [`parse_as`] as they are understood: written out, the last of each flag alone.
pub(crate) fn understood<A: CommandFactory>(
    arguments: &[OsString],
    upstream: &[&str],
) -> Result<Vec<OsString>, Failure> {
    let known = known_flags(&A::command());
    let ours: Vec<&str> = known.iter().map(String::as_str).collect();
    plain_arguments(arguments.iter().cloned(), upstream, &ours)
}

/// Reads the command line of a run from what its log keeps of it.
pub(crate) fn reread<A: Parser + CommandFactory>(logged: &[String]) -> Result<A, Failure> {
    let command = A::command().mut_args(with_negative);
    let name = command.get_name().to_owned();
    let words = std::iter::once(&name).chain(logged);
    let parsed = command.try_get_matches_from(words);
    parsed.and_then(|matches| A::from_arg_matches(&matches)).map_err(|error| {
        let error = anyhow::anyhow!("the log's command line is not understood: {error}");
        Failure::new(Code::Data, error).hint("it was written by another version of this program")
    })
}

/// A negative number is a value, and the flag it was given to says why it is wrong.
fn with_negative(arg: clap::Arg) -> clap::Arg {
    match arg.get_action() {
        clap::ArgAction::Set | clap::ArgAction::Append => arg.allow_negative_numbers(true),
        _ => arg,
    }
}

/// Flags whose values may be secrets: what is wrong with one is said without it.
const SECRET: [&str; 2] = ["--header", "--api-key"];

fn holds_secret(error: &clap::Error) -> bool {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(arg)) => SECRET.iter().any(|flag| arg.starts_with(flag)),
        _ => false,
    }
}

/// As [`parse`], for the Python tool `tool`, whose flags are `upstream`: they alone may be
/// abbreviated.
///
/// # Errors
///
/// A usage failure whose message names the flag.
pub fn parse_as<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    tool: &str,
    upstream: &[&str],
    io: &Io,
) -> Result<Option<A>, Failure> {
    let command = A::command().mut_args(with_negative);
    let name = command.get_name().to_owned();
    let known = known_flags(&command);
    let ours: Vec<&str> = known.iter().map(String::as_str).collect();
    let plain = plain_arguments(arguments, upstream, &ours)?;
    let flag = |word: &OsString| word.to_str()?.split('=').next().map(str::to_owned);
    let given = || plain.iter().filter_map(flag);
    if let Some((flag, refused)) =
        given().find_map(|flag| Refused::named(tool, &flag).map(|refused| (flag, refused)))
    {
        return Err(refused.failure(&flag));
    }
    let missing = |flag: &String| {
        upstream.contains(&flag.as_str()) && !ours.contains(&flag.as_str()) && flag != "--help"
    };
    if let Some(flag) = given().find(missing) {
        let message = format!("{flag} is a flag of {tool} that is not built here yet");
        return Err(Failure::usage(message).hint("--help lists what there is"));
    }
    let words = std::iter::once(OsString::from(&name)).chain(plain);
    let parsed = command.try_get_matches_from(words);
    match parsed.and_then(|matches| A::from_arg_matches(&matches)) {
        Ok(args) => Ok(Some(args)),
        Err(error) if !error.use_stderr() => {
            io.print(error.render().to_string().trim_end())
                .map_err(|error| Failure::new(Code::Output, error))?;
            Ok(None)
        }
        Err(mut error) => {
            if holds_secret(&error) {
                error.insert(ContextKind::InvalidValue, ContextValue::String("…".to_owned()));
            }
            let text = error.render().to_string();
            let text = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
            let failure = Failure::usage(text);
            // The Python tool takes every flag of its server too.
            let server =
                Refused::of_its_server(tool).filter(|_| error.kind() == ErrorKind::UnknownArgument);
            Err(match server {
                Some(refused) => failure.hint(format!("{}; {}", refused.why, refused.instead)),
                None => failure,
            })
        }
    }
}
