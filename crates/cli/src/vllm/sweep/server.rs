//! Where the server of a command line listens, and how its caches are emptied.

use crate::Failure;

/// What is done between runs, so that none finds what another left in the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Between {
    /// This command.
    Command(Vec<String>),
    /// POST to these paths.
    Reset(&'static [&'static str]),
}

impl Between {
    /// What fits the server, by its command's first word.
    ///
    /// # Errors
    ///
    /// A usage failure for a server of which nothing is known and no command is given.
    pub(super) fn of(serve: &[String], after: Option<Vec<String>>) -> Result<Self, Failure> {
        if let Some(after) = after.filter(|after| !after.is_empty()) {
            return Ok(Self::Command(after));
        }
        let first = serve.first().map_or("", String::as_str);
        let unknown = |why: &str| {
            Err(Failure::usage(format!("--serve-cmd: {why}"))
                .hint("--after-bench-cmd gives a command that empties them; `true` does nothing"))
        };
        if first.ends_with("vllm") {
            Ok(Self::Reset(&["/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache"]))
        } else if first.ends_with("sim-server") {
            Ok(Self::Reset(&["/reset_prefix_cache"]))
        } else if first.ends_with("infinity_emb") {
            if serve.iter().any(|word| word == "--vector-disk-cache") {
                return unknown("infinity_emb has no call that empties its --vector-disk-cache");
            }
            Ok(Self::Reset(&[]))
        } else {
            unknown(&format!("how the caches of `{first}` are emptied is not known"))
        }
    }
}

/// The server's address, by the last `--host` and `--port` (or `-p`) of its command.
pub(in crate::vllm) fn url(serve: &[String]) -> String {
    let value = |flags: &[&str]| {
        let mut found = None;
        for (place, word) in serve.iter().enumerate() {
            if flags.contains(&word.as_str()) {
                found = serve.get(place + 1).map(String::as_str).or(found);
            } else if let Some((flag, value)) = word.split_once('=')
                && flags.contains(&flag)
            {
                found = Some(value);
            }
        }
        found
    };
    let host = value(&["--host"]).unwrap_or("localhost");
    let port = value(&["--port", "-p"]).unwrap_or("8000");
    if host.contains(':') && !host.starts_with('[') {
        format!("http://[{host}]:{port}")
    } else {
        format!("http://{host}:{port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn addresses_are_read_in_both_forms() {
        assert_eq!(url(&words("vllm serve m")), "http://localhost:8000");
        assert_eq!(url(&words("vllm serve -p 1 --host=::1")), "http://[::1]:1");
        assert_eq!(url(&words("x --port 1 --port=2 --host h")), "http://h:2");
    }

    #[test]
    fn caches_are_emptied_as_the_server_needs() {
        let of = |line: &str| Between::of(&words(line), None);
        assert!(matches!(of("/bin/vllm serve m"), Ok(Between::Reset([_, _, _]))));
        assert!(matches!(of("infinity_emb v2"), Ok(Between::Reset([]))));
        assert!(of("infinity_emb --vector-disk-cache").is_err());
        let failure = of("python -m x").expect_err("a failure");
        assert!(failure.hint.is_some_and(|hint| hint.contains("--after-bench-cmd")));
        let given = Between::of(&words("python"), Some(words("curl x"))).expect("a command");
        assert_eq!(given, Between::Command(words("curl x")));
    }
}
