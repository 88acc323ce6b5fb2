//! Images and videos of noise.

use crate::DatasetError;
use crate::image::{Pixels, Size, jpeg};
use crate::vllm::buckets::MediaShape;
use crate::vllm::media::image_of;
#[cfg(feature = "video")]
use crate::vllm::video::{mp4, video_of};
#[cfg(feature = "video")]
use rayon::prelude::*;
use serde_json::Value;
use servebench_core::random::NumpyGenerator;

/// Quality of JPEG: what Python's imaging library takes where nothing is said.
const QUALITY: u8 = 75;
/// Quality of the frames of a video: 16 of 1280x720 pixels make a file of about the size that the
/// Python tool's has.
#[cfg(feature = "video")]
const VIDEO_QUALITY: u8 = 65;

/// An image or a video that is not encoded yet.
#[derive(Debug, PartialEq)]
pub(super) struct Noise {
    pub(super) shape: MediaShape,
    /// Three bytes of every pixel, frame by frame and row by row.
    pub(super) pixels: Vec<u8>,
}

impl Noise {
    pub(super) fn draw(shape: MediaShape, draws: &mut NumpyGenerator) -> Self {
        Self { shape, pixels: bytes(draws, 3 * shape.pixels() as usize) }
    }

    /// The part of a message.
    pub(super) fn encode(self) -> Result<Value, DatasetError> {
        let size = Size { width: self.shape.width, height: self.shape.height };
        #[cfg(feature = "video")]
        if self.shape.is_video() {
            return video(&self.pixels, size);
        }
        let wrong = |problem| DatasetError::Encode { format: "jpeg", problem };
        let file = jpeg(&Pixels { size, rgb: self.pixels }, QUALITY).map_err(wrong)?;
        image_of(&file).map_err(wrong)
    }
}

/// The part for a video of these frames, whose pixels begin with blue, as the Python tool's do.
#[cfg(feature = "video")]
fn video(pixels: &[u8], size: Size) -> Result<Value, DatasetError> {
    let encode = |frame: &[u8]| {
        let mut rgb = frame.to_vec();
        rgb.chunks_exact_mut(3).for_each(<[u8]>::reverse);
        jpeg(&Pixels { size, rgb }, VIDEO_QUALITY)
    };
    let frames: Result<Vec<_>, _> =
        pixels.par_chunks(3 * size.pixels() as usize).map(encode).collect();
    let file = frames.and_then(|frames| mp4(&frames, size));
    let file = file.map_err(|problem| DatasetError::Encode { format: "mp4", problem })?;
    Ok(video_of(&file))
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
