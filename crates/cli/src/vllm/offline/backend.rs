//! `--backend` of the commands that run an engine: what runs the model there, which server is asked here.

use crate::{Failure, plain_arguments};
use std::ffi::OsString;

/// Writes abbreviations out, calls `vllm-chat` what it is called here, and refuses the backends that are
/// libraries of Python.
///
/// # Errors
///
/// A usage failure for `hf` and `mii`, and for an ambiguous abbreviation.
pub(in crate::vllm) fn of_a_server(
    words: Vec<OsString>,
    tool: &str,
    upstream: &[&str],
) -> Result<Vec<OsString>, Failure> {
    let mut words = plain_arguments(words, upstream, &[])?;
    let mut follows = false;
    for word in &mut words {
        let Some(text) = word.to_str() else { continue };
        let name = if follows { Some(text) } else { text.strip_prefix("--backend=") };
        let equals = if follows { "" } else { "--backend=" };
        follows = text == "--backend";
        match name {
            Some("vllm-chat") => *word = format!("{equals}openai-chat").into(),
            Some(name @ ("hf" | "mii")) => {
                let why = "it runs a model in the Python process";
                return Err(Failure::usage(format!(
                    "--backend {name} of {tool} is not taken here: {why}"
                ))
                .hint("start a server with the model and measure that"));
            }
            _ => {}
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(typed: &[&str]) -> Result<Vec<String>, String> {
        of_a_server(typed.iter().map(OsString::from).collect(), "the tool", &["--backend"])
            .map(|words| words.into_iter().map(|word| word.into_string().unwrap()).collect())
            .map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_chat_backend_has_another_name_here() {
        assert_eq!(words(&["--back", "vllm-chat"]).unwrap(), ["--backend", "openai-chat"]);
        assert_eq!(words(&["--backend=vllm-chat"]).unwrap(), ["--backend=openai-chat"]);
        let same = ["--backend", "vllm", "--num-prompts", "5", "--unknown=vllm-chat"];
        assert_eq!(words(&same).unwrap(), same);
    }

    #[test]
    fn libraries_are_refused_with_the_reason() {
        for typed in [&["--backend", "hf"][..], &["--backend=mii"]] {
            let said = words(typed).unwrap_err();
            for part in ["the tool is not taken here: it runs", "hint: start a server"] {
                assert!(said.contains(part), "{said}");
            }
        }
    }
}
