//! Pictures from outside, made fit to be sent.

use super::Size;
use super::encode::{Pixels, png};
use std::borrow::Cow;
use std::io::Cursor;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Most pixels that a picture from outside may have.
const LARGEST: u64 = 1 << 26;
/// Most bytes that one may take decoded: four of 16 bits for each pixel.
const BYTES: usize = (LARGEST as usize) * 8;

/// A picture as PNG.
#[derive(Debug)]
pub(crate) struct Recoded<'a> {
    pub(crate) size: Size,
    pub(crate) file: Cow<'a, [u8]>,
}

/// Makes a PNG without transparency of a PNG or a JPEG, as the Python tool does: of a PNG with an alpha
/// channel the colours are kept, any other is left as it is. What cannot be decoded to its end is
/// refused.
pub(crate) fn recode(file: &[u8]) -> Result<Recoded<'_>, String> {
    match file {
        [0x89, b'P', b'N', b'G', ..] => from_png(file),
        [0xff, 0xd8, ..] => from_jpeg(file),
        _ => Err("neither PNG nor JPEG".to_owned()),
    }
}

fn checked(width: u32, height: u32) -> Result<Size, String> {
    let size = Size { width, height };
    if (1..=LARGEST).contains(&size.pixels()) {
        Ok(size)
    } else {
        Err(format!("{width}x{height} pixels, above {LARGEST}"))
    }
}

fn from_png(file: &[u8]) -> Result<Recoded<'_>, String> {
    let told = |error: png::DecodingError| error.to_string();
    let limits = png::Limits { bytes: BYTES };
    let mut decoder = png::Decoder::new_with_limits(Cursor::new(file), limits);
    let header = decoder.read_header_info().map_err(told)?;
    let size = checked(header.width, header.height)?;
    let has_alpha = header.color_type == png::ColorType::Rgba;
    if has_alpha {
        decoder.set_transformations(png::Transformations::STRIP_16);
    }
    let mut reader = decoder.read_info().map_err(told)?;
    let bytes = reader.output_buffer_size().filter(|&bytes| bytes <= BYTES);
    let mut pixels = vec![0; bytes.ok_or("too large")?];
    reader.next_frame(&mut pixels).map_err(told)?;
    if !has_alpha {
        return Ok(Recoded { size, file: Cow::Borrowed(file) });
    }
    let rgb = pixels.chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied().collect();
    Ok(Recoded { size, file: Cow::Owned(png(&Pixels { size, rgb })?) })
}

fn from_jpeg(file: &[u8]) -> Result<Recoded<'static>, String> {
    let options = DecoderOptions::default()
        .set_max_width(usize::from(u16::MAX))
        .set_max_height(usize::from(u16::MAX))
        .jpeg_set_out_colorspace(ColorSpace::RGB)
        .set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(Cursor::new(file), options);
    decoder.decode_headers().map_err(|error| error.to_string())?;
    let (width, height) = decoder.dimensions().ok_or("no size")?;
    let size = checked(width as u32, height as u32)?;
    if decoder.input_colorspace().is_some_and(|space| space.num_components() > 3) {
        return Err("a JPEG for print (CMYK)".to_owned());
    }
    let rgb = decoder.decode().map_err(|error| error.to_string())?;
    if rgb.len() as u64 != 3 * size.pixels() {
        return Err("not in colours that are known".to_owned());
    }
    Ok(Recoded { size, file: Cow::Owned(png(&Pixels { size, rgb })?) })
}

#[cfg(test)]
mod tests {
    use super::super::ImageFormat;
    use super::super::encode::encode;
    use super::*;
    use base64::Engine;
    use proptest::prelude::*;

    fn file(pixels: &Pixels, format: ImageFormat) -> Vec<u8> {
        let uri = encode(pixels, format).unwrap().uri;
        let data = uri.split_once(',').unwrap().1;
        base64::engine::general_purpose::STANDARD.decode(data).unwrap()
    }

    fn rgb(png: &[u8]) -> Vec<u8> {
        let mut reader = png::Decoder::new(Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        pixels
    }

    #[test]
    fn a_jpeg_becomes_a_png_of_its_colours() {
        let size = Size { width: 20, height: 11 };
        let pixels = Pixels { size, rgb: [200, 40, 90].repeat(220) };
        let jpeg = file(&pixels, ImageFormat::Jpeg);
        let made = recode(&jpeg).unwrap();
        assert_eq!(made.size, size);
        let off = rgb(&made.file).into_iter().zip(&pixels.rgb).map(|(a, b)| a.abs_diff(*b)).max();
        assert!(off <= Some(3), "{off:?}");
        assert!(recode(&jpeg[..jpeg.len() / 2]).is_err(), "cut off");
    }

    #[test]
    fn alpha_is_left_out_and_nothing_else() {
        let size = Size { width: 3, height: 2 };
        let mut png = Vec::new();
        let mut encoder = png::Encoder::new(&mut png, 3, 2);
        encoder.set_color(png::ColorType::Rgba);
        let rgba: Vec<u8> = (0..24).collect();
        encoder.write_header().unwrap().write_image_data(&rgba).unwrap();
        let made = recode(&png).unwrap();
        let want: Vec<u8> = rgba.chunks(4).flat_map(|pixel| &pixel[..3]).copied().collect();
        assert_eq!((made.size, rgb(&made.file)), (size, want));
        let plain = file(&Pixels { size, rgb: vec![9; 18] }, ImageFormat::Png);
        assert_eq!(*recode(&plain).unwrap().file, *plain);
        assert!(recode(&plain[..plain.len() - 20]).is_err(), "cut off");
    }

    #[test]
    fn what_is_too_large_is_refused_before_it_is_decoded() {
        let size = Size { width: 1, height: 1 };
        let mut png = file(&Pixels { size, rgb: vec![0; 3] }, ImageFormat::Png);
        png[16..24].copy_from_slice(&[0, 1, 0, 0, 0, 1, 0, 0]);
        let refused = recode(&png).unwrap_err();
        assert!(!refused.is_empty());
        for other in [&b""[..], b"GIF89a", b"\x89PNG", b"\xff\xd8"] {
            assert!(recode(other).is_err());
        }
    }

    proptest! {
        #[test]
        fn broken_pictures_are_read_or_refused(
            seed: u8, cut in 0..400_usize, place in 0..400_usize, byte: u8, jpeg: bool,
        ) {
            let size = Size { width: 9, height: 8 };
            let rgb = (0..216_u32).map(|i| (i * 7) as u8 ^ seed).collect();
            let format = if jpeg { ImageFormat::Jpeg } else { ImageFormat::Png };
            let mut bytes = file(&Pixels { size, rgb }, format);
            if let Some(old) = bytes.get_mut(place) {
                *old = byte;
            }
            bytes.truncate(bytes.len().saturating_sub(cut.saturating_sub(300)));
            crate::fuzzing::picture(&bytes);
        }
    }
}
