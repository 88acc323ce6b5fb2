//! `convert-sharegpt`: ShareGPT files to files of conversations.

use super::statistics::of_conversations;
use super::talks::role;
use crate::exit::OrCode;
use crate::names::load;
use crate::serve::hub;
use crate::vllm::{offline, plain};
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{Args, CommandFactory, Parser};
use serde_json::{Value, json};
use servebench_datasets::vllm::{
    MultiTurnConversation, ShareGptConversion, ShareGptConverted, convert_share_gpt,
};
use servebench_report::vllm::{describe, write};
use std::ffi::OsString;
use std::path::PathBuf;

/// Every flag of vLLM's `convert_sharegpt_to_openai.py`: what may be abbreviated.
pub const CONVERT_SHAREGPT_FLAGS: &[&str] = &[
    "--help",
    "--max-content-len",
    "--max-items",
    "--max-turns",
    "--min-content-len",
    "--min-turns",
    "--model",
    "--seed",
];

/// Percentiles of the tables.
const PERCENTILES: [f64; 7] = [25.0, 50.0, 75.0, 90.0, 99.0, 99.9, 99.99];

/// Flags of `convert-sharegpt`.
#[derive(Args, Clone, Debug)]
pub struct ConvertShareGptArgs {
    /// ShareGPT file: a list of {"id", "conversations": [{"from", "value"}, ...]}
    pub input_file: PathBuf,

    /// File of conversations to write, for multi-turn --input-file
    pub output_file: PathBuf,

    /// Seed of the order and of the choice
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u32,

    /// Most conversations, chosen at random [default: all]
    #[arg(long, value_name = "N")]
    pub max_items: Option<usize>,

    /// Fewest messages of a conversation
    #[arg(long, value_name = "N")]
    pub min_turns: Option<usize>,

    /// Messages after which a conversation is cut
    #[arg(long, value_name = "N")]
    pub max_turns: Option<usize>,

    /// Fewest characters of every message
    #[arg(long, value_name = "N")]
    pub min_content_len: Option<usize>,

    /// Most characters of every message
    #[arg(long, value_name = "N")]
    pub max_content_len: Option<usize>,

    /// Model whose tokenizer counts, for the second table: a folder, a tokenizer.json or a hub name
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,

    /// Keep conversations in any language; without, those alone whose messages are ASCII
    #[arg(long)]
    pub any_language: bool,
}

/// Reads arguments (without program and subcommand) the way the Python script does.
///
/// # Errors
///
/// A usage failure whose message names the flag.
pub fn parse_convert_sharegpt<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    let words = plain(arguments, CONVERT_SHAREGPT_FLAGS, io)?;
    parse_as(words, "convert_sharegpt_to_openai.py", CONVERT_SHAREGPT_FLAGS, io)
}

/// Writes the conversations of a ShareGPT file in the form that `multi-turn` reads.
///
/// # Errors
///
/// What kept the file from being read or the other one from being written; a file of which nothing is
/// kept.
pub fn convert_sharegpt(
    args: &ConvertShareGptArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    for (least, most, name) in [
        (args.min_turns, args.max_turns, "turns"),
        (args.min_content_len, args.max_content_len.filter(|most| *most > 0), "content-len"),
    ] {
        if least.zip(most).is_some_and(|(least, most)| least > most) {
            let text = format!("--min-{name} is more than --max-{name}");
            return Err(Failure::usage(text));
        }
    }
    offline::check(Some(&args.output_file))?;
    let hub = hub(environment, io);
    let tokenizer = args.model.as_deref().map(|name| load(name, &hub, environment)).transpose()?;
    let options = ShareGptConversion {
        seed: args.seed,
        max_items: args.max_items,
        min_turns: args.min_turns,
        max_turns: args.max_turns,
        min_content_len: args.min_content_len,
        max_content_len: args.max_content_len,
        any_language: args.any_language,
    };
    let converted = convert_share_gpt(&args.input_file, &options).or_code(Code::Data)?;
    let ShareGptConverted { parts, conversations, kept, chosen } = converted;
    let print = |text: String| io.print(text).or_code(Code::Output);
    print(format!(
        "{parts} items in the file, {conversations} conversations, {} kept",
        kept.len()
    ))?;
    if kept.is_empty() {
        let error = anyhow::anyhow!("{}: nothing is kept", args.input_file.display());
        let hint = "conversations with characters that are not ASCII need --any-language";
        return Err(Failure::new(Code::Data, error).hint(hint));
    }
    let table = |kept: &[MultiTurnConversation], tokenizer| -> Result<(), Failure> {
        let series = of_conversations(kept, tokenizer).or_code(Code::Data)?;
        print(format!("\nStatistics:\n{}", describe(&series, &PERCENTILES, 6)))
    };
    let written = match chosen {
        None => {
            table(&kept, tokenizer.as_ref())?;
            kept
        }
        Some(chosen) => {
            table(&kept, None)?;
            let of: Vec<_> = chosen.iter().map(|place| kept[*place as usize].clone()).collect();
            print(format!("\n{} of them, chosen at random:", of.len()))?;
            table(&of, tokenizer.as_ref())?;
            of
        }
    };
    let all: Vec<Value> = written.iter().map(as_json).collect();
    let text = serde_json::to_string_pretty(&all).or_code(Code::Bug)?;
    write(&args.output_file, &text, false).or_code(Code::Output)?;
    let name = args.output_file.display();
    print(format!("\n{} conversations written to {name}", written.len()))?;
    Ok(Code::Done)
}

/// A conversation as files have it.
pub(super) fn as_json(talk: &MultiTurnConversation) -> Value {
    let message = |(at, text): (usize, &String)| json!({"role": role(at), "content": text});
    let messages: Vec<Value> = talk.messages.iter().enumerate().map(message).collect();
    json!({"id": talk.id, "messages": messages})
}
