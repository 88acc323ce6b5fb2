//! Chat templates, rendered as Python's `apply_chat_template` renders them.

mod json;
mod strip;

use crate::TokensError;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde};
use minijinja::{Environment, Error, ErrorKind, Value};
use std::fmt;
use std::io;

/// Steps that one rendering may take: hundreds of times what a long conversation needs, and still
/// less than a few seconds of work.
const FUEL: u64 = 5_000_000;

/// Longest text that one rendering may produce, in bytes.
const OUTPUT_LIMIT: usize = 64 << 20;

/// Longest template source taken, in bytes; the longest known ones have some 30 KB.
const SOURCE_LIMIT: usize = 1 << 20;

const NAME: &str = "chat_template";

/// A compiled chat template together with the special tokens that it may write.
///
/// Rendering is bounded: a template that loops or grows without end is an error.
#[derive(Clone)]
pub struct ChatTemplate {
    tokenizer: String,
    environment: Environment<'static>,
    specials: Vec<(&'static str, String)>,
}

impl ChatTemplate {
    /// Compiles `source`. `tokenizer` is named in errors; `specials` are variables of the template
    /// (`bos_token` and its like).
    pub fn new(
        tokenizer: &str,
        source: &str,
        specials: Vec<(&'static str, String)>,
    ) -> Result<Self, TokensError> {
        let mut environment = Environment::new();
        let compiled = prepare(&mut environment, source);
        let template = Self { tokenizer: tokenizer.to_owned(), environment, specials };
        compiled.map_err(|error| template.failure(error))?;
        Ok(template)
    }

    /// The text of `messages` (objects with `role` and `content`), followed by the start of the
    /// assistant's turn if `add_generation_prompt` is set.
    pub fn render(
        &self,
        messages: &[serde_json::Value],
        add_generation_prompt: bool,
    ) -> Result<String, TokensError> {
        self.render_with(messages, add_generation_prompt, &serde_json::Map::new())
    }

    /// The same, with further variables (`enable_thinking`); they win over those of the same name.
    pub fn render_with(
        &self,
        messages: &[serde_json::Value],
        add_generation_prompt: bool,
        variables: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<String, TokensError> {
        let given =
            variables.iter().map(|(name, value)| (name.as_str(), Value::from(Serde(value))));
        let specials = self.specials.iter().map(|(name, text)| (*name, Value::from(text.as_str())));
        let variables = [
            ("messages", Value::from(Serde(messages))),
            ("tools", Value::from(())),
            ("documents", Value::from(())),
            ("add_generation_prompt", Value::from(add_generation_prompt)),
        ];
        let variables = Value::from_pairs(variables.into_iter().chain(specials).chain(given));
        let mut output = Limited::default();
        self.environment
            .get_template(NAME)
            .and_then(|template| template.render_captured_to(variables, &mut output).map(drop))
            .map_err(|error| self.failure(error))?;
        Ok(String::from_utf8_lossy(&output.bytes).into_owned())
    }

    fn failure(&self, error: Error) -> TokensError {
        TokensError::Template { tokenizer: self.tokenizer.clone(), source: Box::new(error) }
    }
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChatTemplate").field("tokenizer", &self.tokenizer).finish_non_exhaustive()
    }
}

/// `text` without one `token` at its very start.
///
/// A server adds the begin-of-sequence token itself, so a rendered prompt must not bring its own;
/// the same characters elsewhere are the user's.
pub fn without_leading<'a>(text: &'a str, token: Option<&str>) -> &'a str {
    match token {
        Some(token) if !token.is_empty() => text.strip_prefix(token).unwrap_or(text),
        _ => text,
    }
}

fn prepare(environment: &mut Environment<'static>, source: &str) -> Result<(), Error> {
    if source.len() > SOURCE_LIMIT {
        return Err(Error::new(ErrorKind::SyntaxError, "the template is longer than 1 MiB"));
    }
    environment.set_fuel(Some(FUEL));
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_unknown_method_callback(strip::method);
    environment.add_filter("trim", strip::trim);
    environment.add_filter("tojson", tojson);
    environment.add_function("raise_exception", raise_exception);
    environment.add_function("strftime_now", strftime_now);
    environment.add_template_owned(NAME, without_generation_tags(source))
}

fn raise_exception(message: &str) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message.to_owned()))
}

/// The local date and time, as templates print it ("Today's date is …").
fn strftime_now(format: &str) -> Result<String, Error> {
    jiff::fmt::strtime::format(format, &jiff::ZonedDateTime::now())
        .map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

#[expect(clippy::needless_pass_by_value, reason = "the engine hands arguments over by value")]
fn tojson(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let layout = json::Layout::from_options(&options)?;
    options.assert_all_used()?;
    json::write(value, &layout).map(Value::from)
}

/// Python marks the assistant's words with `generation` blocks, for training; here they are blocks
/// without effect.
fn without_generation_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out.push_str(before);
        let end = tag.find("%}").map_or(tag.len(), |end| end + 2);
        let (tag, after) = tag.split_at(end);
        let word = tag.trim_start_matches("{%").trim_end_matches("%}");
        match word.trim_matches(['-', '+']).trim() {
            "generation" => out.push_str(&tag.replacen("generation", "if true", 1)),
            "endgeneration" => out.push_str(&tag.replacen("endgeneration", "endif", 1)),
            _ => out.push_str(tag),
        }
        rest = after;
    }
    out + rest
}

/// A buffer that refuses to grow past the limit.
#[derive(Default)]
struct Limited {
    bytes: Vec<u8>,
}

impl io::Write for Limited {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > OUTPUT_LIMIT {
            return Err(io::Error::other("the rendered text is longer than 64 MiB"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
