//! Flags of `multi-turn`.

use super::super::super::args::TransportArgs;
use super::super::super::offline::AroundArgs;
use crate::Failure;
use crate::args::OwnArgs;
use crate::hidden::{Header, Hidden};
use clap::{Args, ValueEnum};
use serde::Serialize;
use servebench_run::Choice;
use std::ffi::OsString;
use std::path::PathBuf;

/// Every flag of vLLM's `benchmark_serving_multi_turn.py`: what may be abbreviated.
pub const MULTI_TURN_FLAGS: &[&str] = &[
    "--api-key",
    "--conversation-sampling",
    "--excel-output",
    "--header",
    "--help",
    "--input-file",
    "--limit-max-tokens",
    "--limit-min-tokens",
    "--max-active-conversations",
    "--max-num-requests",
    "--max-retries",
    "--max-turns",
    "--model",
    "--no-early-stop",
    "--no-stream",
    "--num-clients",
    "--output-file",
    "--print-content",
    "--request-rate",
    "--request-timeout-sec",
    "--seed",
    "--send-conversation-id",
    "--served-model-name",
    "--stats-json-output",
    "--trust-remote-code",
    "--url",
    "--verbose",
    "--verify-output",
    "--version",
    "--warmup-percentages",
    "--warmup-step",
];

/// Its short flags, and what they stand for.
const SHORT: [(&str, &str); 9] = [
    ("-i", "--input-file"),
    ("-o", "--output-file"),
    ("-m", "--model"),
    ("-u", "--url"),
    ("-p", "--num-clients"),
    ("-k", "--max-active-conversations"),
    ("-n", "--max-num-requests"),
    ("-e", "--excel-output"),
    ("-v", "--verbose"),
];

/// Flags of `multi-turn`.
#[derive(Args, Clone, Debug, Default)]
pub struct MultiTurnArgs {
    /// The server, and what is said.
    #[command(flatten)]
    pub target: MultiTurnTargetArgs,
    /// Clients, and how many conversations they have.
    #[command(flatten)]
    pub clients: MultiTurnLoadArgs,
    /// What is reported.
    #[command(flatten)]
    pub report: MultiTurnReportArgs,
    /// What is done around it.
    #[command(flatten)]
    pub around: AroundArgs,
    /// How requests are carried.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// The simulated server and the client.
    #[command(flatten)]
    pub own: OwnArgs,
}

/// The server, and what is said.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Target and conversations")]
pub struct MultiTurnTargetArgs {
    /// Conversations as JSON, or the configuration from which they are made [short: -i]
    ///
    /// A list of {"id", "messages": [{"role", "content"}, ...]} in which user and assistant take turns, or an
    /// object with "filetype": "generate_conversations". Required, but with --simulate.
    #[arg(long, value_name = "FILE")]
    pub input_file: Option<PathBuf>,

    /// Model, whose tokenizer counts, and whose name is sent; if left out, the first model the server
    /// offers [short: -m]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    /// Model name sent in requests, if it differs from --model
    #[arg(long, value_name = "NAME")]
    pub served_model_name: Option<String>,

    /// Tokenizer: a folder, a tokenizer.json or a hub name [default: the model]
    #[arg(long, value_name = "PATH_OR_NAME")]
    pub tokenizer: Option<String>,

    /// Address of the server [default: http://localhost:8000] [short: -u]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    /// Sent as a bearer token with every call, and shown nowhere
    #[arg(long, value_name = "KEY")]
    pub api_key: Option<Hidden<String>>,

    /// A header sent with every call: `Name: value` or `Name=value`; may be given several times
    #[arg(long, num_args = 1.., value_name = "HEADER", value_parser = header)]
    pub header: Vec<Header>,

    /// Send each conversation's id, as `conversation_id` in bodies and as X-Session-ID in headers
    #[arg(long)]
    pub send_conversation_id: bool,

    /// Ask for whole replies, not for streams
    #[arg(long)]
    pub no_stream: bool,

    /// Most tokens of a reply; 0: as many as the conversation's own answer has; below 0: no limit
    /// [default: 0]
    #[arg(long, value_name = "TOKENS")]
    pub limit_max_tokens: Option<i64>,

    /// Fewest tokens of a reply (`min_tokens`), in the same way; below 0 it is not sent, for servers that do
    /// not know it [default: 0]
    #[arg(long, value_name = "TOKENS")]
    pub limit_min_tokens: Option<i64>,

    /// Most messages of a conversation, the assistant's included
    #[arg(long, value_name = "N")]
    pub max_turns: Option<i64>,

    /// Has no effect, and says so: no code from a hub is run here
    #[arg(long)]
    pub trust_remote_code: bool,

    /// Trust any certificate
    #[arg(long)]
    pub insecure: bool,
}

/// Clients, and how many conversations they have.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Load")]
pub struct MultiTurnLoadArgs {
    /// Clients, each of which has one request under way at a time [default: 1] [short: -p]
    #[arg(long, value_name = "N")]
    pub num_clients: Option<i64>,

    /// Conversations under way at once, dealt to the clients [default: one each] [short: -k]
    #[arg(long, value_name = "N")]
    pub max_active_conversations: Option<i64>,

    /// Most requests of all clients together [short: -n]
    #[arg(long, value_name = "N")]
    pub max_num_requests: Option<i64>,

    /// First send the first message of every conversation, which is not measured
    #[arg(long)]
    pub warmup_step: bool,

    /// Requests per second that each client aims at, by exponential pauses after its replies; 0: no pauses
    /// [default: 0]
    #[arg(long, value_name = "RATE")]
    pub request_rate: Option<f64>,

    /// Which of its conversations a client goes on with [default: round_robin]
    #[arg(long, value_name = "HOW")]
    pub conversation_sampling: Option<ConversationSampling>,

    /// How often a failed request is sent again, after 1, 2, 4, ... seconds
    /// [default: MULTITURN_BENCH_MAX_RETRIES, or 0]
    #[arg(long, value_name = "N")]
    pub max_retries: Option<u32>,

    /// Give a request up after this long, or a fifth of a second for each token of the longest reply if that is
    /// more [default: 120]
    #[arg(long, value_name = "SECONDS")]
    pub request_timeout_sec: Option<i64>,

    /// End the run when the first client finds no further conversation, so that all that is measured was under
    /// full load; what is unfinished then stays so
    #[arg(long, overrides_with = "no_early_stop")]
    pub early_stop: bool,

    /// Finish all conversations, which is what happens anyway
    #[arg(long, overrides_with = "early_stop")]
    pub no_early_stop: bool,
}

/// What is reported.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Report")]
pub struct MultiTurnReportArgs {
    /// Write the finished conversations with the server's answers to this file [short: -o]
    #[arg(long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,

    /// Write the figures of each request to this file, as JSON
    #[arg(long, value_name = "FILE")]
    pub stats_json_output: Option<PathBuf>,

    /// Parts of the requests that do not count, from the start on, with a table for each: as in 0%,50%
    /// [default: 0%]
    #[arg(long, value_name = "PERCENT,...")]
    pub warmup_percentages: Option<String>,

    /// Compare the answers with those of the conversations; exit code 6 if they differ
    #[arg(long)]
    pub verify_output: bool,

    /// Say when requests start and end, and how long each conversation rested between its turns [short: -v]
    #[arg(long)]
    pub verbose: bool,

    /// Print what was said, after the run
    #[arg(long)]
    pub print_content: bool,
}

/// Which of its conversations a client goes on with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum ConversationSampling {
    /// The newest first, then by turns.
    #[default]
    RoundRobin,
    /// Any.
    Random,
}

impl From<ConversationSampling> for Choice {
    fn from(sampling: ConversationSampling) -> Self {
        match sampling {
            ConversationSampling::RoundRobin => Self::RoundRobin,
            ConversationSampling::Random => Self::Random,
        }
    }
}

/// `Name: value` or `Name=value`. The value may be a secret, so no message shows it.
fn header(text: &str) -> Result<Header, String> {
    let parts = text.split_once(':').or_else(|| text.split_once('='));
    parts
        .map(|(name, value)| (name.trim().to_owned(), Hidden(value.trim().to_owned())))
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| "expected 'Name: value' or 'Name=value'".to_owned())
}

/// Writes short flags out and puts the headers together, of which each `--header` has one.
pub(super) fn long_words(words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let (mut plain, mut headers) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some(text) = word.to_str() else {
            plain.push(word);
            continue;
        };
        let (name, glued) = match text.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None => (text, None),
        };
        if name.len() > "--he".len() && "--header".starts_with(name) {
            let Some(value) = glued.or_else(|| words.next()) else {
                return Err(Failure::usage("--header needs a value"));
            };
            headers.push(value);
            continue;
        }
        let known = SHORT.iter().find(|(short, _)| text.starts_with(short));
        match known.map(|(short, long)| (long, &text[short.len()..])) {
            Some((long, "")) => plain.push((*long).into()),
            Some((&"--verbose" | &"--excel-output", _)) | None => plain.push(word),
            Some((long, value)) => {
                plain.push(format!("{long}={}", value.strip_prefix('=').unwrap_or(value)).into());
            }
        }
    }
    if !headers.is_empty() {
        plain.push("--header".into());
        plain.extend(headers);
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_flags_are_written_out_and_headers_put_together() {
        let typed = [
            "-i",
            "a.json",
            "-p4",
            "--header",
            "A: 1",
            "-k=8",
            "--limit-min-tokens",
            "-1",
            "-v",
            "--head=B=2",
            "-n",
            "5",
        ];
        let words = long_words(typed.map(OsString::from).to_vec()).unwrap();
        let want = [
            "--input-file",
            "a.json",
            "--num-clients=4",
            "--max-active-conversations=8",
            "--limit-min-tokens",
            "-1",
            "--verbose",
            "--max-num-requests",
            "5",
            "--header",
            "A: 1",
            "B=2",
        ];
        assert_eq!(words, want);
        assert!(long_words(vec!["--header".into()]).is_err());
    }

    #[test]
    fn a_header_is_split_at_its_colon_first() {
        assert_eq!(header("A: b=c"), Ok(("A".into(), Hidden("b=c".into()))));
        assert_eq!(header("A = b:c"), Ok(("A = b".into(), Hidden("c".into()))));
        assert_eq!(header("A=b"), Ok(("A".into(), Hidden("b".into()))));
        for text in ["secret", ": secret", "=secret"] {
            let said = header(text).unwrap_err();
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
