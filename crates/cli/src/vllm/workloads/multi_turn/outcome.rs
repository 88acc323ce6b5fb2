//! What came of the conversations: tables, files, and how the command ends.

use super::super::super::offline::{Kind, Pass, save};
use super::super::super::session::Session;
use super::args::MultiTurnArgs;
use super::convert::as_json;
use super::options::MultiTurnPlan;
use super::statistics::{RequestStats, Shown, WIDTH, requests, runtime};
use super::talks::{Sent, Talk, role};
use crate::exit::OrCode;
use crate::{Code, Failure};
use serde_json::{Value, json};
use servebench_core::Record;
use servebench_datasets::vllm::{GeneratorConfig, MultiTurnConversation};
use servebench_report::vllm::{Series, describe, write};
use servebench_run::Job;
use servebench_tokens::{Tokenizer, TokensError};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

/// Most answers that are shown beside those they should be.
const DIFFERENCES: usize = 5;
/// Characters of an answer that are shown.
const EXCERPT: usize = 60;

/// A run that is over.
pub(super) struct Outcome<'a> {
    pub(super) args: &'a MultiTurnArgs,
    pub(super) own: &'a MultiTurnPlan,
    pub(super) session: &'a Session<'a>,
    pub(super) pass: &'a Pass,
    pub(super) talks: &'a [Talk],
    pub(super) sent: &'a [Sent<'a>],
    pub(super) job: &'a Job,
    pub(super) generator: Option<&'a GeneratorConfig>,
    pub(super) warmup_seconds: Option<f64>,
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) sha256: &'a str,
}

impl Outcome<'_> {
    /// Prints the tables, writes the files, and says how the command ends.
    pub(super) fn report(&self) -> Result<Code, Failure> {
        let (session, io, report) = (self.session, self.session.io, &self.args.report);
        let stats = requests(self.sent, self.talks, &self.clients(), self.tokenizer);
        let stats = stats.or_code(Code::Data)?;
        let (parameters, generator) = (self.parameters(), self.generator());
        let shown = Shown {
            parameters: &parameters,
            generator: &generator,
            warmups: &self.own.warmups,
            warmup_seconds: self.warmup_seconds,
            verbose: report.verbose,
        };
        let turns = self.by_turn();
        let text = if stats.is_empty() {
            "no request succeeded: no statistics".to_owned()
        } else {
            format!("{}\n{}", shown.tables(&stats), Self::turn_table(&turns))
        };
        let printed = io.print(format_args!("{text}\n{}\n{}", self.summary(), self.pass.client));
        let different = if report.verify_output { self.verify() } else { 0 };
        if report.print_content {
            io.print(self.content()).or_code(Code::Output)?;
        }
        self.write_stats(report.stats_json_output.as_deref(), &stats)?;
        self.write_talks(report.output_file.as_deref())?;
        let path = self.args.around.output_json.as_deref();
        save(path, &self.result(&stats, &turns, different), io)?;
        printed.or_code(Code::Output)?;
        let code = self.pass.code(session);
        Ok(if code == Code::Done && different > 0 { Code::Gate } else { code })
    }

    /// The client of each conversation that was begun, by its place.
    fn clients(&self) -> HashMap<usize, usize> {
        let begun = &self.pass.measured.finished.clients;
        let place =
            |id: u64| self.job.requests.binary_search_by_key(&id, |request| request.id).ok();
        begun.iter().filter_map(|(id, client)| Some((place(*id)?, *client))).collect()
    }

    fn parameters(&self) -> Vec<(&'static str, String)> {
        let own = self.own;
        let mut parameters = vec![
            ("model", self.session.names.model.clone()),
            ("num_clients", own.num_clients.to_string()),
            ("num_conversations", self.talks.len().to_string()),
            ("active_conversations", own.max_active_conversations.to_string()),
            ("seed", own.seed.to_string()),
        ];
        for (name, limit) in
            [("min_tokens", own.limit_min_tokens), ("max_tokens", own.limit_max_tokens)]
        {
            if limit > 0 {
                parameters.push((name, limit.to_string()));
            }
        }
        parameters
    }

    fn generator(&self) -> Vec<(&'static str, String)> {
        let Some(config) = self.generator else { return Vec::new() };
        let files: Vec<String> =
            config.text_files.iter().map(|file| file.display().to_string()).collect();
        vec![
            ("text_files", if files.is_empty() { "built-in".to_owned() } else { files.join(", ") }),
            ("input_num_turns", config.num_turns.to_string()),
            ("input_common_prefix_num_tokens", config.common_prefix_num_tokens.to_string()),
            ("input_prefix_num_tokens", config.prefix_num_tokens.to_string()),
            ("input_num_tokens", config.num_tokens.to_string()),
            ("output_num_tokens", config.output_num_tokens.to_string()),
        ]
    }

    /// The requests by the user's turns, from the first that was sent.
    fn by_turn(&self) -> Vec<Turn> {
        let last = self.sent.iter().map(|sent| sent.turn).max();
        let numbers = last.map_or(0..0, |last| 0..last + 1);
        let turn = |number: usize| {
            let records = || self.sent.iter().filter(|it| it.turn == number).map(|it| it.record);
            let successes = || records().filter(|record| record.is_success());
            let told =
                |record: &Record| Some((record.reply.prompt_tokens?, record.reply.cached_tokens));
            let (mut input, mut cached, mut count) = (0, None, 0_u32);
            for (tokens, found) in successes().filter_map(told) {
                input += u64::from(tokens);
                count += 1;
                if let Some(found) = found {
                    *cached.get_or_insert(0) += found;
                }
            }
            Turn {
                number: number + 1,
                input: (count > 0).then(|| input as f64 / f64::from(count)),
                cached: cached.filter(|_| input > 0).map(|cached| cached as f64 / input as f64),
                kind: Kind::of(format!("turn {}", number + 1), records()),
                records: records().count(),
            }
        };
        numbers.map(turn).filter(|turn| turn.records > 0).collect()
    }

    /// Latencies by turn, and below them how much of the prompts the server had in its cache.
    fn turn_table(turns: &[Turn]) -> String {
        let kinds: Vec<Kind> = turns.iter().map(|turn| turn.kind.clone()).collect();
        let mut text = Kind::table("By turn (ms)", &kinds);
        let line = |name: &str, values: Vec<String>| format!("\n{name:<20} {}", values.join(" "));
        let inputs: Option<Vec<String>> =
            turns.iter().map(|turn| Some(format!("{:.0}", turn.input?))).collect();
        let cached: Option<Vec<String>> =
            turns.iter().map(|turn| Some(format!("{:.1}", turn.cached? * 100.0))).collect();
        text += &inputs.map(|values| line("prompt tokens", values)).unwrap_or_default();
        text += &cached.map(|values| line("of them cached (%)", values)).unwrap_or_default();
        text + "\n" + &"-".repeat(WIDTH)
    }

    /// One line: what was done of what there was.
    fn summary(&self) -> String {
        let finished = self.talks.iter().filter(|talk| talk.finished).count();
        let (pass, run) = (self.pass, &self.pass.measured.finished);
        let mut text = format!(
            "{finished} of {} conversations finished; {} requests succeeded, {} failed",
            self.talks.len(),
            pass.completed,
            pass.failed
        );
        // Writing to a string cannot fail.
        if !run.retried.is_empty() {
            let _ = write!(text, ", {} were sent again", run.retried.len());
        }
        if run.unsent > 0 {
            let _ = write!(text, ", {} were not sent", run.unsent);
        }
        text
    }

    /// Shows answers that are not those of the conversations, and says how many conversations have one. What
    /// follows the first of them is another conversation.
    fn verify(&self) -> usize {
        let io = self.session.io;
        let mut different = 0;
        for (place, talk) in self.talks.iter().enumerate() {
            let answered = self.sent.iter().filter(|it| it.talk == place && it.record.is_success());
            let mut turns: Vec<usize> = answered.map(|it| it.turn).collect();
            turns.sort_unstable();
            let Some(turn) = turns.into_iter().find(|turn| talk.differs(*turn)) else { continue };
            different += 1;
            if different <= DIFFERENCES {
                let (got, want) = (&talk.messages[2 * turn + 1], &talk.expected[turn]);
                io.say(format_args!(
                    "{}, turn {}: the answer is not the one expected: {:?}, not {:?}",
                    talk.id,
                    turn + 1,
                    excerpt(got),
                    excerpt(want)
                ));
            }
        }
        if different > 0 {
            io.say(format_args!("--verify-output: {different} conversations have other answers"));
        } else {
            io.say("--verify-output: all answers are those expected");
        }
        different
    }

    /// What was said, as far as it was.
    fn content(&self) -> String {
        let begun = self.clients();
        let mut text = String::new();
        for (place, talk) in self.talks.iter().enumerate() {
            if !begun.contains_key(&place) {
                continue;
            }
            for (at, message) in talk.messages[..self.said(place)].iter().enumerate() {
                let _ = writeln!(text, "{} {}: {message}", talk.id, role(at));
            }
        }
        text.pop();
        text
    }

    /// How many messages of a conversation were really said.
    fn said(&self, place: usize) -> usize {
        let turns = self.sent.iter().filter(|it| it.talk == place && it.record.is_success());
        let skipped = self.talks[place].skipped;
        2 * turns.map(|it| it.turn + 1).max().unwrap_or(skipped)
    }

    fn write_stats(&self, path: Option<&Path>, stats: &[RequestStats]) -> Result<(), Failure> {
        let Some(path) = path else { return Ok(()) };
        let text = serde_json::to_string_pretty(stats).or_code(Code::Bug)?;
        write(path, &text, false).or_code(Code::Output)?;
        self.session.io.say(format_args!("figures of requests written to {}", path.display()));
        Ok(())
    }

    fn write_talks(&self, path: Option<&Path>) -> Result<(), Failure> {
        let Some(path) = path else { return Ok(()) };
        let talk = |talk: &Talk| {
            let (id, messages) = (talk.id.clone(), talk.messages.clone());
            as_json(&MultiTurnConversation { id, messages })
        };
        let finished = self.talks.iter().filter(|talk| talk.finished);
        save(Some(path), &finished.map(talk).collect(), self.session.io)
    }

    fn result(&self, stats: &[RequestStats], turns: &[Turn], different: usize) -> Value {
        let seconds = runtime(stats);
        let mut own = self.pass.own(self.session);
        let run = &self.pass.measured.finished;
        own["plan_sha256"] = self.sha256.into();
        own["plan"] = super::shown(self.session.plan, self.own);
        own["retried"] = run.retried.len().into();
        own["unsent"] = run.unsent.into();
        // Turns after one that failed, and what the limits left out, were not to be sent.
        own["partial"] = (own["partial"] == true && run.ended_by.is_some()).into();
        own["turns"] = turns.iter().map(Turn::json).collect();
        own["client"] = self.pass.client.as_str().into();
        if self.args.report.verify_output {
            own["conversations_with_other_answers"] = different.into();
        }
        json!({
            "model_id": self.session.names.model,
            "num_clients": self.own.num_clients,
            "num_conversations": self.talks.len(),
            "finished_conversations": self.talks.iter().filter(|talk| talk.finished).count(),
            "runtime_sec": seconds,
            "requests_per_sec": (seconds > 0.0).then(|| stats.len() as f64 / seconds),
            "warmup_runtime_sec": self.warmup_seconds,
            "servebench": own,
        })
    }
}

/// The requests of one turn of all conversations.
struct Turn {
    number: usize,
    records: usize,
    /// Mean tokens of the prompts, by the server's count.
    input: Option<f64>,
    /// The part of them that the server had in its cache.
    cached: Option<f64>,
    kind: Kind,
}

impl Turn {
    fn json(&self) -> Value {
        let mut value = self.kind.json();
        value["turn"] = self.number.into();
        value["prompt_tokens"] = json!(self.input);
        value["cached_percent"] = json!(self.cached.map(|part| part * 100.0));
        value
    }
}

fn excerpt(text: &str) -> String {
    match text.char_indices().nth(EXCERPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The statistics of conversations before the run: their messages, and with `lengths` their tokens.
pub(super) fn about(
    conversations: &[MultiTurnConversation],
    lengths: bool,
    tokenizer: &Tokenizer,
) -> Result<String, TokensError> {
    let rule = "-".repeat(WIDTH);
    let series = |name: &str, samples: Vec<f64>| Series { name: name.to_owned(), samples };
    let turns: Vec<f64> = conversations.iter().map(|it| it.messages.len() as f64).collect();
    let title = |title: &str| format!("{rule}\n{title} statistics:\n{rule}\n");
    if !lengths {
        let percentiles = [25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99];
        let table = describe(&[series("num_turns", turns)], &percentiles, 6);
        return Ok(format!("{}{table}\n{rule}", title("Conversations")));
    }
    let (mut users, mut answers, mut requests) = (Vec::new(), Vec::new(), Vec::new());
    for conversation in conversations {
        // As the server sees a text, with the tokens that begin and end it.
        let counts = tokenizer.count_batch(&conversation.messages, true)?;
        let mean = |first: usize| {
            let each: Vec<f64> =
                counts.iter().skip(first).step_by(2).map(|tokens| f64::from(*tokens)).collect();
            each.iter().sum::<f64>() / each.len() as f64
        };
        users.push(mean(0));
        answers.push(mean(1));
        let mut all = 0.0;
        for (at, tokens) in counts.iter().enumerate() {
            all += f64::from(*tokens);
            if at.is_multiple_of(2) {
                requests.push(all);
            }
        }
    }
    let percentiles = [25.0, 50.0, 75.0, 90.0, 99.0];
    let conversations = [
        series("conversation_turns", turns),
        series("user_tokens", users),
        series("assistant_tokens", answers),
    ];
    let first = describe(&conversations, &percentiles, 6);
    let second = describe(&[series("request_tokens", requests)], &percentiles, 6);
    Ok(format!("{}{first}\n{}{second}\n{rule}", title("Conversations"), title("Request")))
}
