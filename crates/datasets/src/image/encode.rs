//! Pixels as files, and files as data URIs.

use super::{ImageFormat, Size};
use crate::DatasetError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};
use servebench_core::Picture;
use std::sync::Arc;

/// Quality of JPEG.
const QUALITY: u8 = 85;

/// A picture that is not encoded.
#[derive(Debug)]
pub(crate) struct Pixels {
    pub(crate) size: Size,
    /// Red, green and blue of every pixel, row by row.
    pub(crate) rgb: Vec<u8>,
}

/// The picture as a file of that format.
pub(crate) fn encode(pixels: &Pixels, format: ImageFormat) -> Result<Picture, DatasetError> {
    let bytes = match format {
        ImageFormat::Jpeg => jpeg(pixels, QUALITY),
        ImageFormat::Png => png(pixels),
    };
    let bytes = bytes.map_err(|problem| DatasetError::Encode { format: format.name(), problem })?;
    let Size { width, height } = pixels.size;
    Ok(Picture { uri: data_uri(format, &bytes), width, height })
}

/// A file as text that can stand in JSON.
pub(crate) fn data_uri(format: ImageFormat, file: &[u8]) -> Arc<str> {
    let mut uri = format!("data:image/{};base64,", format.name());
    STANDARD.encode_string(file, &mut uri);
    uri.into()
}

/// Colours at half the resolution, each the mean of four: files of about the size that the Python tool's
/// have.
pub(crate) fn jpeg(pixels: &Pixels, quality: u8) -> Result<Vec<u8>, String> {
    let side = |side: u32| u16::try_from(side).map_err(|_| format!("{side} pixels in a row"));
    let (width, height) = (side(pixels.size.width)?, side(pixels.size.height)?);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, quality);
    encoder.set_sampling_factor(SamplingFactor::R_4_2_0);
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    let encoded = encoder.encode(&pixels.rgb, width, height, ColorType::Rgb);
    encoded.map_err(|error| error.to_string())?;
    Ok(file)
}

pub(super) fn png(pixels: &Pixels) -> Result<Vec<u8>, String> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, pixels.size.width, pixels.size.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let written = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(&pixels.rgb)?;
        writer.finish()
    });
    written.map_err(|error| error.to_string())?;
    Ok(file)
}
