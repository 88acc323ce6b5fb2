//! Prints the reference pages that the crates' own tables make: a JSON object of file name and
//! text. `cargo xtask gen` runs it and writes the files.
#![expect(clippy::print_stdout, reason = "its output is the pages")]

mod flags;

use servebench_cli::{Code, VARIABLES};
use servebench_report::{KeyDoc, Presence};
use std::fmt::{self, Write as _};

fn main() -> Result<(), fmt::Error> {
    let pages = serde_json::json!({
        "exit-codes.md": exit_codes()?,
        "environment.md": environment()?,
        "flags-sglang.md": flags::sglang()?,
        "flags-vllm.md": flags::vllm()?,
        "result-keys.md": result_keys()?,
        "result.schema.json": format!("{:#}\n", servebench_report::schema()),
    });
    println!("{pages}");
    Ok(())
}

/// The first lines of a page.
fn page(title: &str, introduction: &str) -> String {
    format!("<!-- made by `cargo xtask gen`; do not edit -->\n# {title}\n\n{introduction}\n\n")
}

fn exit_codes() -> Result<String, fmt::Error> {
    let mut text = page("Exit codes", "How every command ends.");
    text.push_str("| code | meaning |\n|---|---|\n");
    for (code, meaning) in Code::TABLE {
        writeln!(text, "| {} | {meaning} |", code.number())?;
    }
    Ok(text)
}

fn environment() -> Result<String, fmt::Error> {
    let introduction = "The variables that the commands read. One that is set to nothing counts as not set. \
                        Their values never reach results or messages.";
    let mut text = page("Environment variables", introduction);
    text.push_str("| variable | effect |\n|---|---|\n");
    for (variable, effect) in VARIABLES {
        writeln!(text, "| `{variable}` | {effect} |")?;
    }
    Ok(text)
}

fn result_keys() -> Result<String, fmt::Error> {
    let introduction = "Every key of the result line, in the order in which they are written. *upstream* marks \
                        the keys that SGLang's `bench_serving` writes too. `null` means not measured. \
                        [A JSON Schema](result.schema.json) says the same to programs.";
    let mut text = page("Result keys", introduction);
    for (presence, heading) in [
        (Presence::Always, "Always there"),
        (Presence::Goodput, "With `--goodput`"),
        (Presence::CacheReport, "With `--cache-report`"),
        (Presence::Details, "With `--output-details`: one entry for each request, in plan order"),
        (Presence::CacheDetails, "With `--output-details` and `--cache-report`"),
        (Presence::ExpertDetails, "With `--output-details` and `--return-routed-experts`"),
        (Presence::SteadyState, "With `--steady-state-concurrency-ratio`"),
        (Presence::Command, "About the run"),
        (Presence::Conversations, "Of conversations"),
        (Presence::ConversationDetails, "Of conversations, with `--output-details`"),
        (Presence::SeveralServers, "With several `--base-urls`"),
        (Presence::SplitProfile, "With `--profile --pd-separated`"),
    ] {
        writeln!(text, "## {heading}\n")?;
        text.push_str("| key | type | unit | meaning | upstream |\n|---|---|---|---|---|\n");
        for key in servebench_report::keys().filter(|key| key.presence == presence) {
            row(&mut text, key)?;
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    Ok(text)
}

fn row(text: &mut String, key: &KeyDoc) -> fmt::Result {
    let KeyDoc { key: name, types, unit, doc, upstream, .. } = key;
    let upstream = if *upstream { "yes" } else { "" };
    let doc = doc.replace('|', "\\|");
    writeln!(text, "| `{name}` | {} | {unit} | {doc} | {upstream} |", types.join(", "))
}
