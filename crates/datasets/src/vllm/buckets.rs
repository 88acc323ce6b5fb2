//! Sizes of random media and how often each comes.

use serde::Serialize;
use std::str::FromStr;

/// A picture, or a video of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MediaShape {
    /// Rows of pixels.
    pub height: u32,
    /// Pixels in a row.
    pub width: u32,
    /// Pictures: 1 is an image, more are a video.
    pub frames: u32,
}

impl MediaShape {
    /// Whether it is a video.
    pub const fn is_video(self) -> bool {
        self.frames > 1
    }

    /// Pixels of all its pictures.
    pub const fn pixels(self) -> u64 {
        self.height as u64 * self.width as u64 * self.frames as u64
    }
}

/// Shapes, each with its weight.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MediaBuckets(pub Vec<(MediaShape, f64)>);

impl Default for MediaBuckets {
    fn default() -> Self {
        let shape = |height, width, frames| MediaShape { height, width, frames };
        Self(vec![
            (shape(256, 256, 1), 0.5),
            (shape(720, 1280, 1), 0.5),
            (shape(720, 1280, 16), 0.0),
        ])
    }
}

/// Why a text is no mapping of shapes to weights.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {{(HEIGHT, WIDTH, FRAMES): WEIGHT, ...}}: {problem}")]
pub struct MediaBucketsError {
    problem: String,
}

impl FromStr for MediaBuckets {
    type Err = MediaBucketsError;

    /// Reads `{(256, 256, 1): 0.5, ...}`, where keys may stand in quotes.
    fn from_str(text: &str) -> Result<Self, MediaBucketsError> {
        let wrong = |problem: String| MediaBucketsError { problem };
        let inside = text.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        let mut rest = inside.ok_or_else(|| wrong(format!("`{text}` is not in braces")))?.trim();
        let mut buckets: Vec<(MediaShape, f64)> = Vec::new();
        while !rest.is_empty() {
            let (key, after) =
                rest.split_once(':').ok_or_else(|| wrong(format!("`{rest}` has no `:`")))?;
            let (weight, later) = after.split_once(',').unwrap_or((after, ""));
            let shape = shape(key).ok_or_else(|| wrong(format!("`{key}` is no shape")))?;
            let weight = weight.trim();
            let share =
                weight.parse().ok().filter(|share: &f64| share.is_finite() && *share >= 0.0);
            let share = share.ok_or_else(|| wrong(format!("`{weight}` is no weight")))?;
            match buckets.iter_mut().find(|(known, _)| *known == shape) {
                Some((_, known)) => *known = share,
                None => buckets.push((shape, share)),
            }
            rest = later.trim();
        }
        let total: f64 = buckets.iter().map(|(_, weight)| weight).sum();
        if total > 0.0 { Ok(Self(buckets)) } else { Err(wrong("no weight is above 0".to_owned())) }
    }
}

/// `(HEIGHT, WIDTH, FRAMES)`, each at least 1.
fn shape(key: &str) -> Option<MediaShape> {
    let key = key.trim();
    let key = ['"', '\'']
        .iter()
        .find_map(|&quote| key.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(key);
    let inside = key.trim().strip_prefix('(')?.strip_suffix(')')?;
    let numbers: Option<Vec<u32>> = inside
        .split(',')
        .map(|number| number.trim().parse().ok().filter(|number| (1..=65_535).contains(number)))
        .collect();
    match numbers?.as_slice() {
        &[height, width, frames] => Some(MediaShape { height, width, frames }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shapes_have_weights() {
        let text = r#"{(256, 256, 1): 0.5, "(720,1280,1)": 1, '(8, 8, 2)': 0.0,}"#;
        let shape = |height, width, frames| MediaShape { height, width, frames };
        let want =
            vec![(shape(256, 256, 1), 0.5), (shape(720, 1280, 1), 1.0), (shape(8, 8, 2), 0.0)];
        assert_eq!(text.parse(), Ok(MediaBuckets(want)));
        for text in [
            "",
            "{}",
            "{(1,2): 1}",
            "{(1,2,3): -1}",
            "{(1,2,3): 0}",
            "{(0,2,3): 1}",
            "{1: 1}",
            "{(1,2,3)}",
            "{(1,2,3): x}",
            "[(1,2,3): 1]",
        ] {
            assert!(text.parse::<MediaBuckets>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[{}():,'\"0-9. ]{0,30}") {
            drop(text.parse::<MediaBuckets>());
        }
    }
}
