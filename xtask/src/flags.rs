//! The page of upstream's flags and ours.

use crate::page;
use servebench_tests::{Flag, Row, SGLANG, Tool, VLLM, has};
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

const SGLANG_INTRODUCTION: &str = "\
Every flag of SGLang 0.5.23's benchmark tools, as their own parsers have them, and what it is here. *Same* is \
the same name, values, number of values and default; a boolean flag is off when it is left out. Where more is \
to say, the last column says it. A test compares both command lines flag by flag, and fails where this page \
would not be true.

`bench-serving`, `bench-one-batch-server`, `profiler` and `send-one` understand unique prefixes of these flags, as \
the Python tools do; flags that are only ours are written in full. Of a repeated flag the last counts. \
[Coming from SGLang](../guide/from-sglang.md) says which command takes the place of which.";

const VLLM_INTRODUCTION: &str = "\
Every flag of vLLM 0.32.0's `vllm bench`, as its own parsers have them, and what it is here. *Same* is the same \
name, values, number of values and default; a boolean flag is off when it is left out. Where more is to say, the \
last column says it. A test compares both command lines flag by flag, and fails where this page would not be true.

All commands understand unique prefixes of these flags, `_` for `-`, `--flag.key VALUE` for JSON and `--config FILE`, \
as the Python tool does; flags that are only ours are written in full. Of a repeated flag the last counts. \
`vllm bench mm-processor`, which needs an engine in the process, and `vllm bench sweep startup` have no command here. \
[Coming from vLLM](../guide/from-vllm.md) says which command takes the place of which, \
[Differences from vllm bench serve](differences-vllm.md) what else is not the same.";

/// `flags-sglang.md`.
pub(crate) fn sglang() -> Result<String, fmt::Error> {
    flags("SGLang's flags", SGLANG_INTRODUCTION, &SGLANG)
}

/// `flags-vllm.md`.
pub(crate) fn vllm() -> Result<String, fmt::Error> {
    flags("vLLM's flags", VLLM_INTRODUCTION, &VLLM)
}

fn flags(title: &str, introduction: &str, tools: &[Tool]) -> Result<String, fmt::Error> {
    let mut text = page(title, introduction);
    for tool in tools {
        let module = tool.started_as.strip_prefix("python -m ");
        write!(text, "## {}\n\n", module.unwrap_or(tool.started_as))?;
        let rows = tool.rows();
        summary(&mut text, tool, &rows)?;
        text.push_str("| flag | value | default | here |\n|---|---|---|---|\n");
        for row in &rows {
            self::row(&mut text, row)?;
        }
        server(&mut text, tool)?;
        ours(&mut text, tool, tools)?;
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    Ok(text)
}

fn summary(text: &mut String, tool: &Tool, rows: &[Row]) -> fmt::Result {
    let said = rows.iter().filter(|row| row.said.is_some()).count();
    let refused = rows.iter().filter(|row| row.refused.is_some()).count();
    writeln!(
        text,
        "`{}` is `{}` here. {} flags: {} the same, {said} better or other, {refused} refused.\n",
        tool.started_as,
        tool.program,
        rows.len(),
        rows.len() - said - refused
    )
}

fn row(text: &mut String, row: &Row) -> fmt::Result {
    let Row { flag, .. } = row;
    let names: Vec<String> =
        [&flag.name].into_iter().chain(&flag.aliases).map(|name| format!("`{name}`")).collect();
    let default = match flag.default_text().filter(|_| flag.kind != "switch") {
        Some(default) if default.starts_with('<') => default.trim_matches(['<', '>']).to_owned(),
        Some(default) => format!("`{default}`"),
        None => String::new(),
    };
    let here = match (row.refused, row.said) {
        (Some(refused), _) => format!("**refused**: {}; {}", refused.why, refused.instead),
        (None, Some(verdict)) => verdict.how.to_owned(),
        (None, None) => "same".to_owned(),
    };
    writeln!(text, "| {} | {} | {default} | {} |", names.join(" "), value(flag), cell(&here))
}

/// What follows the flag on a command line.
fn value(flag: &Flag) -> String {
    if flag.is_switch() {
        return String::new();
    }
    let kind = match flag.kind.as_str() {
        "int" => "integer",
        kind if kind.contains("float") => "number",
        kind if kind.contains("goodput") => "KEY:MS",
        "loads" => "JSON",
        kind if kind.contains("bucket") => "mapping",
        _ => "text",
    };
    let one = match flag.choices.as_slice() {
        [] => kind.to_owned(),
        choices => choices.iter().map(|c| format!("`{c}`")).collect::<Vec<_>>().join(" "),
    };
    match flag.nargs.as_deref() {
        Some("+") => format!("{one}, one or more"),
        Some("*") => format!("{one}, any number"),
        Some("?") => format!("{one}, or nothing"),
        _ => one,
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The flags that the tool hands on to the server it starts: one row for all.
fn server(text: &mut String, tool: &Tool) -> fmt::Result {
    let handed_on = tool.flags_of_its_server();
    let Some(refused) = servebench_cli::Refused::of_its_server(tool.known_as) else {
        if handed_on.is_empty() {
            return Ok(());
        }
        let how = "same: handed on to the server that is started";
        return writeln!(text, "| {} flags of the engine | | | {how} |", handed_on.len());
    };
    let command = tool.command();
    let used: Vec<&Flag> = handed_on.iter().filter(|flag| has(&command, &flag.name)).collect();
    let names: Vec<String> = used.iter().map(|flag| format!("`{}`", flag.name)).collect();
    writeln!(
        text,
        "| {} flags of the server | | | **refused**: {}; {} |",
        handed_on.len() - used.len(),
        cell(refused.why),
        cell(refused.instead)
    )?;
    writeln!(
        text,
        "\nOf the server's flags these are taken, for what the tool itself does with them: {}.",
        names.join(", ")
    )
}

/// The flags that only our program has.
fn ours(text: &mut String, tool: &Tool, tools: &[Tool]) -> fmt::Result {
    // The wrapper's flags are bench-serving's, which has a section of its own.
    if tool.abbreviable.is_empty() {
        text.push('\n');
        return Ok(());
    }
    let theirs: BTreeSet<String> = tools
        .iter()
        .filter(|other| other.program == tool.program)
        .flat_map(|other| other.flags().into_iter().chain(other.flags_of_its_server()))
        .flat_map(|flag| flag.aliases.into_iter().chain([flag.name]))
        .collect();
    let command = tool.command();
    let mut names: Vec<String> = command
        .get_arguments()
        .filter_map(|arg| Some(format!("--{}", arg.get_long()?)))
        .filter(|name| !theirs.contains(name) && name != "--help" && name != "--version")
        .collect();
    names.sort();
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    writeln!(text, "\nOnly `{}` has {}.\n", tool.program, names.join(", "))
}
