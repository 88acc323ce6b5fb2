//! `random-mm`: random prompts with images of noise.

use super::buckets::{MediaBuckets, MediaShape};
use super::lengths::RangeRatio;
use super::{VllmDatasetOptions, VllmLoaded};
use crate::DatasetError;
use serde::Serialize;
use servebench_tokens::Tokenizer;

/// What random prompts with media look like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RandomMediaOptions {
    /// Prompt length, with the special tokens that a server adds.
    pub input_len: u32,
    /// Output length.
    pub output_len: u32,
    /// How far lengths may be from those.
    pub range_ratio: RangeRatio,
    /// Ids that all prompts begin with, on top of their own.
    pub prefix_len: u32,
    /// Images and videos in a request.
    pub base_items: u32,
    /// How far that number may be from it, from 0 to 1.
    pub items_range_ratio: f64,
    /// Most images in a request; `None`: there are to be none.
    pub most_images: Option<u32>,
    /// Most videos in a request; `None`: there are to be none.
    pub most_videos: Option<u32>,
    /// Their shapes.
    pub buckets: MediaBuckets,
}

/// How many of what a request has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Items {
    least: u32,
    most: u32,
    most_images: u32,
    /// Shapes of images with shares that add up to 1.
    shapes: Vec<MediaShape>,
    shares: Vec<f64>,
}

impl RandomMediaOptions {
    /// Checks what was asked for. Videos are refused.
    pub(super) fn items(&self) -> Result<Items, DatasetError> {
        let wrong =
            |flag, problem: &str| Err(DatasetError::Option { flag, problem: problem.to_owned() });
        const BUCKETS: &str = "--random-mm-bucket-config";
        if !(0.0..=1.0).contains(&self.items_range_ratio) {
            return wrong("--random-mm-num-mm-items-range-ratio", "must be from 0 to 1");
        }
        for (shape, _) in &self.buckets.0 {
            let limit = if shape.is_video() { self.most_videos } else { self.most_images };
            if limit.is_none() {
                let flag = "--random-mm-limit-mm-per-prompt";
                return wrong(flag, "lacks `image` or `video`, which a bucket has");
            }
        }
        let used = || self.buckets.0.iter().filter(|(_, weight)| *weight > 0.0);
        if used().any(|(shape, _)| shape.is_video()) {
            return wrong(
                BUCKETS,
                "has videos (more than 1 frame), for which this program has no encoder: give the \
                 bucket weight 0, or send video files with --dataset-name sharegpt",
            );
        }
        let total: f64 = used().map(|(_, weight)| weight).sum();
        let shapes: Vec<MediaShape> = used().map(|(shape, _)| *shape).collect();
        if shapes.is_empty() {
            return wrong(BUCKETS, "has no weight above 0");
        }
        let most_images = self.most_images.unwrap_or(0);
        let base = f64::from(self.base_items);
        let most = ((base * (1.0 + self.items_range_ratio)).ceil() as u32).min(most_images);
        let least = (base * (1.0 - self.items_range_ratio)).floor() as u32;
        if least > most {
            let flag = "--random-mm-base-items-per-request";
            return wrong(flag, "asks for more than --random-mm-limit-mm-per-prompt allows");
        }
        let shares = used().map(|(_, weight)| weight / total).collect();
        Ok(Items { least, most, most_images, shapes, shares })
    }
}

#[cfg(not(feature = "images"))]
pub(super) fn load(
    own: &RandomMediaOptions,
    _: &VllmDatasetOptions,
    _: Option<&Tokenizer>,
) -> Result<VllmLoaded, DatasetError> {
    own.items()?;
    Err(DatasetError::NoPictures { name: "random-mm" })
}

#[cfg(feature = "images")]
pub(super) fn load(
    own: &RandomMediaOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
) -> Result<VllmLoaded, DatasetError> {
    making::load(own, options, tokenizer)
}

#[cfg(feature = "images")]
mod making {
    use super::{Items, RandomMediaOptions};
    use crate::DatasetError;
    use crate::image::{Pixels, Size, jpeg};
    use crate::vllm::fit::Fit;
    use crate::vllm::lengths::Lengths;
    use crate::vllm::media::{image_of, message};
    use crate::vllm::random::Ids;
    use crate::vllm::shared::{need, too_few};
    use crate::vllm::{VllmDatasetOptions, VllmLoaded};
    use rayon::prelude::*;
    use serde_json::Value;
    use servebench_core::random::NumpyGenerator;
    use servebench_core::{Counted, Sample};
    use servebench_tokens::Tokenizer;

    /// Quality of JPEG: what Python's imaging library takes where nothing is said.
    const QUALITY: u8 = 75;
    /// Bytes of pixels that wait to be encoded.
    const BATCH: usize = 128 << 20;

    /// A request whose images are not encoded yet.
    struct Drawn {
        sample: Sample,
        text: String,
        images: Vec<Pixels>,
    }

    impl Drawn {
        fn bytes(&self) -> usize {
            self.images.iter().map(|pixels| pixels.rgb.len()).sum()
        }

        fn encode(self) -> Result<Sample, DatasetError> {
            let images = self
                .images
                .iter()
                .map(|pixels| jpeg(pixels, QUALITY).and_then(|file| image_of(&file)));
            let images: Result<Vec<Value>, String> = images.collect();
            let images =
                images.map_err(|problem| DatasetError::Encode { format: "jpeg", problem })?;
            Ok(Sample { prompt: message(&self.text, images), ..self.sample })
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
            let images = items.draw(&mut draws);
            let drawn = Drawn { sample, text: fit.text, images };
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
        /// The images of the next request: their number, then for each its shape and its pixels.
        fn draw(&self, draws: &mut NumpyGenerator) -> Vec<Pixels> {
            let count = draws.integers(self.least..=self.most, 1)[0].min(self.most_images);
            (0..count)
                .map(|_| {
                    let at = draws.choices_weighted(&self.shares, 1)[0];
                    let size =
                        Size { width: self.shapes[at].width, height: self.shapes[at].height };
                    let len = 3 * size.width as usize * size.height as usize;
                    Pixels { size, rgb: bytes(draws, len) }
                })
                .collect()
        }
    }

    /// `count` bytes, four from a word, the lowest first; what is left of the last word is lost.
    fn bytes(draws: &mut NumpyGenerator, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count + 3);
        while bytes.len() < count {
            bytes.extend(draws.next_u32().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn bytes_are_numpys() {
            // g = numpy.random.default_rng(42); g.integers(0, 256, 6, dtype="uint8"), then one more
            let mut draws = NumpyGenerator::new(42);
            assert_eq!(bytes(&mut draws, 6), [136, 38, 217, 22, 205, 251]);
            assert_eq!(bytes(&mut draws, 1), [193]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> RandomMediaOptions {
        RandomMediaOptions {
            input_len: 20,
            output_len: 4,
            range_ratio: RangeRatio::default(),
            prefix_len: 0,
            base_items: 2,
            items_range_ratio: 0.5,
            most_images: Some(255),
            most_videos: Some(1),
            buckets: MediaBuckets::default(),
        }
    }

    #[test]
    fn numbers_lie_around_the_base() {
        let items = options().items().unwrap();
        assert_eq!((items.least, items.most, items.shares), (1, 3, vec![0.5, 0.5]));
        let few = RandomMediaOptions { most_images: Some(2), ..options() }.items().unwrap();
        assert_eq!((few.least, few.most), (1, 2));
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let refused = |options: RandomMediaOptions| options.items().unwrap_err().to_string();
        let video = RandomMediaOptions { buckets: "{(8, 8, 2): 1}".parse().unwrap(), ..options() };
        assert!(refused(video).contains("no encoder"));
        let limit = RandomMediaOptions { most_videos: None, ..options() };
        assert!(refused(limit).contains("--random-mm-limit-mm-per-prompt"));
        let few = RandomMediaOptions { most_images: Some(0), ..options() };
        assert!(refused(few).contains("asks for more"));
        let ratio = RandomMediaOptions { items_range_ratio: 1.5, ..options() };
        assert!(refused(ratio).contains("must be from 0 to 1"));
    }
}
