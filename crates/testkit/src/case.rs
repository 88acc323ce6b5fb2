//! Scripts in Markdown, each with what a client must make of it.

use crate::{Script, ScriptError};
use serde_json::{Map, Value};

/// A script and the record expected of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// The last heading above it, and its `_v` label where it has one.
    pub name: String,
    /// What the server sends.
    pub script: Script,
    /// What the record of the request must hold.
    pub expect: Map<String, Value>,
}

/// The cases of a Markdown file: every fenced `script` block and the `expect` block behind it.
///
/// Fails when a script cannot be read; a script block without an `expect` block is skipped.
pub fn cases(markdown: &str) -> Result<Vec<Case>, ScriptError> {
    let mut found = Vec::new();
    let mut heading = String::new();
    let mut script = None;
    let mut lines = markdown.lines();
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("### ") {
            title.clone_into(&mut heading);
        }
        let Some(kind) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
        let block = block.join("\n");
        match kind {
            "script" => script = Some(block.parse::<Script>()?),
            "expect" => {
                let problem = |error: serde_json::Error| ScriptError {
                    line: 1,
                    problem: format!("expect block below `{heading}`: {error}"),
                };
                let expect: Map<String, Value> = serde_json::from_str(&block).map_err(problem)?;
                if let Some(script) = script.take() {
                    let label = expect.get("_v").and_then(Value::as_str).unwrap_or_default();
                    let name = format!("{heading} {label}").trim_end().to_owned();
                    found.push(Case { name, script, expect });
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_and_expectations_are_paired() {
        let text =
            "### X-1\n```script\n1 DONE\n```\n```expect\n{\"_v\":\"a\",\"api\":\"chat\"}\n```\n";
        let cases = cases(text).expect("readable");
        assert_eq!(cases.len(), 1);
        assert_eq!(cases[0].name, "X-1 a");
        assert_eq!(cases[0].expect["api"], "chat");
        assert_eq!(cases[0].script.writes.len(), 1);
    }
}
