//! Command lines as Python's argparse takes them.
//!
//! Before clap sees a command line it is put into plain form: abbreviated flags are written out,
//! and of a repeated flag only the last occurrence stays, its list of values included. Only the
//! flags of the tool being replaced can be abbreviated: a new flag of ours never makes an old
//! abbreviation ambiguous, and ours are written in full.

use crate::Failure;
use std::collections::HashMap;
use std::ffi::OsString;

/// Puts `arguments` (without the program's name) into plain form.
///
/// `upstream` are the flags that may be abbreviated, `ours` those that may not.
///
/// ```
/// let plain = servebench_cli::plain_arguments(
///     ["--num-p", "7", "--seed=1", "--seed", "2"].map(Into::into),
///     &["--num-prompts", "--seed"],
///     &["--number-of-dreams"],
/// )?;
/// assert_eq!(plain, ["--num-prompts", "7", "--seed", "2"]);
/// # Ok::<(), servebench_cli::Failure>(())
/// ```
pub fn plain_arguments(
    arguments: impl IntoIterator<Item = OsString>,
    upstream: &[&str],
    ours: &[&str],
) -> Result<Vec<OsString>, Failure> {
    let mut groups: Vec<Group> = Vec::new();
    for argument in arguments {
        let text = argument.to_str().filter(|text| text.starts_with("--") && text.len() > 2);
        match text {
            Some(text) => {
                let (name, value) = match text.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (text, None),
                };
                let name = expand(name, upstream, ours)?;
                let written = value.map_or(name.clone(), |value| format!("{name}={value}"));
                groups.push(Group { name, words: vec![written.into()] });
            }
            None => match groups.last_mut() {
                Some(group) => group.words.push(argument),
                None => groups.push(Group { name: String::new(), words: vec![argument] }),
            },
        }
    }
    let last: HashMap<String, usize> =
        groups.iter().enumerate().map(|(at, group)| (group.name.clone(), at)).collect();
    Ok(groups
        .into_iter()
        .enumerate()
        .filter(|(at, group)| last.get(&group.name) == Some(at))
        .flat_map(|(_, group)| group.words)
        .collect())
}

/// A flag and the words up to the next flag.
struct Group {
    name: String,
    words: Vec<OsString>,
}

fn expand(name: &str, upstream: &[&str], ours: &[&str]) -> Result<String, Failure> {
    if upstream.contains(&name) || ours.contains(&name) {
        return Ok(name.to_owned());
    }
    let matches: Vec<&str> =
        upstream.iter().copied().filter(|flag| flag.starts_with(name)).collect();
    match matches.as_slice() {
        // What nobody knows is left to clap, whose message has suggestions.
        [] => Ok(name.to_owned()),
        [only] => Ok((*only).to_owned()),
        several => Err(Failure::usage(format!(
            "ambiguous option: {name} could match {}",
            several.join(", ")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPSTREAM: [&str; 4] =
        ["--random-input-len", "--random-image-count", "--header", "--logprob-start-len"];

    fn plain(words: &[&str]) -> Result<Vec<String>, String> {
        plain_arguments(words.iter().map(OsString::from), &UPSTREAM, &["--random-innings"])
            .map(|words| words.into_iter().map(|w| w.into_string().unwrap()).collect())
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn unique_prefixes_are_written_out_with_and_without_equals() {
        assert_eq!(plain(&["--random-input", "5"]).unwrap(), ["--random-input-len", "5"]);
        assert_eq!(plain(&["--random-in=5"]).unwrap(), ["--random-input-len=5"]);
    }

    #[test]
    fn ambiguous_prefixes_name_the_candidates() {
        let message = plain(&["--random-i", "5"]).unwrap_err();
        assert!(message.contains("--random-input-len, --random-image-count"), "{message}");
    }

    #[test]
    fn negative_numbers_are_values() {
        assert_eq!(plain(&["--logprob", "-1"]).unwrap(), ["--logprob-start-len", "-1"]);
    }

    #[test]
    fn the_last_of_a_repeated_list_wins() {
        let words = ["--header", "a=1", "b=2", "--header", "c=3"];
        assert_eq!(plain(&words).unwrap(), ["--header", "c=3"]);
    }

    #[test]
    fn unknown_flags_pass_through() {
        assert_eq!(plain(&["--nonsense", "x"]).unwrap(), ["--nonsense", "x"]);
    }
}
