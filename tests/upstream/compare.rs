//! One flag of a Python parser against our command.

use crate::Flag;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, Command};

/// In what a flag of ours is not what upstream's is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// Another name of it is not known.
    Names,
    /// It takes another number of values.
    Arity,
    /// It is left out with another effect.
    Default,
    /// A value that upstream takes is refused.
    Fewer,
    /// A value that upstream refuses is taken.
    More,
}

impl Difference {
    /// In a word or two.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Arity => "number of values",
            Self::Default => "default",
            Self::Fewer => "fewer values",
            Self::More => "more values",
        }
    }
}

/// Whether the command has a flag of this name or alias, dashes included.
pub fn has(command: &Command, flag: &str) -> bool {
    argument(command, flag).is_some()
}

/// Our argument of this name or alias, dashes included.
fn argument<'a>(command: &'a Command, flag: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| match flag.strip_prefix("--") {
        Some(name) => {
            arg.get_long() == Some(name)
                || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        }
        None => arg.get_short().is_some_and(|letter| flag == format!("-{letter}")),
    })
}

/// In what ours is not what upstream's is; nothing if it is not there at all.
pub fn differences(command: &Command, flag: &Flag) -> Vec<Difference> {
    let Some(arg) = argument(command, &flag.name) else { return Vec::new() };
    let mut found = Vec::new();
    if flag.aliases.iter().any(|alias| argument(command, alias).is_none()) {
        found.push(Difference::Names);
    }
    if arity(arg) != upstream_arity(flag) {
        found.push(Difference::Arity);
    }
    if !flag.is_switch() && !same_default(arg, flag) {
        found.push(Difference::Default);
    }
    if upstream_values(flag).iter().any(|samples| !samples.iter().any(|v| takes(command, flag, v)))
    {
        found.push(Difference::Fewer);
    }
    let visible = arg.get_possible_values();
    let more = visible.iter().filter(|value| !value.is_hide_set()).any(|value| {
        let known = |choice: &String| choice == value.get_name();
        !flag.choices.iter().any(known)
    });
    if !flag.choices.is_empty() && (more || takes(command, flag, "no-such-choice")) {
        found.push(Difference::More);
    }
    found
}

/// Fewest and most values.
fn arity(arg: &Arg) -> (usize, usize) {
    match arg.get_action() {
        ArgAction::Set | ArgAction::Append => {
            arg.get_num_args().map_or((1, 1), |range| (range.min_values(), range.max_values()))
        }
        _ => (0, 0),
    }
}

fn upstream_arity(flag: &Flag) -> (usize, usize) {
    match flag.nargs.as_deref() {
        _ if flag.is_switch() => (0, 0),
        Some("+") => (1, usize::MAX),
        Some("*") => (0, usize::MAX),
        Some("?") => (0, 1),
        Some(number) => number.parse().map_or((1, 1), |n| (n, n)),
        None => (1, 1),
    }
}

/// Values that upstream takes; of each list at least one must be taken here.
fn upstream_values(flag: &Flag) -> Vec<Vec<&str>> {
    if !flag.choices.is_empty() {
        return flag.choices.iter().map(|choice| vec![choice.as_str()]).collect();
    }
    match flag.kind.as_str() {
        // Some are shares, others must be above 1.
        "float" => vec![vec!["0.5", "1.5", "0"]],
        "int" => vec![vec!["3"]],
        _ => Vec::new(),
    }
}

/// Whether the command takes this value. That other flags are missing or in the way says nothing.
fn takes(command: &Command, flag: &Flag, value: &str) -> bool {
    let words = [command.get_name(), flag.name.as_str(), value];
    match command.clone().try_get_matches_from(words) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation),
    }
}

/// What our help says is taken when the flag is left out.
fn default(arg: &Arg) -> Option<String> {
    let values = arg.get_default_values();
    if !values.is_empty() {
        let words: Vec<_> = values.iter().map(|value| value.to_string_lossy()).collect();
        return Some(words.join(" ")).filter(|words| !words.is_empty());
    }
    let help = arg.get_long_help().or(arg.get_help())?.to_string();
    let (_, rest) = help.split_once("[default: ")?;
    let said = rest.split([']', ';']).next()?;
    // What holds with another flag is said after a comma.
    Some(said.split(", with --").next()?.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn same_default(arg: &Arg, flag: &Flag) -> bool {
    let number = |text: &str| text.parse::<f64>().ok();
    match (default(arg), flag.default_text()) {
        (None, None) => true,
        // What upstream works out later may be said in words, but not be a fixed value.
        (Some(ours), None) => arg.get_default_values().is_empty() && number(&ours).is_none(),
        (None, Some(_)) => false,
        (Some(ours), Some(theirs)) => {
            ours == theirs || number(&ours).is_some_and(|ours| number(&theirs) == Some(ours))
        }
    }
}
