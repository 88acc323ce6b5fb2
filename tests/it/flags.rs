//! The Python tools' flags, as their own parsers have them, against ours: what the reference page says
//! is so.

use bench_serving as serving;
use servebench_cli::{Code, Environment, Failure, Io, REFUSED, Refused, RefusedFlags};
use servebench_tests::{Difference, Row, SGLANG, Tool, VLLM, verdicts};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// Runs one of our programs, named with its subcommand if it has one, in this process.
pub(crate) fn run(program: &str, words: &[&str]) -> (Result<Code, Failure>, String) {
    let (io, captured) = Io::captured();
    let mut named = program.split(' ');
    let program = named.next().unwrap_or_default();
    let words: Vec<OsString> = named.chain(words.iter().copied()).map(OsString::from).collect();
    let environment = Environment::default();
    let ended = match program {
        "bench-serving" => serving::run(words, &environment, &io),
        "bench-one-batch-server" => bench_one_batch_server::run(words, &environment, &io),
        "profiler" => profiler::run(words, &environment, &io),
        "send-one" => send_one::run(words, &environment, &io),
        "bench-vllm" => bench_vllm::run(words, &environment, &io),
        other => panic!("no program is called {other}"),
    };
    (ended, captured.out())
}

fn tools() -> impl Iterator<Item = Tool> {
    SGLANG.into_iter().chain(VLLM)
}

/// Every row of every tool, with the tool.
fn rows() -> impl Iterator<Item = (Tool, Row)> {
    tools().flat_map(|tool| tool.rows().into_iter().map(move |row| (tool, row)))
}

/// Fails with all complaints at once.
#[track_caller]
fn none(complaints: impl Iterator<Item = String>) {
    let complaints: Vec<String> = complaints.collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn the_recordings_are_whole() {
    let counts = |tool: Tool| (tool.flags().len(), tool.flags_of_its_server().len());
    assert_eq!(SGLANG.map(counts), [(87, 0), (2, 0), (44, 531), (10, 0), (23, 0)]);
    let vllm = [(101, 0), (40, 251), (11, 249), (4, 250), (15, 0), (17, 0), (16, 0), (4, 0)];
    assert_eq!(VLLM.map(counts), vllm);
}

#[test]
fn every_upstream_flag_is_defined_or_refused_and_not_both() {
    none(rows().filter(|(_, row)| row.defined == row.refused.is_some()).map(|(tool, row)| {
        let what = if row.defined { "both defined and refused" } else { "not there" };
        format!("{}: {} is {what}", tool.program, row.flag.name)
    }));
}

#[test]
fn what_differs_is_said_and_what_is_said_is_so() {
    none(rows().filter_map(|(tool, row)| {
        let said = row.said.map_or(&[] as &[Difference], |verdict| verdict.differs);
        let (said, found): (BTreeSet<_>, BTreeSet<_>) =
            (said.iter().collect(), row.differences.iter().collect());
        let words = || format!("{} {}: said {said:?}, found {found:?}", tool.name, row.flag.name);
        (said != found).then(words)
    }));
}

#[test]
fn every_verdict_and_every_refusal_is_about_a_flag_that_exists() {
    let known: BTreeSet<(&str, String)> =
        rows().map(|(tool, row)| (tool.name, row.flag.name)).collect();
    let tables: BTreeSet<&str> = verdicts::TABLES.iter().map(|(tool, _)| *tool).collect();
    let said = || tables.iter().flat_map(|tool| verdicts::of(tool));
    let verdicts = said()
        .filter(|verdict| !known.contains(&(verdict.tool, verdict.flag.to_owned())))
        .map(|verdict| format!("{} has no {}", verdict.tool, verdict.flag));
    // Of scripts there is no recording.
    let recorded = |refused: &&Refused| tools().any(|tool| tool.known_as == refused.tool);
    let refusals = REFUSED.iter().filter(recorded).flat_map(|refused| match refused.flags {
        RefusedFlags::Named(names) => names.iter().map(|flag| (refused.tool, *flag)).collect(),
        RefusedFlags::OfItsServer => Vec::new(),
    });
    let exists = |known_as: &str, flag: &str| {
        let named = |row: &Row| row.flag.name == flag || row.flag.aliases.iter().any(|a| a == flag);
        rows().any(|(tool, row)| tool.known_as == known_as && named(&row))
    };
    let refusals = refusals
        .filter(|(tool, flag)| !exists(tool, flag))
        .map(|(tool, flag)| format!("{tool} has no {flag}"));
    let mut twice = BTreeSet::new();
    let twice = said()
        .filter(|verdict| !twice.insert((verdict.tool, verdict.flag)))
        .map(|verdict| format!("two verdicts on {} {}", verdict.tool, verdict.flag));
    none(verdicts.chain(refusals).chain(twice));
}

#[test]
fn what_may_be_abbreviated_are_upstreams_flags() {
    for tool in tools().filter(|tool| !tool.abbreviable.is_empty()) {
        let ours: BTreeSet<&str> = tool.abbreviable.iter().copied().collect();
        let recorded = tool.flags();
        let mut theirs: BTreeSet<&str> = recorded
            .iter()
            .flat_map(|flag| flag.aliases.iter().chain([&flag.name]))
            .map(String::as_str)
            .filter(|name| name.starts_with("--"))
            .collect();
        // Taken before there is a parser.
        theirs.extend(
            ["--help"]
                .into_iter()
                .chain(tool.program.starts_with("bench-vllm serve").then_some("--config")),
        );
        // A tool that starts its server uses some of the server's flags itself.
        let served = tool.flags_of_its_server();
        let served: BTreeSet<&str> = served.iter().map(|flag| flag.name.as_str()).collect();
        let strangers: Vec<_> =
            ours.difference(&theirs).filter(|name| !served.contains(*name)).collect();
        assert!(strangers.is_empty(), "{} does not have {strangers:?}", tool.name);
        let missing: Vec<_> = theirs.difference(&ours).collect();
        assert!(missing.is_empty(), "{} has {missing:?} too", tool.name);
    }
}

#[test]
fn refused_flags_end_with_2_and_say_why() {
    let mut refused = 0;
    for (tool, row) in rows() {
        let Some(why) = row.refused else { continue };
        says_why(&tool, &row.flag.name, why);
        refused += 1;
    }
    for tool in tools() {
        // Without a refusal they are handed on to the server that is started.
        let Some(why) = Refused::of_its_server(tool.known_as) else { continue };
        let (command, taken) = (tool.command(), tool.flags_of_its_server());
        for flag in taken.iter().filter(|flag| !servebench_tests::has(&command, &flag.name)) {
            says_why(&tool, &flag.name, why);
            refused += 1;
        }
    }
    assert!(refused > 900, "{refused}");
}

#[track_caller]
fn says_why(tool: &Tool, flag: &str, refused: &Refused) {
    let failure = run(tool.program, &[flag, "1"]).0.expect_err(flag);
    assert_eq!(failure.code, Code::Usage, "{flag}: {failure}");
    let said = failure.to_string();
    for part in [flag, refused.why, refused.instead] {
        assert!(said.contains(part), "no `{part}` in: {said}");
    }
}

/// The programs that print their plan.
const PLANNERS: [&str; 5] = [
    "bench-serving",
    "bench-one-batch-server",
    "bench-vllm serve",
    "bench-vllm throughput",
    "bench-vllm latency",
];

/// A plan without what is drawn anew for each run.
fn without_draws(plan: &str) -> Vec<&str> {
    plan.lines().filter(|line| !line.contains("\"request_id_prefix\"")).collect()
}

/// What the help says is taken when a flag is left out is what is taken.
#[test]
fn giving_the_default_changes_nothing() {
    let mut compared = 0;
    for (tool, row) in rows() {
        let differs = row.differences.contains(&Difference::Default);
        let Some(default) = row.flag.default_text() else { continue };
        let plans = PLANNERS.contains(&tool.program);
        if !plans || differs || row.flag.is_switch() || !row.defined {
            continue;
        }
        let words = [&["--dry-run", &row.flag.name][..], &default.split(' ').collect::<Vec<_>>()];
        let (ended, given) = run(tool.program, &words.concat());
        assert!(ended.is_ok(), "{} {default}: {ended:?}", row.flag.name);
        let (_, left_out) = run(tool.program, &["--dry-run"]);
        let [given, left_out] = [&given, &left_out].map(|plan| without_draws(plan));
        assert_eq!(given, left_out, "{} {}", tool.program, row.flag.name);
        compared += 1;
    }
    assert!(compared > 50, "{compared}");
}
