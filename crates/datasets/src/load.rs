//! From options to samples.

use crate::corpus::{self, Conversation, TextKey};
use crate::random::{self, Lengths};
use crate::skips::{Skip, Skips};
use crate::{
    DatasetError, DatasetName, DatasetOptions, agentic, conversations, longbench, mooncake, openai,
    shared_prefix, speed_bench, words,
};
use servebench_core::Sample;
use servebench_core::random::Draws;
use servebench_tokens::{Hub, RepoKind, Tokenizer};
use std::path::{Path, PathBuf};

/// The dataset on the hub that holds the ShareGPT corpus, and the file in it.
const CORPUS: (&str, &str) =
    ("anon8231489123/ShareGPT_Vicuna_unfiltered", "ShareGPT_V3_unfiltered_cleaned_split.json");

/// A dataset, ready to be sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// The samples in plan order; at least one, at most as many as asked for.
    pub samples: Vec<Sample>,
    /// What the user should know: fewer rows than asked for, rows skipped, lengths not exact.
    pub warnings: Vec<String>,
}

impl Loaded {
    /// Sum of the prompt lengths.
    pub fn input_tokens(&self) -> u64 {
        self.samples.iter().map(|sample| u64::from(sample.prompt_len)).sum()
    }

    /// Sum of the output lengths.
    pub fn output_tokens(&self) -> u64 {
        self.samples.iter().map(|sample| u64::from(sample.output_len)).sum()
    }
}

/// Loads the dataset that `options` describe.
///
/// All draws come from `draws`, in the Python tool's order; afterwards `draws` is where the Python
/// tool's generators are then. Fewer samples than asked for are a warning, or an error where all are
/// [required](DatasetOptions::require_rows); none is an error.
pub fn load(
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    hub: &Hub,
    draws: &mut Draws,
) -> Result<Loaded, DatasetError> {
    options.check()?;
    let loaded = load_rows(options, tokenizer, hub, draws)?;
    let wanted = options.name != DatasetName::SharedPrefix && options.require_rows;
    if wanted && loaded.samples.len() < options.requests() {
        return Err(DatasetError::TooFewRows { why: loaded.warnings.join("; ") });
    }
    Ok(loaded)
}

fn load_rows(
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    hub: &Hub,
    draws: &mut Draws,
) -> Result<Loaded, DatasetError> {
    match options.name {
        DatasetName::SharedPrefix => shared_prefix::load(options, tokenizer, draws),
        DatasetName::Mooncake => mooncake::load(&trace(options, hub)?, options, tokenizer),
        DatasetName::OpenAi => openai::load(file(options)?, options, tokenizer),
        DatasetName::AgenticTrace => agentic::load(file(options)?, options),
        DatasetName::RandomWords => words::load(options, tokenizer, draws),
        DatasetName::LongBench => longbench::load(options, tokenizer, hub, draws),
        DatasetName::SpeedBench => speed_bench::load(file(options)?, options, tokenizer, draws),
        DatasetName::Image | DatasetName::Mmmu => load_pictures(options, tokenizer, hub, draws),
        _ => load_shuffled(options, tokenizer, hub, draws),
    }
}

#[cfg(feature = "images")]
fn load_pictures(
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    hub: &Hub,
    draws: &mut Draws,
) -> Result<Loaded, DatasetError> {
    if options.name == DatasetName::Mmmu {
        return crate::mmmu::load(options, tokenizer, hub, draws);
    }
    crate::image::load(options, tokenizer, draws)
}

#[cfg(not(feature = "images"))]
fn load_pictures(
    options: &DatasetOptions,
    _: &Tokenizer,
    _: &Hub,
    _: &mut Draws,
) -> Result<Loaded, DatasetError> {
    Err(DatasetError::NoPictures { name: options.name.name() })
}

/// The file that was named.
fn file(options: &DatasetOptions) -> Result<&Path, DatasetError> {
    let path = options.path.as_deref().filter(|path| !path.as_os_str().is_empty());
    path.ok_or(DatasetError::NoPath { name: options.name.name() })
}

/// The file of a trace: the one that was named, else the published one.
fn trace(options: &DatasetOptions, hub: &Hub) -> Result<PathBuf, DatasetError> {
    if let Ok(path) = file(options) {
        return Ok(path.to_owned());
    }
    let url = options.mooncake.clone().unwrap_or_default().workload.url();
    hub.fetch_url(url).map_err(|source| DatasetError::NoTrace { url, source })
}

/// `sharegpt`, `custom`, `random` and `random-ids`.
fn load_shuffled(
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    hub: &Hub,
    draws: &mut Draws,
) -> Result<Loaded, DatasetError> {
    let source = Source::find(options, hub)?;
    let mut skips = Skips::default();
    let mut inexact = (0, 0);
    let samples = match options.name {
        DatasetName::ShareGpt | DatasetName::Custom => {
            let text = source.read()?;
            let (found, key) = if options.name == DatasetName::Custom {
                (corpus::json_lines(&text, &mut skips), TextKey::ContentOrValue)
            } else {
                (source.share_gpt(&text, &mut skips)?, TextKey::Value)
            };
            conversations::sample(found, key, options, tokenizer, draws, &mut skips)?
        }
        _ => {
            let lengths = Lengths::draw(options, tokenizer, &mut draws.numpy);
            let samples = if options.name == DatasetName::RandomIds {
                random::from_ids(&lengths, options, tokenizer, draws)?
            } else {
                let text = source.read()?;
                let found = source.share_gpt(&text, &mut skips)?;
                random::from_corpus(found, &lengths, options, tokenizer, draws, &mut skips)?
            };
            inexact = random::inexact(&samples, &lengths, tokenizer.num_special_tokens_to_add());
            samples
        }
    };
    if samples.is_empty() {
        let skipped = skips.to_string();
        return Err(DatasetError::NoUsableRows { dataset: source.describe(), skipped });
    }
    let warnings = warnings(options, &source, samples.len(), &skips, inexact);
    Ok(Loaded { samples, warnings })
}

fn warnings(
    options: &DatasetOptions,
    source: &Source,
    found: usize,
    skips: &Skips,
    (inexact, worst): (usize, u32),
) -> Vec<String> {
    let mut warnings = Vec::new();
    if found < options.num_prompts {
        let (asked, name) = (options.num_prompts, source.describe());
        warnings.push(format!(
            "only {found} of {asked} prompts: no more usable rows in {name}, {skips}"
        ));
    } else if skips.count(Skip::NoJson) + skips.count(Skip::NoText) > 0 {
        warnings.push(format!("{}: {skips}", source.describe()));
    }
    if inexact > 0 {
        warnings.push(format!(
            "--exact-lengths: {inexact} of {found} prompts could not be made exact with this \
             tokenizer; they are off by up to {worst} tokens, and their real lengths are reported"
        ));
    }
    warnings
}

/// Where the rows come from.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    name: &'static str,
}

impl Source {
    fn find(options: &DatasetOptions, hub: &Hub) -> Result<Self, DatasetError> {
        let name = options.name.name();
        let given = options.path.as_deref().filter(|path| !path.as_os_str().is_empty());
        let path = match (options.name, given) {
            (DatasetName::RandomIds, _) => PathBuf::new(),
            (_, Some(path)) => path.to_owned(),
            (DatasetName::Custom, None) => return Err(DatasetError::NoPath { name }),
            (_, None) => hub
                .fetch(RepoKind::Dataset, CORPUS.0, CORPUS.1)
                .map_err(|source| DatasetError::NoCorpus { name, source })?,
        };
        Ok(Self { path, name })
    }

    fn read(&self) -> Result<String, DatasetError> {
        corpus::read(&self.path)
    }

    fn share_gpt<'a>(
        &self,
        text: &'a str,
        skips: &mut Skips,
    ) -> Result<Vec<Conversation<'a>>, DatasetError> {
        corpus::share_gpt(text, skips).map_err(|(rows, source)| DatasetError::Json {
            path: self.path.clone(),
            rows,
            source,
        })
    }

    fn describe(&self) -> String {
        if self.path == Path::new("") {
            self.name.to_owned()
        } else {
            self.path.display().to_string()
        }
    }
}
