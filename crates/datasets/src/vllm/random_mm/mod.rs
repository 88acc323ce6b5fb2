//! `random-mm`: random prompts with images and videos of noise.

#[cfg(feature = "images")]
mod load;
#[cfg(feature = "images")]
mod noise;

#[cfg(feature = "images")]
pub(super) use load::load;

use super::buckets::{MediaBuckets, MediaShape};
use super::lengths::RangeRatio;
#[cfg(not(feature = "images"))]
use super::{VllmDatasetOptions, VllmLoaded};
use crate::DatasetError;
use serde::Serialize;
#[cfg(not(feature = "images"))]
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

/// Most pixels of an image or a video, all frames taken together.
const LARGEST: u64 = 1 << 30;

/// How many of what a request has.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Items {
    least: u32,
    most: u32,
    limits: Limits,
    buckets: Shares,
}

/// Most of each kind in a request.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limits {
    images: u32,
    videos: u32,
}

/// Shapes, and shares of them that add up to 1.
#[derive(Clone, Debug, PartialEq)]
struct Shares {
    shapes: Vec<MediaShape>,
    shares: Vec<f64>,
}

impl Shares {
    fn of(weights: impl Iterator<Item = (MediaShape, f64)>) -> Self {
        let (shapes, weights): (Vec<_>, Vec<f64>) = weights.unzip();
        let total: f64 = weights.iter().sum();
        Self { shapes, shares: weights.into_iter().map(|weight| weight / total).collect() }
    }
}

impl RandomMediaOptions {
    /// Checks what was asked for. Videos are refused where this build cannot make them.
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
        let used = || self.buckets.0.iter().copied().filter(|(_, weight)| *weight > 0.0);
        if cfg!(not(feature = "video")) && used().any(|(shape, _)| shape.is_video()) {
            return wrong(
                BUCKETS,
                "has videos (more than 1 frame), which this build cannot make (feature video): give \
                 the bucket weight 0, or send video files with --dataset-name sharegpt",
            );
        }
        if used().any(|(shape, _)| shape.pixels() > LARGEST) {
            let problem = format!("has an image or a video of more than {LARGEST} pixels");
            return wrong(BUCKETS, &problem);
        }
        if used().next().is_none() {
            return wrong(BUCKETS, "has no weight above 0");
        }
        // A limit of what no bucket has lets nothing more in.
        let limit = |video: bool, most: Option<u32>| {
            let any = used().any(|(shape, _)| shape.is_video() == video);
            most.filter(|_| any).unwrap_or(0)
        };
        let limits = Limits {
            images: limit(false, self.most_images),
            videos: limit(true, self.most_videos),
        };
        let base = f64::from(self.base_items);
        let most = ((base * (1.0 + self.items_range_ratio)).ceil() as u32)
            .min(limits.images.saturating_add(limits.videos));
        let least = (base * (1.0 - self.items_range_ratio)).floor() as u32;
        if least > most {
            let flag = "--random-mm-base-items-per-request";
            return wrong(flag, "asks for more than --random-mm-limit-mm-per-prompt allows");
        }
        Ok(Items { least, most, limits, buckets: Shares::of(used()) })
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

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn options() -> RandomMediaOptions {
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
        assert_eq!((items.least, items.most, items.buckets.shares), (1, 3, vec![0.5, 0.5]));
        let few = RandomMediaOptions { most_images: Some(2), ..options() }.items().unwrap();
        assert_eq!((few.least, few.most), (1, 2));
    }

    #[test]
    fn only_limits_of_what_there_is_add_up() {
        let few = RandomMediaOptions { base_items: 9, most_images: Some(3), ..options() };
        let images = few.items().unwrap_err().to_string();
        assert!(images.contains("asks for more"), "the video that is allowed is none");
        if cfg!(feature = "video") {
            let buckets = "{(8, 8, 1): 1, (8, 8, 2): 0.1}".parse().unwrap();
            let both = RandomMediaOptions { buckets, base_items: 3, ..few }.items().unwrap();
            assert_eq!((both.least, both.most), (1, 4));
        }
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let refused = |options: RandomMediaOptions| options.items().unwrap_err().to_string();
        let of =
            |buckets: &str| RandomMediaOptions { buckets: buckets.parse().unwrap(), ..options() };
        assert!(refused(of("{(65535, 65535, 1): 1}")).contains("of more than 1073741824 pixels"));
        if cfg!(not(feature = "video")) {
            assert!(refused(of("{(8, 8, 2): 1}")).contains("(feature video): give the bucket"));
        }
        let limit = RandomMediaOptions { most_videos: None, ..options() };
        assert!(refused(limit).contains("--random-mm-limit-mm-per-prompt"));
        let few = RandomMediaOptions { most_images: Some(0), ..options() };
        assert!(refused(few).contains("asks for more"));
        let ratio = RandomMediaOptions { items_range_ratio: 1.5, ..options() };
        assert!(refused(ratio).contains("must be from 0 to 1"));
    }
}
