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
    let mut file = boxed(b"ftyp", &[b"isom", &words(&[0x200]), b"isomiso2mp41"]);
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
        boxed(b"stsd", &[&words(&[0, 1]), &entry(sizes, size)]),
        // Every picture is shown for one unit of time.
        boxed(b"stts", &[&words(&[0, 1, count, 1])]),
        boxed(b"stsc", &[&words(&[0, 1, 1, count, 1])]),
        boxed(b"stsz", &[&words(&[0, 0, count]), &words(sizes)]),
        boxed(b"stco", &[&words(&[0, 1, place])]),
    ];
    let here = boxed(b"url ", &[&words(&[1])]);
    let information = [
        boxed(b"vmhd", &[&words(&[1, 0, 0])]),
        boxed(b"dinf", &[&boxed(b"dref", &[&words(&[0, 1]), &here])]),
        boxed(b"stbl", &[&table.concat()]),
    ];
    // The language is `und`: none.
    let media = [
        boxed(b"mdhd", &[&words(&[0, 0, 0, RATE, count, 0x55c4_0000])]),
        boxed(b"hdlr", &[&words(&[0, 0]), b"vide", &words(&[0, 0, 0]), b"\0"]),
        boxed(b"minf", &[&information.concat()]),
    ];
    // Flags: the track is enabled, and part of what is shown.
    let start = words(&[3, 0, 0, 1, 0, count, 0, 0, 0, 0]);
    let track = [
        boxed(b"tkhd", &[&start, &words(&MATRIX), &words(&[width << 16, height << 16])]),
        boxed(b"mdia", &[&media.concat()]),
    ];
    let start = words(&[0, 0, 0, RATE, count, 0x1_0000, 0, 0, 0]);
    let header = boxed(b"mvhd", &[&start, &words(&MATRIX), &words(&[0, 0, 0, 0, 0, 0, 2])]);
    boxed(b"moov", &[&header, &boxed(b"trak", &[&track.concat()])])
}

/// How pictures are encoded: as JPEG, which is type 0x6c of visual streams (ISO/IEC 14496-1).
fn entry(sizes: &[u32], size: Size) -> Vec<u8> {
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let [_, buffer @ ..] = largest.min(0xff_ffff).to_be_bytes();
    let bits = words(&[largest.saturating_mul(8 * RATE), 0]);
    let stream: [&[u8]; 5] = [&[3, 21, 0, 0, 0], &[4, 13, 0x6c, 0x11], &buffer, &bits, &[6, 1, 2]];
    let stream = boxed(b"esds", &[&words(&[0]), &stream.concat()]);
    let sides = size.width << 16 | size.height;
    let start = words(&[0, 1, 0, 0, 0, 0, sides, 0x48_0000, 0x48_0000, 0]);
    // One picture in a sample, encoder without a name, 24 bits in a pixel, no table of colours.
    boxed(b"mp4v", &[&start, &[0, 1], &[0; 32], &[0, 24, 0xff, 0xff], &stream])
}

/// A box: its size, its kind, what is in it.
fn boxed(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let inside = parts.concat();
    let size = inside.len() as u32 + 8;
    [&size.to_be_bytes()[..], kind, &inside].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}
