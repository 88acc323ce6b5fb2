//! Videos: an MP4 file (ISO/IEC 14496-12 and 14496-14) whose pictures are one JPEG file each.

use crate::image::Size;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Pictures in a second.
const RATE: u32 = 30;
/// Pictures are shown as they are: neither turned nor scaled.
const MATRIX: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

/// The part for a video that is sent along, from its file.
pub(super) fn video_of(file: &[u8]) -> Value {
    let url = format!("data:video/mp4;base64,{}", STANDARD.encode(file));
    json!({"type": "video_url", "video_url": {"url": url}})
}

/// The file of a video, of its pictures as JPEG files, all of that size.
pub(super) fn mp4(pictures: &[Vec<u8>], size: Size) -> Result<Vec<u8>, String> {
    let all = pictures.iter().map(Vec::len).sum::<usize>();
    let media = u32::try_from(all + 8).map_err(|_| "more than 4 GiB")?;
    let sizes: Vec<u32> = pictures.iter().map(|file| file.len() as u32).collect();
    let mut file = boxed(*b"ftyp", &[b"isom", &words(&[0x200]), b"isomiso2mp41"]);
    file.extend(words(&[media]));
    file.extend(b"mdat");
    let place = file.len() as u32;
    for picture in pictures {
        file.extend(picture);
    }
    file.extend(movie(&sizes, place, size));
    Ok(file)
}

/// What is in the file: one track, whose pictures lie one after the other from `place` on.
fn movie(sizes: &[u32], place: u32, size: Size) -> Vec<u8> {
    let count = sizes.len() as u32;
    let Size { width, height } = size;
    let table = [
        boxed(*b"stsd", &[&words(&[0, 1]), &entry(sizes, size)]),
        // Every picture is shown for one unit of time.
        boxed(*b"stts", &[&words(&[0, 1, count, 1])]),
        boxed(*b"stsc", &[&words(&[0, 1, 1, count, 1])]),
        boxed(*b"stsz", &[&words(&[0, 0, count]), &words(sizes)]),
        boxed(*b"stco", &[&words(&[0, 1, place])]),
    ];
    let here = boxed(*b"url ", &[&words(&[1])]);
    let information = [
        boxed(*b"vmhd", &[&words(&[1, 0, 0])]),
        boxed(*b"dinf", &[&boxed(*b"dref", &[&words(&[0, 1]), &here])]),
        boxed(*b"stbl", &[&table.concat()]),
    ];
    // The language is `und`: none.
    let media = [
        boxed(*b"mdhd", &[&words(&[0, 0, 0, RATE, count, 0x55c4_0000])]),
        boxed(*b"hdlr", &[&words(&[0, 0]), b"vide", &words(&[0, 0, 0]), b"\0"]),
        boxed(*b"minf", &[&information.concat()]),
    ];
    // Flags: the track is enabled, and part of what is shown.
    let start = words(&[3, 0, 0, 1, 0, count, 0, 0, 0, 0]);
    let track = [
        boxed(*b"tkhd", &[&start, &words(&MATRIX), &words(&[width << 16, height << 16])]),
        boxed(*b"mdia", &[&media.concat()]),
    ];
    let start = words(&[0, 0, 0, RATE, count, 0x1_0000, 0, 0, 0]);
    let header = boxed(*b"mvhd", &[&start, &words(&MATRIX), &words(&[0, 0, 0, 0, 0, 0, 2])]);
    boxed(*b"moov", &[&header, &boxed(*b"trak", &[&track.concat()])])
}

/// How pictures are encoded: as JPEG, which is type 0x6c of visual streams (ISO/IEC 14496-1).
fn entry(sizes: &[u32], size: Size) -> Vec<u8> {
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let [_, buffer @ ..] = largest.min(0xff_ffff).to_be_bytes();
    let bits = words(&[largest.saturating_mul(8 * RATE), 0]);
    let stream: [&[u8]; 5] = [&[3, 21, 0, 0, 0], &[4, 13, 0x6c, 0x11], &buffer, &bits, &[6, 1, 2]];
    let stream = boxed(*b"esds", &[&words(&[0]), &stream.concat()]);
    let sides = size.width << 16 | size.height;
    let start = words(&[0, 1, 0, 0, 0, 0, sides, 0x48_0000, 0x48_0000, 0]);
    // One picture in a sample, encoder without a name, 24 bits in a pixel, no table of colours.
    boxed(*b"mp4v", &[&start, &[0, 1], &[0; 32], &[0, 24, 0xff, 0xff], &stream])
}

/// A box: its size, its kind, what is in it.
fn boxed(kind: [u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let inside = parts.concat();
    let size = inside.len() as u32 + 8;
    [&size.to_be_bytes()[..], &kind, &inside].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::{Pixels, jpeg};
    use proptest::prelude::*;
    use std::io::Cursor;
    use zune_jpeg::JpegDecoder;

    /// What is in the first box of that kind, but for its first bytes.
    fn inside<'a>(file: &'a [u8], kind: &[u8], skip: usize) -> &'a [u8] {
        let mut rest = file;
        while !rest.is_empty() {
            let (this, later) = rest.split_at(word(rest, 0) as usize);
            if &this[4..8] == kind {
                return &this[8 + skip..];
            }
            rest = later;
        }
        panic!("no box {}", kind.escape_ascii());
    }

    /// The big-endian number at a place.
    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    fn words_of(bytes: &[u8]) -> Vec<u32> {
        bytes.chunks(4).map(|four| word(four, 0)).collect()
    }

    /// Pictures of one colour each, as files.
    fn pictures(size: Size, frames: usize) -> Vec<Vec<u8>> {
        let rgb = |frame: usize| [20 * frame as u8, 200, 90].repeat(size.pixels() as usize);
        (0..frames).map(|frame| jpeg(&Pixels { size, rgb: rgb(frame) }, 90).unwrap()).collect()
    }

    /// Reads the file as a player does, and gives its pictures.
    fn played(file: &[u8], size: Size, frames: u32) -> Vec<&[u8]> {
        assert_eq!(&inside(file, b"ftyp", 0)[..4], b"isom");
        let movie = inside(file, b"moov", 0);
        let times = inside(movie, b"mvhd", 12);
        assert_eq!((word(times, 0), word(times, 4)), (30, frames), "units in a second, length");
        let track = inside(movie, b"trak", 0);
        let header = inside(track, b"tkhd", 0);
        assert_eq!((word(header, 12), word(header, 20)), (1, frames), "track, length");
        assert_eq!((word(header, 76), word(header, 80)), (size.width << 16, size.height << 16));
        let media = inside(track, b"mdia", 0);
        assert_eq!(words_of(&inside(media, b"mdhd", 12)[..8]), [30, frames]);
        assert_eq!(&inside(media, b"hdlr", 8)[..4], b"vide");
        let information = inside(media, b"minf", 0);
        let here = inside(inside(information, b"dinf", 0), b"dref", 8);
        assert_eq!(word(inside(here, b"url ", 0), 0), 1, "in this file");
        let table = inside(information, b"stbl", 0);
        let entry = inside(inside(table, b"stsd", 8), b"mp4v", 0);
        assert_eq!(word(entry, 24), size.width << 16 | size.height);
        let stream = inside(&entry[78..], b"esds", 4);
        assert_eq!((stream[0], stream[5], &stream[7..9]), (3, 4, &[0x6c, 0x11][..]), "JPEG");
        let (outer, inner) = (usize::from(stream[1]), usize::from(stream[6]));
        assert_eq!((outer + 2, 7 + inner, stream[7 + inner]), (stream.len(), 20, 6));
        assert_eq!(words_of(inside(table, b"stts", 4)), [1, frames, 1]);
        assert_eq!(words_of(inside(table, b"stsc", 4)), [1, 1, frames, 1]);
        let lengths = words_of(inside(table, b"stsz", 4));
        assert_eq!(lengths[..2], [0, frames]);
        let places = words_of(inside(table, b"stco", 4));
        let mut rest = &file[places[1] as usize..];
        assert_eq!(rest.as_ptr(), inside(file, b"mdat", 0).as_ptr());
        let mut pictures = Vec::new();
        for length in &lengths[2..] {
            let (picture, later) = rest.split_at(*length as usize);
            pictures.push(picture);
            rest = later;
        }
        assert_eq!(&rest[4..8], b"moov", "nothing is left over");
        pictures
    }

    #[test]
    fn frames_are_the_pictures() {
        let size = Size { width: 20, height: 11 };
        let made = pictures(size, 3);
        let file = mp4(&made, size).unwrap();
        for (frame, picture) in played(&file, size, 3).into_iter().enumerate() {
            let mut decoder = JpegDecoder::new(Cursor::new(picture));
            let rgb = decoder.decode().unwrap();
            assert_eq!(decoder.dimensions(), Some((20, 11)));
            let want = [20 * frame as u8, 200, 90].repeat(220);
            let off = rgb.into_iter().zip(want).map(|(a, b)| a.abs_diff(b)).max();
            assert!(off <= Some(4), "{off:?}");
        }
        let part = video_of(&file);
        let url = part["video_url"]["url"].as_str().unwrap();
        let data = url.strip_prefix("data:video/mp4;base64,").unwrap();
        assert_eq!((part["type"].as_str(), STANDARD.decode(data)), (Some("video_url"), Ok(file)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_size_and_number_can_be_played(
            width in 1..=64_u32, height in 1..=64_u32, frames in 1..=8_usize,
        ) {
            let size = Size { width, height };
            let made = pictures(size, frames);
            let file = mp4(&made, size).unwrap();
            prop_assert_eq!(played(&file, size, frames as u32), made);
        }
    }
}
