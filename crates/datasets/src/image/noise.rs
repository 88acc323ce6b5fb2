//! Pictures, drawn pixel by pixel.

use super::encode::{Pixels, encode};
use super::{ImageContent, ImageFormat, ImageOptions, Resolution, Size};
use crate::DatasetError;
use rayon::prelude::*;
use servebench_core::Picture;
use servebench_core::random::NumpyLegacy;
use std::collections::HashMap;

/// Bytes of pixels that wait to be encoded: two such batches are held at a time.
const BATCH: usize = 128 << 20;

/// `count` pictures in the Python tool's draws: for each one width and height, if they are random, then
/// red, green and blue of every pixel, row by row.
///
/// Pixels are drawn one after the other, and encoded on all cores meanwhile.
pub(crate) fn pictures(
    options: &ImageOptions,
    count: usize,
    numpy: &mut NumpyLegacy,
) -> Result<Vec<Picture>, DatasetError> {
    if options.content == ImageContent::Blank {
        return blank(options, count, numpy);
    }
    let mut source = Source { resolution: options.resolution, left: count, numpy };
    let mut pictures = Vec::with_capacity(count);
    let mut drawn = source.batch();
    while !drawn.is_empty() {
        let (encoded, next) = rayon::join(|| encode_all(&drawn, options.format), || source.batch());
        pictures.extend(encoded?);
        drawn = next;
    }
    Ok(pictures)
}

/// Pictures of noise that have the sizes of others and nothing else in common with them: what is sent
/// before a measurement must not be found in a cache by it.
pub fn noise_like(pictures: &[Picture], seed: u32) -> Result<Vec<Picture>, DatasetError> {
    let mut numpy = NumpyLegacy::new(seed);
    let drawn: Vec<Pixels> = pictures
        .iter()
        .map(|&Picture { width, height, .. }| draw(Size { width, height }, &mut numpy))
        .collect();
    encode_all(&drawn, ImageFormat::Jpeg)
}

fn encode_all(drawn: &[Pixels], format: ImageFormat) -> Result<Vec<Picture>, DatasetError> {
    drawn.par_iter().map(|pixels| encode(pixels, format)).collect()
}

struct Source<'a> {
    resolution: Resolution,
    left: usize,
    numpy: &'a mut NumpyLegacy,
}

impl Source<'_> {
    /// The next pictures, until there are enough bytes of them for once.
    fn batch(&mut self) -> Vec<Pixels> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while self.left > 0 && bytes < BATCH {
            let pixels = draw(draw_size(self.resolution, self.numpy), self.numpy);
            bytes += pixels.rgb.len();
            self.left -= 1;
            batch.push(pixels);
        }
        batch
    }
}

fn draw_size(resolution: Resolution, numpy: &mut NumpyLegacy) -> Size {
    match resolution {
        Resolution::Fixed(size) => size,
        Resolution::Random { least, most } => {
            let mut one = |least, most| numpy.randint(least..=most, 1)[0];
            let width = one(least.width, most.width);
            Size { width, height: one(least.height, most.height) }
        }
    }
}

/// A double below 1 for each byte, times 255, without its fraction.
fn draw(size: Size, numpy: &mut NumpyLegacy) -> Pixels {
    let bytes = 3 * size.pixels() as usize;
    let rgb = (0..bytes).map(|_| (numpy.random_f64() * 255.0) as u8).collect();
    Pixels { size, rgb }
}

/// White pictures: one for each size.
fn blank(
    options: &ImageOptions,
    count: usize,
    numpy: &mut NumpyLegacy,
) -> Result<Vec<Picture>, DatasetError> {
    let sizes: Vec<Size> = (0..count).map(|_| draw_size(options.resolution, numpy)).collect();
    let mut kinds = sizes.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let white = |size: Size| {
        let pixels = Pixels { size, rgb: vec![255; 3 * size.pixels() as usize] };
        Ok((size, encode(&pixels, options.format)?))
    };
    let made: HashMap<Size, Picture> =
        kinds.into_par_iter().map(white).collect::<Result<_, DatasetError>>()?;
    Ok(sizes.iter().map(|size| made[size].clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn options(text: &str, content: ImageContent) -> ImageOptions {
        let resolution = text.parse().unwrap();
        ImageOptions { resolution, content, ..ImageOptions::default() }
    }

    #[test]
    fn pixels_are_numpys() {
        // numpy.random.seed(42); (numpy.random.rand(2, 2, 3) * 255).astype(numpy.uint8)
        let mut numpy = NumpyLegacy::new(42);
        let pixels = draw(Size { width: 2, height: 2 }, &mut numpy);
        assert_eq!(pixels.rgb, [95, 242, 186, 152, 39, 39, 14, 220, 153, 180, 5, 247]);
    }

    #[test]
    fn blank_pictures_of_a_size_are_one() {
        let options = options("random:1x1-2x2", ImageContent::Blank);
        let (mut numpy, mut sizes) = (NumpyLegacy::new(1), NumpyLegacy::new(1));
        let made = pictures(&options, 30, &mut numpy).unwrap();
        for picture in &made {
            let size = draw_size(options.resolution, &mut sizes);
            assert_eq!((picture.width, picture.height), (size.width, size.height));
            let same = made
                .iter()
                .filter(|other| (other.width, other.height) == (picture.width, picture.height));
            assert!(same.clone().count() > 1);
            assert!(same.into_iter().all(|other| Arc::ptr_eq(&other.uri, &picture.uri)));
        }
        assert_eq!(numpy, sizes, "white is not drawn");
    }

    #[test]
    fn noise_shares_nothing_but_the_size() {
        let options = options("random:8x8-32x32", ImageContent::Random);
        let mut numpy = NumpyLegacy::new(7);
        let made = pictures(&options, 5, &mut numpy).unwrap();
        let other = noise_like(&made, 8).unwrap();
        for (one, other) in made.iter().zip(&other) {
            assert_eq!((one.width, one.height), (other.width, other.height));
            assert_ne!(one.uri, other.uri);
        }
        let mut uris: Vec<_> = made.iter().chain(&other).map(|picture| &picture.uri).collect();
        uris.sort();
        uris.dedup();
        assert_eq!(uris.len(), 10);
    }
}
