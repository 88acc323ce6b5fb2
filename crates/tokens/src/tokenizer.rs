//! The tokenizer.

use crate::config::Config;
use crate::source::{self, Source};
use crate::{ChatTemplate, Hub, TokensError, bytes};
use rayon::prelude::*;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokenizers::models::ModelWrapper;
use tokenizers::processors::template::TemplateProcessing;

/// Counts, encodes and decodes as Python's fast tokenizers do. Cheap to clone.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    tokenizer: tokenizers::Tokenizer,
    config: Config,
    source: Source,
    cleans_spaces: bool,
    template: OnceLock<ChatTemplate>,
    fingerprint: [u8; 32],
    texts: AtomicU64,
}

impl Tokenizer {
    /// Loads a tokenizer: from a folder, from the path of a `tokenizer.json`, else from the model
    /// of that id on the hub. `tokenizer_config.json` beside it is obeyed.
    pub fn load(name: &str, hub: &Hub) -> Result<Self, TokensError> {
        let source = Source::find(name, hub)?;
        let path = match &source {
            Source::Folder { tokenizer, .. } | Source::Model { tokenizer, .. } => tokenizer.clone(),
            Source::BuiltIn => PathBuf::new(),
        };
        let json = source::read(&path)?;
        let mut config = Config::new(source.object_beside(source::CONFIG)?);
        if !config.settles_bos() {
            config.fill_special_tokens(&source.object_beside(source::SPECIAL_TOKENS)?);
        }
        Self::build(name, &json, config, source)
            .map_err(|source| TokensError::Load { path, source })
    }

    /// The built-in tokenizer that needs no file: every UTF-8 byte is a token, whose id is the
    /// byte. It adds no special tokens and gives valid text back unchanged.
    pub fn byte_level() -> Self {
        let json = bytes::tokenizer_json().to_string();
        let built = Self::build("byte-level", json.as_bytes(), Config::default(), Source::BuiltIn);
        #[expect(clippy::expect_used, reason = "the input is a constant that the tests load")]
        built.expect("the built-in tokenizer is well formed")
    }

    fn build(
        name: &str,
        json: &[u8],
        config: Config,
        source: Source,
    ) -> Result<Self, tokenizers::Error> {
        let mut tokenizer = crate::file::read(json)?;
        // Python switches both off for every call that does not ask for them.
        tokenizer.with_truncation(None)?;
        tokenizer.with_padding(None);
        let known: Vec<String> =
            tokenizer.get_added_tokens_decoder().into_values().map(|token| token.content).collect();
        for token in config.tokens_to_add() {
            if !known.contains(&token.content) {
                tokenizer.add_tokens([token])?;
            }
        }
        if let Some((bos, eos)) = config.adds_bos_eos() {
            let of = |wanted: bool, name| config.special(name).filter(|_| wanted);
            let processor =
                bos_eos_processor(&tokenizer, of(bos, "bos_token"), of(eos, "eos_token"))?;
            tokenizer.with_post_processor(Some(processor));
        }
        let is_bpe = matches!(tokenizer.get_model(), ModelWrapper::BPE(_));
        let (asked, insisted) = config.cleans_spaces();
        let cleans_spaces = asked && (insisted || !is_bpe);
        let template = OnceLock::new();
        let name = name.to_owned();
        let mut hash = Sha256::new_with_prefix(json);
        hash.update(config.to_json());
        let fingerprint = hash.finalize().into();
        let texts = AtomicU64::new(0);
        let inner =
            Inner { name, tokenizer, config, source, cleans_spaces, template, fingerprint, texts };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The name it was loaded by.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// SHA-256 over what the tokenizer was made of: two with the same one give the same tokens.
    pub fn fingerprint(&self) -> [u8; 32] {
        self.inner.fingerprint
    }

    /// How many texts have been encoded, counted or decoded by it and its clones: whoever waits for
    /// many can see how far it is.
    pub fn texts(&self) -> u64 {
        self.inner.texts.load(Ordering::Relaxed)
    }

    fn note_text(&self) {
        self.inner.texts.fetch_add(1, Ordering::Relaxed);
    }

    /// The token ids of `text`, with the special tokens that the tokenizer adds to a sequence if
    /// `special` is set.
    pub fn encode(&self, text: &str, special: bool) -> Result<Vec<u32>, TokensError> {
        self.note_text();
        let encoding = self.inner.tokenizer.encode_fast(text, special);
        let operation = "encode";
        encoding
            .map(|encoding| encoding.get_ids().to_vec())
            .map_err(|source| TokensError::Tokenize { operation, source })
    }

    /// The number of tokens in `text`.
    pub fn count(&self, text: &str, special: bool) -> Result<u32, TokensError> {
        self.note_text();
        let encoding = self.inner.tokenizer.encode_fast(text, special);
        let operation = "encode";
        encoding
            .map(|encoding| u32::try_from(encoding.len()).unwrap_or(u32::MAX))
            .map_err(|source| TokensError::Tokenize { operation, source })
    }

    /// The number of tokens in each of `texts`, on all cores.
    pub fn count_batch<T: AsRef<str> + Sync>(
        &self,
        texts: &[T],
        special: bool,
    ) -> Result<Vec<u32>, TokensError> {
        texts.par_iter().map(|text| self.count(text.as_ref(), special)).collect()
    }

    /// The text of `ids`, without special tokens if `skip_special` is set.
    ///
    /// Ids that are no token decode to nothing, bytes that are no text to U+FFFD.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String, TokensError> {
        self.note_text();
        let operation = "decode";
        let text = self
            .inner
            .tokenizer
            .decode(ids, skip_special)
            .map_err(|source| TokensError::Tokenize { operation, source })?;
        Ok(if self.inner.cleans_spaces { clean_spaces(&text) } else { text })
    }

    /// Size of the base vocabulary, without added tokens (Python's `vocab_size`).
    pub fn vocab_size(&self) -> u32 {
        self.inner.tokenizer.get_vocab_size(false) as u32
    }

    /// A token as the vocabulary writes it, a space before a word as `Ġ` or `▁`, say; `None` if no
    /// token has this id.
    pub fn piece(&self, id: u32) -> Option<String> {
        self.inner.tokenizer.id_to_token(id)
    }

    /// The ids of the whole vocabulary, added tokens included, in ascending order.
    pub fn vocabulary_ids(&self) -> Vec<u32> {
        let mut ids: Vec<u32> = self.inner.tokenizer.get_vocab(true).into_values().collect();
        ids.sort_unstable();
        ids
    }

    /// The ids of the added tokens, special or not, in ascending order.
    pub fn added_ids(&self) -> Vec<u32> {
        self.added(|_| true)
    }

    /// The ids of the special tokens, in ascending order.
    pub fn special_ids(&self) -> Vec<u32> {
        self.added(|token| token.special)
    }

    /// The ids that Python's `all_special_ids` has, in ascending order: the special tokens that
    /// `tokenizer_config.json` names, but not those that only `tokenizer.json` declares special.
    pub fn named_special_ids(&self) -> Vec<u32> {
        let texts = self.inner.config.all_specials();
        let mut ids: Vec<u32> = texts.into_iter().filter_map(|text| self.token_id(text)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The id of a token, as the vocabulary writes it.
    pub fn token_id(&self, token: &str) -> Option<u32> {
        self.inner.tokenizer.token_to_id(token)
    }

    /// A token that only some models have, by its name in `tokenizer_config.json` (`image_token`).
    pub fn named_token(&self, name: &str) -> Option<&str> {
        self.inner.config.named(name)
    }

    /// True for [`byte_level`](Self::byte_level), which is no model's.
    pub fn is_built_in(&self) -> bool {
        matches!(self.inner.source, Source::BuiltIn)
    }

    /// The JSON object in a file beside the tokenizer (`preprocessor_config.json`, say), empty if there
    /// is no such file.
    pub fn object_beside(&self, file: &str) -> Result<Map<String, Value>, TokensError> {
        self.inner.source.object_beside(file)
    }

    fn added(&self, keep: impl Fn(&tokenizers::AddedToken) -> bool) -> Vec<u32> {
        let added = self.inner.tokenizer.get_added_tokens_decoder();
        let mut ids: Vec<u32> =
            added.into_iter().filter(|(_, token)| keep(token)).map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }

    /// How many special tokens [`encode`](Self::encode) adds to one sequence.
    pub fn num_special_tokens_to_add(&self) -> u32 {
        let processor = self.inner.tokenizer.get_post_processor();
        processor.map_or(0, |p| tokenizers::PostProcessor::added_tokens(p, false)) as u32
    }

    /// The begin-of-sequence token, if `tokenizer_config.json` names one.
    pub fn bos_token(&self) -> Option<&str> {
        self.inner.config.special("bos_token")
    }

    /// The end-of-sequence token, if `tokenizer_config.json` names one.
    pub fn eos_token(&self) -> Option<&str> {
        self.inner.config.special("eos_token")
    }

    /// The chat template: `chat_template.jinja`, else the one in `tokenizer_config.json`.
    pub fn chat_template(&self) -> Result<&ChatTemplate, TokensError> {
        if let Some(template) = self.inner.template.get() {
            return Ok(template);
        }
        let source = match self.inner.source.beside(source::TEMPLATE)? {
            Some(path) => String::from_utf8_lossy(&source::read(&path)?).into_owned(),
            None => match self.inner.config.chat_template() {
                Some(text) => text.to_owned(),
                None => {
                    return Err(TokensError::NoChatTemplate { tokenizer: self.inner.name.clone() });
                }
            },
        };
        let template = self.compile(&source)?;
        Ok(self.inner.template.get_or_init(|| template))
    }

    /// The chat template of the model's processor, which knows pictures: in `processor_config.json`, else
    /// in `chat_template.json`, else the tokenizer's.
    pub fn processor_template(&self) -> Result<ChatTemplate, TokensError> {
        for file in [source::PROCESSOR, source::LEGACY_TEMPLATE] {
            if let Some(Value::String(text)) = self.object_beside(file)?.get("chat_template") {
                return self.compile(text);
            }
        }
        self.chat_template().cloned()
    }

    fn compile(&self, source: &str) -> Result<ChatTemplate, TokensError> {
        let specials = self.inner.config.named_specials();
        let specials = specials.map(|(name, text)| (name, text.to_owned())).collect();
        ChatTemplate::new(&self.inner.name, source, specials)
    }
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokenizer")
            .field("name", &self.inner.name)
            .field("source", &self.inner.source)
            .finish_non_exhaustive()
    }
}

/// The post-processor that puts `bos` before and `eos` after a sequence.
fn bos_eos_processor(
    tokenizer: &tokenizers::Tokenizer,
    bos: Option<&str>,
    eos: Option<&str>,
) -> Result<TemplateProcessing, tokenizers::Error> {
    let known = |token: Option<&str>| {
        let token = token?;
        Some((token.to_owned(), tokenizer.token_to_id(token)?))
    };
    let (bos, eos) = (known(bos), known(eos));
    let piece = |token: &Option<(String, u32)>| token.as_ref().map(|(text, _)| text.clone());
    let single: Vec<String> =
        [piece(&bos), Some("$A".to_owned()), piece(&eos)].into_iter().flatten().collect();
    let specials: Vec<(String, u32)> = [bos, eos].into_iter().flatten().collect();
    Ok(TemplateProcessing::builder().try_single(single)?.special_tokens(specials).build()?)
}

/// Python's cleaning of decoded text, meant for word-piece vocabularies.
fn clean_spaces(text: &str) -> String {
    const RULES: [(&str, &str); 10] = [
        (" .", "."),
        (" ?", "?"),
        (" !", "!"),
        (" ,", ","),
        (" ' ", "'"),
        (" n't", "n't"),
        (" 'm", "'m"),
        (" 's", "'s"),
        (" 've", "'ve"),
        (" 're", "'re"),
    ];
    RULES.iter().fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_cleaned_in_pythons_order() {
        assert_eq!(clean_spaces("a . b , do n't it 's ' x ' ?"), "a. b, don't it's'x '?");
    }
}
