//! How long a recording plays, by its file.

use crate::Audio;

impl Audio {
    /// How long the file of a recording plays, in seconds: WAV, FLAC, MP3, Ogg with Vorbis or Opus. `None`
    /// for another one, and for one that does not tell. Nothing is decoded.
    ///
    /// ```
    /// assert_eq!(servebench_core::Audio::seconds_of(b"no recording"), None);
    /// ```
    pub fn seconds_of(file: &[u8]) -> Option<f64> {
        wav(file).or_else(|| flac(file)).or_else(|| ogg(file)).or_else(|| mp3(file))
    }
}

/// The size of the data by the bytes of a second.
fn wav(file: &[u8]) -> Option<f64> {
    let mut rest = file.strip_prefix(b"RIFF")?.get(4..)?.strip_prefix(b"WAVE")?;
    let mut rate = None;
    loop {
        let (head, behind) = rest.split_at_checked(8)?;
        let size = u32::from_le_bytes(head.get(4..)?.try_into().ok()?);
        match head.get(..4)? {
            b"fmt " => {
                let rate_bytes = behind.get(8..12)?.try_into().ok()?;
                rate = Some(u32::from_le_bytes(rate_bytes)).filter(|&rate| rate > 0);
            }
            b"data" => {
                // A file written as it was recorded may have a size of its own invention.
                let size = u64::from(size).min(behind.len() as u64);
                return Some(size as f64 / f64::from(rate?));
            }
            _ => {}
        }
        // Chunks begin at even places.
        rest = behind.get(usize::try_from(u64::from(size) + u64::from(size % 2)).ok()?..)?;
    }
}

/// The samples by the rate, both in the block that the file begins with (RFC 9639, 8.2).
fn flac(file: &[u8]) -> Option<f64> {
    let info = file.strip_prefix(b"fLaC")?.get(14..22)?;
    // Rate in 20 bits, channels in 3, bits of a sample in 5, samples in 36.
    let bits = u64::from_be_bytes(info.try_into().ok()?);
    let (rate, samples) = (bits >> 44, bits & ((1 << 36) - 1));
    (rate > 0).then(|| samples as f64 / rate as f64)
}

/// The position of the last page (RFC 3533) by the rate of the stream that the first page begins: Vorbis, or
/// Opus, which is counted at 48 kHz from some samples on that are not played (RFC 7845).
fn ogg(file: &[u8]) -> Option<f64> {
    const PAGE: &[u8] = b"OggS";
    let segments = usize::from(*file.strip_prefix(PAGE)?.get(22)?);
    let stream = file.get(27 + segments..)?;
    let (rate, skipped) = if let Some(head) = stream.strip_prefix(b"OpusHead") {
        (48_000, u16::from_le_bytes(head.get(2..4)?.try_into().ok()?))
    } else {
        let head = stream.strip_prefix(b"\x01vorbis")?;
        (u32::from_le_bytes(head.get(5..9)?.try_into().ok()?), 0)
    };
    let pages = file.windows(PAGE.len()).enumerate().rev().filter(|(_, bytes)| *bytes == PAGE);
    let positions = pages.filter_map(|(at, _)| {
        let position = file.get(at + 6..at + 14)?.try_into().ok()?;
        // A page on which no packet ends has position -1.
        u64::try_from(i64::from_le_bytes(position)).ok()
    });
    let samples = positions.into_iter().next()?.saturating_sub(skipped.into());
    (rate > 0).then(|| samples as f64 / f64::from(rate))
}

/// The samples of all frames by their rates (ISO 11172-3 and 13818-3, layer III).
fn mp3(file: &[u8]) -> Option<f64> {
    let mut rest = without_tag(file)?;
    let (mut seconds, mut frames) = (0.0, 0_u32);
    while let Some(frame) = Frame::read(rest) {
        let (bytes, behind) = rest.split_at_checked(frame.size).unwrap_or((rest, &[]));
        // The first frame may say of the others how many they are, and holds no sound.
        let is_index =
            frames == 0 && bytes.windows(4).take(40).any(|word| word == b"Xing" || word == b"Info");
        if !is_index {
            seconds += f64::from(frame.samples) / f64::from(frame.rate);
        }
        frames += 1;
        rest = behind;
    }
    (frames > 1).then_some(seconds)
}

/// The file behind an ID3 tag, which has its size in four times seven bits.
fn without_tag(file: &[u8]) -> Option<&[u8]> {
    let Some(tag) = file.strip_prefix(b"ID3") else { return Some(file) };
    let size = tag.get(3..7)?.iter().fold(0, |size, byte| size << 7 | usize::from(byte & 0x7f));
    tag.get(7 + size..)
}

/// The head of a frame.
struct Frame {
    /// With its head, in bytes.
    size: usize,
    samples: u32,
    rate: u32,
}

impl Frame {
    fn read(bytes: &[u8]) -> Option<Self> {
        const KILOBITS: [[u32; 15]; 2] = [
            [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
            [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
        ];
        let [first, second, third, _] = *bytes.first_chunk()?;
        // Eleven bits that are one, the version, layer III.
        if first != 0xff || second & 0xe6 != 0xe2 {
            return None;
        }
        let (slower, half) = match second >> 3 & 3 {
            3 => (1, false),
            2 => (2, true),
            0 => (4, true),
            _ => return None,
        };
        let rate = [44_100, 48_000, 32_000].get(usize::from(third >> 2 & 3))? / slower;
        let kilobits = *KILOBITS[usize::from(half)].get(usize::from(third >> 4))?;
        let samples = if half { 576 } else { 1152 };
        let size = samples / 8 * kilobits * 1000 / rate + u32::from(third >> 1 & 1);
        (kilobits > 0).then_some(Self { size: size as usize, samples, rate })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn millis(file: &[u8]) -> Option<u64> {
        Audio::seconds_of(file).map(|seconds| (seconds * 1e3).round() as u64)
    }

    #[test]
    fn wav_tells_bytes_and_rate() {
        // One channel, 8000 samples of 16 bits a second, with a chunk of odd size before the data.
        let mut file =
            b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0"
                .to_vec();
        file.extend(b"LIST\x03\0\0\0abc\0data");
        file.extend(4000_u32.to_le_bytes());
        file.resize(file.len() + 4000, 1);
        assert_eq!(millis(&file), Some(250));
        // The size is more than there is.
        assert_eq!(millis(&file[..file.len() - 2000]), Some(125));
    }

    #[test]
    fn flac_tells_samples_and_rate() {
        let mut flac = b"fLaC\0\0\0\x22\x10\0\x10\0\0\0\0\0\0\0".to_vec();
        flac.extend(((0x3e80_u64 << 44) | (15 << 36) | 0x9c40).to_be_bytes());
        assert_eq!(millis(&flac), Some(2500));
    }

    /// A page of Ogg with one segment.
    fn page(position: i64, payload: &[u8]) -> Vec<u8> {
        let mut page = b"OggS\0\0".to_vec();
        page.extend(position.to_le_bytes());
        page.extend([0; 12]);
        page.extend([1, payload.len() as u8]);
        page.extend(payload);
        page
    }

    #[test]
    fn ogg_tells_its_last_position() {
        let opus = b"OpusHead\x01\x01\x38\x01\x80\x3e\0\0\0\0\0";
        let file = [page(0, opus), page(48_312, b"x"), page(-1, b"y")].concat();
        assert_eq!(millis(&file), Some(1000));
        let vorbis = b"\x01vorbis\0\0\0\0\x01\x40\x1f\0\0more";
        assert_eq!(millis(&[page(0, vorbis), page(4000, b"x")].concat()), Some(500));
    }

    #[test]
    fn mp3_is_the_sum_of_its_frames() {
        // MPEG-1 layer III, 128 kbit/s, 44.1 kHz: 417 bytes, or 418 with padding, for 1152 samples.
        let frame = |padded: bool| {
            let mut frame = vec![0xff, 0xfb, if padded { 0x92 } else { 0x90 }, 0];
            frame.resize(if padded { 418 } else { 417 }, 0);
            frame
        };
        let tag = b"ID3\x04\0\0\0\0\x01\x02".to_vec();
        let mut index = frame(false);
        index[36..40].copy_from_slice(b"Info");
        let sound: Vec<u8> = (0..100).flat_map(|n| frame(n % 2 == 0)).collect();
        let file = [tag, vec![0; 130], index, sound].concat();
        assert_eq!(millis(&file), Some(2612));
        // MPEG-2, 64 kbit/s, 16 kHz: 288 bytes for 576 samples.
        let mut slow = [0xff, 0xf3, 0x88, 0].to_vec();
        slow.resize(288, 0);
        assert_eq!(millis(&slow.repeat(50)), Some(1800));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(
            start in prop::sample::select(vec![
                &b""[..], b"RIFF\0\0\0\0WAVE", b"RIFF\0\0\0\0WAVEdata", b"fLaC", b"OggS", b"ID3\x04\0\0",
                b"\xff\xfb\x90\0", b"OggS\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01OpusHead",
            ]),
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            if let Some(seconds) = Audio::seconds_of(&[start, &bytes].concat()) {
                prop_assert!(seconds.is_finite() && seconds >= 0.0);
            }
        }
    }
}
