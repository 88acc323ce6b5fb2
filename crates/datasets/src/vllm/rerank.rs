//! `random-rerank`: a random query, and random documents to rank by it.

use super::fit::Fit;
use super::lengths::{Lengths, RangeRatio};
use super::random::{Ids, allowed};
use super::shared::{need, too_few};
use super::{VllmDatasetOptions, VllmLoaded};
use crate::DatasetError;
use serde::Serialize;
use servebench_core::random::NumpyGenerator;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Tokenizer, TokensError};

/// What queries and documents look like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RerankOptions {
    /// Tokens of a query and a document together, or of each where the model takes them apart.
    pub input_len: u32,
    /// How far lengths may be from that.
    pub range_ratio: RangeRatio,
    /// Texts in one request: documents, or where the model takes them apart a query and documents.
    pub batch_size: usize,
    /// Whether the model reads query and document as one text, as a reranker does.
    pub is_reranker: bool,
}

pub(super) fn load(
    own: &RerankOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
) -> Result<VllmLoaded, DatasetError> {
    const NAME: &str = "random-rerank";
    let tokenizer = need(tokenizer, NAME)?;
    let mut n = options.num_prompts.filter(|n| *n > 0).ok_or_else(|| too_few(NAME))?;
    let mut batch_size = own.batch_size.max(1);
    if !own.is_reranker {
        if n < 2 || batch_size < 2 {
            return Err(DatasetError::Option {
                flag: "--no-reranker",
                problem: "needs --num-prompts and --random-batch-size of 2 or more: a query and a \
                          document"
                    .to_owned(),
            });
        }
        n -= 1;
        batch_size -= 1;
    }
    let separators = u32::from(own.is_reranker);
    let special = tokenizer.num_special_tokens_to_add();
    let mut draws = NumpyGenerator::new(options.seed);
    let mut lengths = |n: usize, input_len: u32| {
        let lengths = (input_len.saturating_sub(special), 0);
        Lengths::draw(n, lengths, own.range_ratio, tokenizer.vocab_size(), &mut draws)
    };
    let of_query =
        if own.is_reranker { (own.input_len / 2).saturating_sub(1) } else { own.input_len };
    let query = lengths(1, of_query)?;
    let of_document = if own.is_reranker {
        own.input_len.saturating_sub(query.inputs[0] + separators)
    } else {
        own.input_len
    };
    let documents = lengths(n, of_document)?;
    let ids = Ids { allowed: allowed(tokenizer)? };
    let mut text = |lengths: &Lengths, at: usize, index: usize| -> Result<Fit, TokensError> {
        let target = lengths.inputs[at] as usize;
        let own = ids.run(lengths.offsets[at] as usize + index, target).collect();
        Fit::new(own, target).finish(tokenizer, &mut draws)
    };
    let query = text(&query, 0, 0)?;
    let documents: Vec<Fit> =
        (0..n).map(|at| text(&documents, at, at + 1)).collect::<Result<_, _>>()?;
    let mut loaded = VllmLoaded { request_ids: true, ..VllmLoaded::default() };
    loaded.mismatch = query.mismatch() + documents.iter().map(Fit::mismatch).sum::<u64>();
    if loaded.mismatch > 0 {
        loaded.warnings.push(format!(
            "texts miss their lengths by {} tokens in all: the tokenizer merges what was drawn",
            loaded.mismatch
        ));
    }
    let query_len = query.ids.len() as u32;
    for batch in documents.chunks(batch_size) {
        let of_queries =
            if own.is_reranker { (query_len + separators) * batch.len() as u32 } else { query_len };
        let texts = std::iter::once(&query).chain(batch).map(|fit| fit.text.clone()).collect();
        loaded.samples.push(Sample {
            prompt: Prompt::Texts(texts),
            prompt_len: of_queries + batch.iter().map(|fit| fit.ids.len() as u32).sum::<u32>(),
            counted: Counted::Tokenizer,
            ..Sample::default()
        });
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vllm::VllmDataset;

    fn load_of(n: usize, batch_size: usize, is_reranker: bool) -> Result<VllmLoaded, DatasetError> {
        let range_ratio = RangeRatio::default();
        let own = RerankOptions { input_len: 20, range_ratio, batch_size, is_reranker };
        let options = VllmDatasetOptions {
            num_prompts: Some(n),
            ..VllmDatasetOptions::new(VllmDataset::RandomRerank(own.clone()))
        };
        load(&own, &options, Some(&Tokenizer::byte_level()))
    }

    fn texts(loaded: &VllmLoaded) -> Vec<usize> {
        let texts = loaded.samples.iter().map(|sample| match &sample.prompt {
            Prompt::Texts(texts) => texts.len(),
            _ => 0,
        });
        texts.collect()
    }

    #[test]
    fn a_query_goes_with_every_batch() {
        assert_eq!(texts(&load_of(5, 2, true).unwrap()), [3, 3, 2]);
        assert_eq!(texts(&load_of(5, 3, false).unwrap()), [3, 3]);
        let one = load_of(1, 1, true).unwrap();
        assert_eq!((one.samples[0].output_len, texts(&one)), (0, vec![2]));
    }

    #[test]
    fn a_query_alone_is_an_error() {
        for (n, batch_size) in [(1, 2), (2, 1)] {
            let error = load_of(n, batch_size, false).unwrap_err();
            assert!(error.to_string().starts_with("--no-reranker"), "{error}");
        }
        assert!(load_of(0, 1, true).is_err());
    }
}
