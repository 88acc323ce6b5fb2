//! What is kept of one case: the line of the result file, the structured file, the console's lines.

use super::figures::Figures;
use serde_json::{Value, json};
use std::path::Path;

/// The result of one case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaseResult {
    /// Prompts of the batch.
    pub batch_size: u32,
    /// Prompt tokens of each; the mean, rounded down, where they differ.
    pub input_len: u32,
    /// Most output tokens of each.
    pub output_len: u32,
    /// The figures.
    pub figures: Figures,
    /// Tokens per step of speculative decoding, by the server's report.
    pub acc_length: Option<f64>,
    /// The server's own last figure of output tokens per second.
    pub last_gen_throughput: Option<f64>,
    /// Share of prompt tokens found in the server's cache, by its counters.
    pub cache_hit_rate: Option<f64>,
    /// SHA-256 of route and body: the same workload has the same.
    pub plan_sha256: String,
    /// When it began, in seconds since 1970.
    pub started_at_unix: f64,
    /// Where the traces of the same case, sent once more, are.
    pub profile_folder: Option<String>,
}

/// What all results of a run share.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub(super) run_name: String,
    pub(super) model_path: Option<String>,
    pub(super) server_args: Vec<String>,
    pub(super) simulated: bool,
    /// Whether prompts run to their length, come what may.
    pub(super) ignore_eos: bool,
}

/// The keys of a result line that upstream has, in its order.
#[cfg(test)]
pub(super) const UPSTREAM_KEYS: [&str; 16] = [
    "run_name",
    "batch_size",
    "input_len",
    "output_len",
    "latency",
    "input_throughput",
    "output_throughput",
    "overall_throughput",
    "last_ttft",
    "last_gen_throughput",
    "acc_length",
    "total_output_tokens",
    "num_early_stopped",
    "steady_state_output_throughput",
    "steady_state_window_s",
    "cache_hit_rate",
];

/// A number with `digits` decimals, rounded as Python rounds.
fn rounded(value: f64, digits: usize) -> Value {
    format!("{value:.digits$}").parse::<f64>().map_or(Value::Null, Value::from)
}

fn rounded_or_null(value: Option<f64>, digits: usize) -> Value {
    value.map_or(Value::Null, |value| rounded(value, digits))
}

/// Upstream writes -1 for what the server does not tell.
fn told(value: Option<f64>) -> Value {
    value.map_or(json!(-1.0), |value| rounded(value, 2))
}

impl CaseResult {
    /// The line of the result file: upstream's keys, then ours.
    pub(super) fn line(&self, about: &About) -> String {
        let figures = &self.figures;
        let steady = figures.steady;
        let line = json!({
            "run_name": about.run_name,
            "batch_size": self.batch_size,
            "input_len": self.input_len,
            "output_len": self.output_len,
            "latency": rounded(figures.latency, 4),
            "input_throughput": rounded_or_null(figures.input_throughput, 2),
            "output_throughput": rounded_or_null(figures.output_throughput, 2),
            "overall_throughput": rounded_or_null(figures.overall_throughput, 2),
            "last_ttft": rounded(figures.last_ttft, 4),
            "last_gen_throughput": told(self.last_gen_throughput),
            "acc_length": told(self.acc_length),
            "total_output_tokens": figures.total_output_tokens,
            "num_early_stopped": figures.early_stopped,
            "steady_state_output_throughput":
                rounded_or_null(steady.map(|steady| steady.output_throughput), 2),
            "steady_state_window_s": rounded_or_null(steady.map(|steady| steady.window), 4),
            "cache_hit_rate": rounded_or_null(self.cache_hit_rate, 4),
            "total_input_tokens": figures.total_input_tokens,
            "first_ttft": rounded(figures.first_ttft, 4),
            "upstream_input_throughput": rounded_or_null(figures.upstream.input, 2),
            "upstream_output_throughput": rounded_or_null(figures.upstream.output, 2),
            "upstream_overall_throughput": rounded_or_null(figures.upstream.overall, 2),
            "version": env!("CARGO_PKG_VERSION"),
            "simulated": about.simulated,
            "started_at_unix": self.started_at_unix,
            "plan_sha256": self.plan_sha256,
        });
        line.to_string()
    }

    /// What is printed after the case.
    pub(super) fn console(&self, about: &About) -> String {
        let figures = &self.figures;
        let speed = |name: &str, value: Option<f64>| match value {
            Some(value) => format!("{name}: {value:.2} tok/s"),
            None => format!("{name}: n/a"),
        };
        let mut lines = vec![
            format!("batch size: {}", self.batch_size),
            format!("input_len: {}", self.input_len),
            format!("output_len: {}", self.output_len),
            format!("latency: {:.2} s", figures.latency),
            speed("input throughput", figures.input_throughput),
        ];
        if self.output_len != 1 {
            lines.push(speed("output throughput", figures.output_throughput));
        }
        lines.push(format!("last_ttft: {:.2} s", figures.last_ttft));
        let last = self.last_gen_throughput.unwrap_or(-1.0);
        lines.push(speed("last generation throughput", Some(last)));
        if let Some(length) = self.acc_length.filter(|length| *length > 0.0) {
            lines.push(format!("acc_length: {length:.2} "));
        }
        if let Some(rate) = self.cache_hit_rate {
            lines.push(format!("cache hit rate: {rate:.4}"));
        }
        let asked = u64::from(self.batch_size) * u64::from(self.output_len);
        let total = figures.total_output_tokens;
        if let Some(early) = figures.early_stopped.filter(|_| !about.ignore_eos) {
            lines.push(format!("total output tokens: {total} (requested {asked})"));
            lines.push(format!("early-stopped requests: {early}/{}", self.batch_size));
            lines.push(match figures.steady {
                Some(steady) => format!(
                    "steady-state output throughput: {:.2} tok/s over a {:.2} s full-batch window",
                    steady.output_throughput, steady.window
                ),
                None => {
                    "WARNING: at no time were all requests decoding: one had ended before the last \
                     one began, so there are no steady-state figures"
                        .into()
                }
            });
        }
        if about.ignore_eos && total != asked {
            lines.push(format!(
                "WARNING: {total} tokens came where {asked} were asked for: the server cut output \
                 lengths or left prompts out; the throughput is that of what came"
            ));
        }
        lines.join("\n")
    }

    /// One object of the structured file, not rounded.
    fn structured(&self, about: &About) -> Value {
        let figures = &self.figures;
        let folder = self.profile_folder.as_deref().map(Path::new);
        json!({
            "model_path": about.model_path,
            "run_name": about.run_name,
            "batch_size": self.batch_size,
            "input_len": self.input_len,
            "output_len": self.output_len,
            "latency": figures.latency,
            "input_throughput": figures.input_throughput,
            "output_throughput": figures.output_throughput,
            "overall_throughput": figures.overall_throughput,
            "last_ttft": figures.last_ttft,
            "last_gen_throughput": self.last_gen_throughput.unwrap_or(-1.0),
            "acc_length": self.acc_length.unwrap_or(-1.0),
            "profile_link_extend": folder.and_then(|folder| trace(folder, &["extend", "prefill"])),
            "profile_link_decode": folder.and_then(|folder| trace(folder, &["decode"])),
            "server_args": (!about.server_args.is_empty()).then_some(&about.server_args),
        })
    }
}

/// The structured file: all results as a list.
pub(super) fn structured(results: &[CaseResult], about: &About) -> String {
    let list: Vec<Value> = results.iter().map(|result| result.structured(about)).collect();
    serde_json::to_string_pretty(&list).unwrap_or_default() + "\n"
}

/// The first trace by name whose name has one of `words` in it.
fn trace(folder: &Path, words: &[&str]) -> Option<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    let is_it = |name: &&String| {
        let low = name.to_lowercase();
        let ending = low.ends_with(".trace.json.gz") || low.ends_with(".trace.json");
        ending && words.iter().any(|word| low.contains(word))
    };
    let name = names.iter().find(is_it)?;
    Some(folder.join(name).to_string_lossy().into_owned())
}

/// The keys of a line in its order; for the tests.
#[cfg(test)]
pub(super) fn keys(line: &str) -> Vec<String> {
    let map: serde_json::Map<String, Value> = serde_json::from_str(line).expect("an object");
    map.keys().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::super::figures::Steady;
    use super::*;

    fn result() -> CaseResult {
        CaseResult {
            batch_size: 2,
            input_len: 32,
            output_len: 8,
            figures: Figures {
                latency: 2.123_456,
                last_ttft: 0.5,
                first_ttft: 0.25,
                total_input_tokens: 64,
                total_output_tokens: 13,
                input_throughput: Some(128.0),
                output_throughput: Some(6.125),
                overall_throughput: None,
                early_stopped: Some(1),
                steady: Some(Steady { output_throughput: 10.0, window: 0.5 }),
                ..Figures::default()
            },
            ..CaseResult::default()
        }
    }

    #[test]
    fn the_line_begins_with_upstreams_keys() {
        let line = result().line(&About { run_name: "x".into(), ..About::default() });
        assert_eq!(keys(&line)[..16], UPSTREAM_KEYS);
        let value: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(value["latency"], 2.1235);
        // As Python: the binary number lies halfway, and the even digit wins.
        assert_eq!(value["output_throughput"], 6.12);
        assert_eq!(
            (&value["acc_length"], &value["overall_throughput"]),
            (&json!(-1.0), &Value::Null)
        );
        assert_eq!(value["steady_state_window_s"], 0.5);
    }

    #[test]
    fn the_console_has_upstreams_lines() {
        let mut case = result();
        case.acc_length = Some(2.5);
        case.cache_hit_rate = Some(0.4);
        let about = About { ignore_eos: false, ..About::default() };
        let want = "batch size: 2\ninput_len: 32\noutput_len: 8\nlatency: 2.12 s\n\
            input throughput: 128.00 tok/s\noutput throughput: 6.12 tok/s\nlast_ttft: 0.50 s\n\
            last generation throughput: -1.00 tok/s\nacc_length: 2.50 \ncache hit rate: 0.4000\n\
            total output tokens: 13 (requested 16)\nearly-stopped requests: 1/2\n\
            steady-state output throughput: 10.00 tok/s over a 0.50 s full-batch window";
        assert_eq!(case.console(&about), want);
        let said = case.console(&About { ignore_eos: true, ..About::default() });
        assert!(said.ends_with("the throughput is that of what came"), "{said}");
        case.output_len = 1;
        assert!(!case.console(&about).contains("output throughput: 6"));
    }

    #[test]
    fn the_structured_file_finds_traces_by_stage() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["b-DECODE.trace.json.gz", "a-DECODE.trace.json.gz", "a-EXTEND.trace.json", "z"]
        {
            std::fs::write(folder.path().join(name), "").expect("a file");
        }
        let mut case = result();
        case.profile_folder = Some(folder.path().to_string_lossy().into_owned());
        let about = About { server_args: vec!["--tp".into()], ..About::default() };
        let list: Value = serde_json::from_str(&structured(&[case], &about)).expect("JSON");
        let link = |key: &str| list[0][key].as_str().expect(key).to_owned();
        assert!(link("profile_link_extend").ends_with("/a-EXTEND.trace.json"));
        assert!(link("profile_link_decode").ends_with("/a-DECODE.trace.json.gz"));
        assert_eq!(
            (&list[0]["server_args"], &list[0]["acc_length"]),
            (&json!(["--tp"]), &json!(-1.0))
        );
        assert_eq!(list[0]["latency"], 2.123_456);
    }
}
