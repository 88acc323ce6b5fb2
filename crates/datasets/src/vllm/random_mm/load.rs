//! Prompts, each with its media.

use super::noise::Noise;
use super::{Items, RandomMediaOptions, Shares};
use crate::DatasetError;
use crate::vllm::fit::Fit;
use crate::vllm::lengths::Lengths;
use crate::vllm::media::message;
use crate::vllm::random::Ids;
use crate::vllm::shared::{need, too_few};
use crate::vllm::{VllmDatasetOptions, VllmLoaded};
use rayon::prelude::*;
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

pub(in crate::vllm) fn load(
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

#[cfg(test)]
#[cfg(feature = "video")]
mod tests {
    use super::super::tests::options;
    use super::*;
    use proptest::prelude::*;

    /// What `numpy.random.default_rng(seed)` gives the requests of `vllm bench serve` 0.32.0: height,
    /// width, frames, the first byte and the sum of all bytes of each of their media.
    type Requests<'a> = [&'a [([u32; 3], u8, u64)]];

    fn drawn(own: &RandomMediaOptions, seed: u32, want: &Requests<'_>, next: u32) {
        let items = own.items().unwrap();
        let mut draws = NumpyGenerator::new(seed);
        for want in want {
            let media = items.draw(&mut draws);
            let media: Vec<_> = media
                .iter()
                .map(|Noise { shape, pixels }| {
                    let sum = pixels.iter().copied().map(u64::from).sum();
                    ([shape.height, shape.width, shape.frames], pixels[0], sum)
                })
                .collect();
            assert_eq!(media, *want);
        }
        assert_eq!(draws.next_u32(), next, "as much was drawn");
    }

    fn mixed(base_items: u32, items_range_ratio: f64, most_images: u32) -> RandomMediaOptions {
        let buckets = "{(3,5,1): 0.5, (2,3,2): 3, (4,3,1): 0.25, (3,3,3): 1}".parse().unwrap();
        let most_images = Some(most_images);
        RandomMediaOptions { base_items, items_range_ratio, most_images, buckets, ..options() }
    }

    #[test]
    fn media_are_the_python_tools() {
        let (a, b, image, tall) = ([2, 3, 2], [3, 3, 3], [3, 5, 1], [4, 3, 1]);
        drawn(
            &mixed(4, 0.5, 4),
            42,
            &[
                &[(a, 0xcd, 4646), (tall, 0x40, 4361)],
                &[
                    (a, 0xb6, 4152),
                    (image, 0xe3, 5189),
                    (image, 0xa4, 6254),
                    (image, 0x69, 5092),
                    (image, 0x11, 5419),
                ],
                &[(a, 0xb1, 4373), (tall, 0x41, 4609), (image, 0xe6, 6294)],
                &[(a, 0x53, 4647), (image, 0xba, 5710)],
            ],
            4_278_246_588,
        );
        drawn(
            &mixed(2, 0.0, 1),
            7,
            &[
                &[(a, 0x95, 4414), (image, 0xd7, 5725)],
                &[(a, 0x1f, 4041), (tall, 0xe9, 4446)],
                &[(a, 0xbe, 5128), (image, 0x83, 5487)],
                &[(b, 0xe5, 11_140), (image, 0xee, 5018)],
            ],
            1_629_708_897,
        );
    }

    proptest! {
        #[test]
        fn limits_hold_and_seeds_tell(
            seed: u32, base in 0..6_u32, ratio in 0.0..=1.0, images in 0..4_u32, videos in 0..3_u32,
        ) {
            let own = mixed(base, ratio, images);
            let own = RandomMediaOptions { most_videos: Some(videos), ..own };
            let Ok(items) = own.items() else {
                prop_assert!((f64::from(base) * (1.0 - ratio)).floor() as u32 > images + videos);
                return Ok(());
            };
            let draw = || items.draw(&mut NumpyGenerator::new(seed));
            let media = draw();
            let made = media.iter().filter(|noise| noise.shape.is_video()).count() as u32;
            prop_assert!(made <= videos && media.len() as u32 - made <= images);
            prop_assert!((items.least..=items.most).contains(&(media.len() as u32)));
            let encoded = |media: Vec<Noise>| -> Vec<_> {
                media.into_iter().map(|noise| noise.encode().unwrap()).collect()
            };
            prop_assert_eq!(encoded(media), encoded(draw()));
        }
    }
}
