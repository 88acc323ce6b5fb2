//! Prompts, each with its media.

use super::{Items, RandomMediaOptions, Shares};
use crate::DatasetError;
use crate::image::{Pixels, Size, jpeg};
use crate::vllm::buckets::MediaShape;
use crate::vllm::fit::Fit;
use crate::vllm::lengths::Lengths;
use crate::vllm::media::{image_of, message};
use crate::vllm::random::Ids;
use crate::vllm::shared::{need, too_few};
#[cfg(feature = "video")]
use crate::vllm::video::{mp4, video_of};
use crate::vllm::{VllmDatasetOptions, VllmLoaded};
use rayon::prelude::*;
use serde_json::Value;
use servebench_core::random::NumpyGenerator;
use servebench_core::{Counted, Sample};
use servebench_tokens::Tokenizer;

/// Bytes of pixels that wait to be encoded.
const BATCH: usize = 128 << 20;

/// A request whose media are not encoded yet.
struct Drawn {
    sample: Sample,
    text: String,
    media: Vec<Noise>,
}

impl Drawn {
    fn bytes(&self) -> usize {
        self.media.iter().map(|noise| noise.pixels.len()).sum()
    }

    fn encode(self) -> Result<Sample, DatasetError> {
        let media: Result<_, _> = self.media.into_iter().map(Noise::encode).collect();
        Ok(Sample { prompt: message(&self.text, media?), ..self.sample })
    }
}

pub(super) fn load(
    own: &RandomMediaOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
) -> Result<VllmLoaded, DatasetError> {
    const NAME: &str = "random-mm";
    let items = own.items()?;
    let tokenizer = need(tokenizer, NAME)?;
    let n = options.num_prompts.filter(|n| *n > 0).ok_or_else(|| too_few(NAME))?;
    let mut draws = NumpyGenerator::new(options.seed);
    let input_len = own.input_len.saturating_sub(tokenizer.num_special_tokens_to_add());
    let lengths = (input_len, own.output_len);
    let vocabulary = tokenizer.vocab_size();
    let lengths = Lengths::draw(n, lengths, own.range_ratio, vocabulary, &mut draws)?;
    let special = tokenizer.special_ids();
    let ids = Ids { allowed: (0..vocabulary).filter(|id| !special.contains(id)).collect() };
    if ids.allowed.is_empty() {
        return Err(DatasetError::NoUsableRows {
            dataset: format!("the vocabulary of `{}`", tokenizer.name()),
            skipped: "all of it is special".to_owned(),
        });
    }
    let prefix = ids.prefix(own.prefix_len, tokenizer, &mut draws)?;
    let mut loaded = VllmLoaded { request_ids: true, ..VllmLoaded::default() };
    let (mut waiting, mut bytes) = (Vec::new(), 0);
    for row in 0..n {
        let len = lengths.inputs[row] as usize;
        let run = ids.run(lengths.offsets[row] as usize + row, len);
        let target = own.prefix_len as usize + len;
        let fit = Fit::new(prefix.iter().copied().chain(run).collect(), target);
        let fit = fit.finish(tokenizer, &mut draws)?;
        loaded.mismatch += fit.mismatch();
        let sample = Sample {
            prompt_len: fit.ids.len() as u32,
            counted: Counted::Tokenizer,
            output_len: lengths.outputs[row],
            ..Sample::default()
        };
        let media = items.draw(&mut draws);
        let drawn = Drawn { sample, text: fit.text, media };
        bytes += drawn.bytes();
        waiting.push(drawn);
        if bytes > BATCH || row + 1 == n {
            let encoded = std::mem::take(&mut waiting).into_par_iter().map(Drawn::encode);
            loaded.samples.extend(encoded.collect::<Result<Vec<_>, _>>()?);
            bytes = 0;
        }
    }
    if loaded.mismatch > 0 {
        loaded.warnings.push(format!(
            "prompts miss their lengths by {} tokens in all: the tokenizer merges what was drawn",
            loaded.mismatch
        ));
    }
    Ok(loaded)
}

impl Items {
    /// The media of the next request: their number, then for each its shape and its pixels. A
    /// kind is drawn until it is found at its limit.
    fn draw(&self, draws: &mut NumpyGenerator) -> Vec<Noise> {
        let count = draws.integers(self.least..=self.most, 1)[0];
        let mut left = self.limits;
        let mut buckets = self.buckets.clone();
        let mut media = Vec::new();
        while media.len() < count as usize && !buckets.shapes.is_empty() {
            let shape = buckets.shapes[draws.choices_weighted(&buckets.shares, 1)[0]];
            let left = if shape.is_video() { &mut left.videos } else { &mut left.images };
            if *left > 0 {
                *left -= 1;
                media.push(Noise::draw(shape, draws));
            } else {
                buckets = buckets.without(shape.is_video());
            }
        }
        media
    }
}

impl Shares {
    /// Those of the other kind.
    fn without(self, videos: bool) -> Self {
        let all = self.shapes.into_iter().zip(self.shares);
        Self::of(all.filter(|(shape, _)| shape.is_video() != videos))
    }
}
