//! `agentic-trace`: conversations whose turns are sent one after the other, each with the server's
//! own replies to those before it.

use crate::{DatasetError, DatasetOptions, Loaded, corpus};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use servebench_core::{Counted, Prompt, Sample};
use std::path::Path;

/// What a turn asks for, in tokens.
const OUTPUT_LEN: u32 = 220;

/// Which conversations are taken, and how much of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct AgenticOptions {
    /// Conversation to begin with, counted from 0; past the end it begins anew, and negative ones
    /// count from the end.
    pub offset: i64,
    /// Most turns of a conversation; 0 is no limit.
    pub max_turns: u32,
}

/// Takes conversations in their order until there are as many as wanted.
pub(crate) fn load(path: &Path, options: &DatasetOptions) -> Result<Loaded, DatasetError> {
    let text = corpus::read(path)?;
    let trace: Trace = serde_json::from_str(&text)
        .map_err(|source| DatasetError::Trace { path: path.to_owned(), source })?;
    let cut = options.agentic.clone().unwrap_or_default();
    let (samples, empty) = samples(trace, options, &cut);
    if samples.is_empty() {
        let (dataset, skipped) =
            (path.display().to_string(), format!("{empty} conversations without messages"));
        return Err(DatasetError::NoUsableRows { dataset, skipped });
    }
    let mut warnings = Vec::new();
    if samples.len() < options.num_prompts {
        let (found, asked, name) = (samples.len(), options.num_prompts, path.display());
        warnings.push(format!(
            "only {found} of {asked} conversations: no more in {name}, {empty} without messages"
        ));
    }
    Ok(Loaded { samples, warnings })
}

/// A trace of agents at work.
#[derive(Debug, Deserialize)]
pub(crate) struct Trace {
    conversations: Vec<Vec<Turn>>,
}

#[derive(Debug, Deserialize)]
struct Turn {
    #[serde(default)]
    messages: Vec<Map<String, Value>>,
    prompt_tokens: Option<u32>,
}

/// The samples of a trace, and how many conversations were passed over for want of messages.
pub(crate) fn samples(
    trace: Trace,
    options: &DatasetOptions,
    cut: &AgenticOptions,
) -> (Vec<Sample>, usize) {
    let mut conversations = trace.conversations;
    let count = i64::try_from(conversations.len()).unwrap_or(i64::MAX).max(1);
    conversations.rotate_left(usize::try_from(cut.offset.rem_euclid(count)).unwrap_or_default());
    let output_len = options.sharegpt_output_len.filter(|&len| len > 0).unwrap_or(OUTPUT_LEN);
    let most = if cut.max_turns == 0 { usize::MAX } else { cut.max_turns as usize };
    let mut samples = Vec::new();
    let mut empty = 0;
    for conversation in conversations {
        if samples.len() == options.num_prompts {
            break;
        }
        let prompt_len = conversation.first().and_then(|turn| turn.prompt_tokens).unwrap_or(0);
        let turns = conversation.into_iter().map(|turn| turn.messages);
        let turns = turns.filter(|messages| !messages.is_empty()).take(most);
        let turns: Vec<Vec<Value>> =
            turns.map(|messages| messages.into_iter().map(essential).collect()).collect();
        if turns.is_empty() {
            empty += 1;
            continue;
        }
        let (prompt, counted) = (Prompt::Turns(turns), Counted::Nominal);
        samples.push(Sample { prompt, prompt_len, counted, output_len, ..Sample::default() });
    }
    (samples, empty)
}

/// Role and content of a message: all that is sent of it.
fn essential(mut message: Map<String, Value>) -> Value {
    message.retain(|key, _| key == "role" || key == "content");
    Value::Object(message)
}
