//! The structured-output benchmark: prompts whose replies must have a given form.
//!
//! The constraints and which requests have one are those of vLLM's
//! `benchmark_serving_structured_output.py`; the prompts' words are our own.

mod check;
mod constraint;
mod supported;

use self::supported::is_supported;
use super::hf::open;
use super::random::allowed;
use super::{VllmDatasetOptions, VllmLoaded};
use crate::table::{Cell, Row};
use crate::{DatasetError, corpus, python_json};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::{Map, Value, json};
use servebench_core::random::{Draws, NumpyGenerator};
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Hub, Tokenizer};
use std::path::{Path, PathBuf};

/// The field of a request's body that holds its constraint.
const FIELD: &str = "structured_outputs";
/// The dataset of the hub behind `xgrammar_bench`, and its split.
const BENCH: (&str, &str) = ("NousResearch/json-mode-eval", "train");

/// What replies are constrained to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StructuredKind {
    /// One JSON schema for all requests.
    #[default]
    Json,
    /// A JSON schema of its own for each request, which no cache of grammars knows.
    JsonUnique,
    /// A grammar of a few SQL sentences.
    Grammar,
    /// A regular expression for e-mail addresses.
    Regex,
    /// One of two words.
    Choice,
    /// Schemas and questions of a dataset of the hub.
    #[serde(rename = "xgrammar_bench")]
    XgrammarBench,
}

impl StructuredKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Json,
        Self::JsonUnique,
        Self::Grammar,
        Self::Regex,
        Self::Choice,
        Self::XgrammarBench,
    ];

    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::JsonUnique => "json-unique",
            Self::Grammar => "grammar",
            Self::Regex => "regex",
            Self::Choice => "choice",
            Self::XgrammarBench => "xgrammar_bench",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What the constraint is called in a request.
    const fn constraint(self) -> &'static str {
        match self {
            Self::Json | Self::JsonUnique | Self::XgrammarBench => "json",
            Self::Grammar => "grammar",
            Self::Regex => "regex",
            Self::Choice => "choice",
        }
    }

    /// Whether it takes a JSON schema from a file.
    pub const fn takes_schema(self) -> bool {
        matches!(self, Self::Json | Self::JsonUnique)
    }
}

/// What is asked for, and of which requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StructuredOptions {
    /// What replies are constrained to.
    pub kind: StructuredKind,
    /// File with the JSON schema, in place of the built-in one.
    pub schema: Option<PathBuf>,
    /// Output length.
    pub output_len: u32,
    /// Random tokens that all prompts begin with, the same for all.
    pub prefix_len: u32,
    /// Share of the requests that have the constraint, from 0 to 1.
    pub ratio: f64,
    /// What the schemas of `json-unique` are told apart by from those of other runs.
    pub salt: u64,
    /// Make messages, for chat endpoints, of what the chat template would join.
    pub messages: bool,
}

/// Rows of the structured-output benchmark.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StructuredLoaded {
    /// The rows that are measured; those with a constraint have it in their own fields of the body.
    pub rows: VllmLoaded,
    /// What is sent before them: a row of its own where the rows differ. It has a constraint if the first
    /// row has one.
    pub test: Sample,
    /// For each row the reply that its dataset has, if it has one.
    pub expected: Vec<Option<String>>,
}

/// A prompt, what its reply must be, and what it is in the dataset.
struct Question {
    prompt: Prompt,
    constraint: Value,
    expected: Option<String>,
}

/// Makes the rows. `draws` are the script's global generators, as its seeding left them.
///
/// # Errors
///
/// A missing tokenizer, a number of prompts that is not known or not positive, a ratio that is not from 0 to
/// 1, a schema or a dataset that cannot be read.
pub fn load_structured(
    own: &StructuredOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    hub: Option<&Hub>,
    draws: &mut Draws,
) -> Result<StructuredLoaded, DatasetError> {
    let wrong = |flag, problem: &str| DatasetError::Option { flag, problem: problem.to_owned() };
    let tokenizer =
        tokenizer.ok_or_else(|| wrong("--tokenizer", "is needed: prompts are counted"))?;
    let count = options.num_prompts.and_then(|n| u32::try_from(n).ok()).filter(|n| *n > 0);
    let count = count.ok_or_else(|| wrong("--num-prompts", "is not from 1 to 4294967295"))?;
    if !(0.0..=1.0).contains(&own.ratio) {
        return Err(wrong("--structured-output-ratio", "is not from 0 to 1"));
    }
    let mut warnings = Vec::new();
    let questions = questions(own, options, tokenizer, hub, &mut warnings)?;
    let prefix = prefix(own.prefix_len, options.seed, tokenizer)?;
    // Of most kinds there is one: it is counted once.
    let made = |question: &Question| sample(question, &prefix, own, tokenizer);
    let made: Vec<Sample> = questions.par_iter().map(made).collect::<Result<_, _>>()?;

    let constrained = (f64::from(count) * own.ratio) as u32;
    let mut has_constraint = vec![false; count as usize];
    for index in draws.python.sample_indices(count, constrained) {
        has_constraint[index as usize] = true;
    }
    let row = |index: usize, has_constraint: bool| {
        let place = index % made.len();
        let mut row = made[place].clone();
        if has_constraint {
            let constraint = json!({own.kind.constraint(): questions[place].constraint});
            row.extra_body = Map::from_iter([(FIELD.to_owned(), constraint)]);
        }
        row
    };
    let samples = has_constraint.iter().enumerate().map(|(index, has)| row(index, *has)).collect();
    let expected =
        (0..count as usize).map(|index| questions[index % questions.len()].expected.clone());
    Ok(StructuredLoaded {
        rows: VllmLoaded { samples, warnings, ..VllmLoaded::default() },
        test: row(count as usize, has_constraint[0]),
        expected: expected.collect(),
    })
}

/// The different questions of a run, which its rows go through again and again.
fn questions(
    own: &StructuredOptions,
    options: &VllmDatasetOptions,
    tokenizer: &Tokenizer,
    hub: Option<&Hub>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Question>, DatasetError> {
    let plain = |text: String, constraint| Question {
        prompt: Prompt::Text(text),
        constraint,
        expected: None,
    };
    let profile = |schema: Value| {
        let text = format!(
            "Make up a user and write their profile, short, as JSON. It must fit this schema: {}",
            python_json::write(&schema)
        );
        plain(text, schema)
    };
    Ok(match own.kind {
        StructuredKind::Json => vec![profile(schema(own.schema.as_deref())?)],
        StructuredKind::JsonUnique => {
            let schema = schema(own.schema.as_deref())?;
            // One more, for the request before the run.
            let numbers = 0..=options.num_prompts.unwrap_or(0) as u64;
            let unique = |number| constraint::unique(&schema, own.salt, number);
            let schemas = numbers.map(unique).collect::<Option<Vec<_>>>();
            let schemas = schemas.ok_or_else(|| DatasetError::Option {
                flag: "--json-schema-path",
                problem: "holds no object with properties, which json-unique adds one to"
                    .to_owned(),
            })?;
            schemas.into_iter().map(profile).collect()
        }
        StructuredKind::Grammar => {
            let text = "Write one SQL query that reads the columns 'username' and 'email' of the table \
                        'users'.";
            vec![plain(text.to_owned(), json!(constraint::GRAMMAR))]
        }
        StructuredKind::Regex => {
            let text = "Make up the e-mail address of Alan Turing, who works at Enigma: nothing but the \
                        address, which ends in .com, and then a new line. For example: \
                        turing@enigma.com\n";
            vec![plain(text.to_owned(), json!(constraint::REGEX))]
        }
        StructuredKind::Choice => {
            let text = "Is this said in praise or in blame? Answer Positive or Negative. \"vLLM makes me \
                        happy!\"";
            vec![plain(text.to_owned(), json!(constraint::CHOICES))]
        }
        StructuredKind::XgrammarBench => bench(own, options, tokenizer, hub, warnings)?,
    })
}

/// The schema in a file, else the built-in one.
fn schema(path: Option<&Path>) -> Result<Value, DatasetError> {
    let Some(path) = path else { return Ok(constraint::profile()) };
    let text = corpus::read(path)?;
    serde_json::from_str(&text).map_err(|source| DatasetError::Json {
        path: path.to_owned(),
        rows: 0,
        source,
    })
}

/// The rows of a dataset of the hub, or of a copy, whose schemas xgrammar knows.
fn bench(
    own: &StructuredOptions,
    options: &VllmDatasetOptions,
    tokenizer: &Tokenizer,
    hub: Option<&Hub>,
    warnings: &mut Vec<String>,
) -> Result<Vec<Question>, DatasetError> {
    let (repo, split) = BENCH;
    let path = options.path.as_deref().unwrap_or(Path::new(repo));
    let table = open(path, None, split, hub)?;
    let mut questions = Vec::new();
    for row in table.rows(&["prompt", "completion", "schema"]) {
        questions.extend(question(&row?, own.messages, tokenizer)?);
    }
    let dropped = table.len() - questions.len();
    let dataset = path.display().to_string();
    if questions.is_empty() {
        let skipped = format!("{dropped} rows whose schemas xgrammar does not know");
        return Err(DatasetError::NoUsableRows { dataset, skipped });
    }
    warnings.push(format!(
        "{dataset} has {} usable rows, and {dropped} whose schemas have what xgrammar does not know",
        questions.len()
    ));
    Ok(questions)
}

/// A row of that dataset; `None` for one whose schema xgrammar does not know.
fn question(
    row: &Row,
    messages: bool,
    tokenizer: &Tokenizer,
) -> Result<Option<Question>, DatasetError> {
    let schema = row.text("schema")?;
    let parsed: Value = serde_json::from_str(schema)
        .map_err(|error| row.bad(format!("`schema` is no JSON: {error}")))?;
    if !is_supported(&parsed) {
        return Ok(None);
    }
    let asked = row.need("prompt")?;
    let said: Option<Vec<Value>> = asked.list().and_then(|list| list.iter().map(message).collect());
    let said = said.filter(|said| !said.is_empty());
    let said =
        said.ok_or_else(|| row.bad("`prompt` is no list of messages with role and content"))?;
    let prompt = if messages {
        Prompt::Messages(said)
    } else {
        Prompt::Text(tokenizer.chat_template()?.render(&said, true)?)
    };
    let expected = row.get("completion").and_then(Cell::text).map(str::to_owned);
    // As text, which the server reads.
    Ok(Some(Question { prompt, constraint: json!(schema), expected }))
}

fn message(cell: &Cell) -> Option<Value> {
    let field = |name| cell.field(name).and_then(Cell::text);
    Some(json!({"role": field("role")?, "content": field("content")?}))
}

/// Random ids, none of them special: from a generator of their own, and as they are drawn.
fn prefix(len: u32, seed: u32, tokenizer: &Tokenizer) -> Result<Vec<u32>, DatasetError> {
    if len == 0 {
        return Ok(Vec::new());
    }
    let allowed = allowed(tokenizer)?;
    let places = NumpyGenerator::new(seed).integers(0..=allowed.len() as u32 - 1, len as usize);
    Ok(places.into_iter().map(|place| allowed[place as usize]).collect())
}

/// A question with its prefix and its length.
fn sample(
    question: &Question,
    prefix: &[u32],
    own: &StructuredOptions,
    tokenizer: &Tokenizer,
) -> Result<Sample, DatasetError> {
    let prefixed = |text: &str| -> Result<String, DatasetError> {
        if prefix.is_empty() {
            return Ok(text.to_owned());
        }
        let ids = [prefix, &tokenizer.encode(text, false)?].concat();
        Ok(tokenizer.decode(&ids, false)?)
    };
    let (prompt, counted) = match &question.prompt {
        Prompt::Messages(messages) => {
            let mut messages = messages.clone();
            if let Some(Value::String(text)) =
                messages.first_mut().map(|first| &mut first["content"])
            {
                *text = prefixed(text)?;
            }
            let texts = messages.iter().filter_map(|message| message["content"].as_str());
            let text = texts.collect::<Vec<_>>().join("\n");
            (Prompt::Messages(messages), text)
        }
        Prompt::Text(text) => {
            let text = prefixed(text)?;
            (Prompt::Text(text.clone()), text)
        }
        other => (other.clone(), String::new()),
    };
    Ok(Sample {
        prompt,
        prompt_len: tokenizer.count(&counted, true)?,
        counted: Counted::Tokenizer,
        output_len: own.output_len,
        ..Sample::default()
    })
}

/// The part of a fuzz target's body that is about replies and schemas.
pub(super) fn fuzzed(text: &str) {
    for kind in StructuredKind::ALL {
        let (correct, whole) = (kind.is_correct(text), kind.is_whole(text));
        let is_object = text.trim_start().starts_with('{');
        assert!(!whole || correct != Some(false) || !is_object, "whole and yet not correct");
    }
    if let Ok(schema) = serde_json::from_str::<Value>(text) {
        is_supported(&schema);
        let named = constraint::unique(&schema, 1, 2);
        assert!(named.is_none_or(|named| named != schema), "not told apart");
    }
}

#[cfg(test)]
mod tests;
