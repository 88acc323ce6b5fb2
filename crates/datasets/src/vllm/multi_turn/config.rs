//! The configuration from which conversations are made.

use super::{LengthDistribution, wrong};
use crate::DatasetError;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Most conversations that are made.
const MOST: u64 = 10_000_000;
/// Part of a log-normal distribution's mean that its median is, unless said otherwise.
const MEDIAN_RATIO: f64 = 0.85;

/// How conversations are made.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GeneratorConfig {
    /// How many of them.
    pub num_conversations: usize,
    /// Texts that the user's messages are cut from.
    pub text_files: Vec<PathBuf>,
    /// Whether their lengths are to be shown.
    pub print_stats: bool,
    /// Messages of a conversation, the assistant's included.
    pub num_turns: LengthDistribution,
    /// Tokens that all conversations begin with.
    pub common_prefix_num_tokens: LengthDistribution,
    /// Tokens that each conversation begins with, of its own.
    pub prefix_num_tokens: LengthDistribution,
    /// Tokens of a message of the user.
    pub num_tokens: LengthDistribution,
    /// Tokens of an answer.
    pub output_num_tokens: LengthDistribution,
}

impl GeneratorConfig {
    /// Reads it from JSON. Messages name `path` and the field.
    pub(super) fn read(text: &str, path: &Path) -> Result<Self, DatasetError> {
        let value: Value = serde_json::from_str(text).map_err(|source| DatasetError::Json {
            path: path.to_owned(),
            rows: 0,
            source,
        })?;
        let Value::Object(map) = &value else {
            let problem = "is neither a list of conversations nor an object that describes them";
            return Err(wrong(path, "", problem));
        };
        let top = Section { path, name: "", map };
        let kind = top.need("filetype")?;
        if kind.as_str() != Some("generate_conversations") {
            return Err(wrong(
                path,
                "filetype",
                format!("must be \"generate_conversations\", not {kind}"),
            ));
        }
        let count = top.need("num_conversations")?;
        let Some(count) = count.as_u64().filter(|count| (1..=MOST).contains(count)) else {
            let problem = format!("must be a whole number from 1 to {MOST}, not {count}");
            return Err(wrong(path, "num_conversations", problem));
        };
        let input = top.section("prompt_input")?;
        let output = top.section("prompt_output")?;
        let print_stats = match map.get("print_stats") {
            None => false,
            Some(Value::Bool(print)) => *print,
            Some(other) => {
                return Err(wrong(
                    path,
                    "print_stats",
                    format!("must be true or false, not {other}"),
                ));
            }
        };
        let none = LengthDistribution::Constant { value: 0.0 };
        let common = "common_prefix_num_tokens";
        Ok(Self {
            num_conversations: usize::try_from(count).unwrap_or(usize::MAX),
            text_files: text_files(&top)?,
            print_stats,
            num_turns: input.distribution("num_turns")?,
            common_prefix_num_tokens: match input.map.get(common) {
                None => none,
                Some(_) => input.distribution(common)?,
            },
            prefix_num_tokens: input.distribution("prefix_num_tokens")?,
            num_tokens: input.distribution("num_tokens")?,
            output_num_tokens: output.distribution("num_tokens")?,
        })
    }

    /// Whether its turns have a limit that fuzzing can live with.
    pub(super) fn is_small(&self) -> bool {
        let limit = match &self.num_turns {
            LengthDistribution::Constant { value } => Some(*value),
            LengthDistribution::Uniform { max, .. } => Some(*max),
            LengthDistribution::Lognormal { max, .. }
            | LengthDistribution::Zipf { max, .. }
            | LengthDistribution::Poisson { max, .. } => *max,
        };
        limit.is_some_and(|limit| limit <= 100.0)
    }
}

/// An object of the file.
struct Section<'a> {
    path: &'a Path,
    /// Where it is, with a dot at its end.
    name: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Section<'a> {
    fn error(&self, field: &str, problem: impl Into<String>) -> DatasetError {
        wrong(self.path, format!("{}{field}", self.name), problem)
    }

    fn need(&self, field: &str) -> Result<&'a Value, DatasetError> {
        self.map.get(field).ok_or_else(|| self.error(field, "is missing"))
    }

    fn section(&self, field: &'a str) -> Result<Nested<'a>, DatasetError> {
        match self.need(field)? {
            Value::Object(map) => Ok(Nested { path: self.path, name: field, map }),
            other => Err(self.error(field, format!("must be an object, not {other}"))),
        }
    }

    fn number(&self, field: &str) -> Result<f64, DatasetError> {
        let value = self.need(field)?;
        let number = value.as_f64().filter(|number| number.is_finite());
        number.ok_or_else(|| self.error(field, format!("must be a number, not {value}")))
    }

    /// A number that may be left out.
    fn optional(&self, field: &str) -> Result<Option<f64>, DatasetError> {
        match self.map.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.number(field).map(Some),
        }
    }

    /// The largest value, where there is one.
    fn max(&self) -> Result<Option<f64>, DatasetError> {
        match self.optional("max")? {
            Some(max) if max < 0.0 => Err(self.error("max", format!("{max} is below 0"))),
            max => Ok(max.filter(|max| *max > 0.0)),
        }
    }

    fn read(&self) -> Result<LengthDistribution, DatasetError> {
        let name = self.need("distribution")?;
        match name.as_str() {
            Some("constant") => Ok(LengthDistribution::Constant { value: self.number("value")? }),
            Some("uniform") => self.uniform(),
            Some("lognormal") => self.lognormal(),
            Some("zipf") => {
                let alpha = self.number("alpha")?;
                if alpha <= 1.0 {
                    return Err(self.error("alpha", format!("must be above 1, not {alpha}")));
                }
                Ok(LengthDistribution::Zipf { alpha, max: self.max()? })
            }
            Some("poisson") => {
                let alpha = self.number("alpha")?;
                if !(0.0..=1e18).contains(&alpha) {
                    return Err(self.error("alpha", format!("must be from 0 to 1e18, not {alpha}")));
                }
                Ok(LengthDistribution::Poisson { alpha, max: self.max()? })
            }
            _ => {
                let known = "constant, uniform, lognormal, zipf, poisson";
                Err(self.error("distribution", format!("must be one of {known}, not {name}")))
            }
        }
    }

    fn uniform(&self) -> Result<LengthDistribution, DatasetError> {
        let (min, max) = (self.number("min")?, self.number("max")?);
        if min <= 0.0 {
            return Err(self.error("min", format!("must be above 0, not {min}")));
        }
        if min > max {
            return Err(self.error("min", format!("must not be above max: {min} is above {max}")));
        }
        let is_whole = |field| self.map.get(field).is_some_and(Value::is_u64);
        Ok(LengthDistribution::Uniform { min, max, whole: is_whole("min") && is_whole("max") })
    }

    fn lognormal(&self) -> Result<LengthDistribution, DatasetError> {
        let max = self.max()?;
        let Some(average) = self.optional("average")? else {
            let (mean, sigma) = (self.number("mean")?, self.number("sigma")?);
            if mean <= 0.0 {
                return Err(self.error("mean", format!("must be above 0, not {mean}")));
            }
            if sigma < 0.0 {
                return Err(self.error("sigma", format!("must not be below 0: {sigma}")));
            }
            return Ok(LengthDistribution::Lognormal { mean, sigma, average: None, max });
        };
        if average < 1.0 {
            return Err(self.error("average", format!("must be at least 1, not {average}")));
        }
        for field in ["mean", "sigma"] {
            if self.map.contains_key(field) {
                return Err(self.error(field, "does not go with average, from which it follows"));
            }
        }
        let ratio = self.optional("median_ratio")?.unwrap_or(MEDIAN_RATIO);
        if !(ratio > 0.0 && ratio < 1.0) {
            return Err(self.error("median_ratio", format!("must be between 0 and 1, not {ratio}")));
        }
        // The median is exp(μ) and the mean exp(μ + σ²/2), so their ratio is exp(−σ²/2).
        let median = average * ratio;
        let (mean, sigma) = (median.ln(), (2.0 * (average / median).ln()).sqrt());
        Ok(LengthDistribution::Lognormal { mean, sigma, average: Some((average, ratio)), max })
    }
}

/// `prompt_input` or `prompt_output`.
struct Nested<'a> {
    path: &'a Path,
    name: &'a str,
    map: &'a Map<String, Value>,
}

impl Nested<'_> {
    fn distribution(&self, field: &str) -> Result<LengthDistribution, DatasetError> {
        let name = format!("{}.{field}", self.name);
        match self.map.get(field) {
            None => Err(wrong(self.path, name, "is missing")),
            Some(Value::Object(map)) => {
                Section { path: self.path, name: &format!("{name}."), map }.read()
            }
            Some(other) => Err(wrong(self.path, name, format!("must be an object, not {other}"))),
        }
    }
}

fn text_files(top: &Section<'_>) -> Result<Vec<PathBuf>, DatasetError> {
    let value = top.need("text_files")?;
    let files = value.as_array().filter(|files| !files.is_empty()).and_then(|files| {
        files.iter().map(|file| file.as_str().map(PathBuf::from)).collect::<Option<Vec<_>>>()
    });
    files.ok_or_else(|| {
        top.error("text_files", format!("must be a list of file names, not {value}"))
    })
}
