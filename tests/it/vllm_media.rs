//! Prompts with media, and forms, as `tests/golden/vllm_media.py` keeps them: media by what does not depend on an
//! encoder.

use crate::parity::capture::Call;
use crate::support::root;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use servebench_core::Audio;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// `sent` as the Python tool's is kept, which is `want`: what it may hold in another form, because it was encoded
/// anew, is made comparable.
pub(crate) fn kept(sent: Value, want: &Value) -> Value {
    match sent {
        Value::Array(items) => {
            items.into_iter().enumerate().map(|(at, item)| kept(item, &want[at])).collect()
        }
        Value::Object(fields) if fields.get("type") == Some(&json!("input_audio")) => {
            let audio = &fields["input_audio"];
            let file = STANDARD.decode(audio["data"].as_str().expect("a file")).expect("Base64");
            let want = &want["input_audio"];
            let data = sound(&file, &want["data"], true);
            // Written anew, everything is WAV.
            let is_wav = file.starts_with(b"RIFF");
            let format = if is_wav { audio["format"].clone() } else { want["format"].clone() };
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
        Value::Object(fields) => {
            let each = |(key, value)| {
                let value = kept(value, &want[&key]);
                (key, value)
            };
            fields.into_iter().map(each).collect()
        }
        Value::String(text) => Value::String(text_of(&text)),
        other => other,
    }
}

/// A text with a file in it by what the file shows; any other with its paths as places.
fn text_of(text: &str) -> String {
    let file = |start: &str| {
        let data = text.strip_prefix(start)?;
        STANDARD.decode(data).ok()
    };
    if let Some(file) = file("data:image/jpeg;base64,") {
        let (width, height) = jpeg_size(&file);
        return format!("data:image/jpeg;{width}x{height}");
    }
    // Encoded anew, every picture of a table is JPEG.
    if let Some(file) = file("data:image/png;base64,").filter(|file| file.len() > 32) {
        return format!("data:image/jpeg;{}x{}", word(&file, 16), word(&file, 20));
    }
    if let Some(file) = file("data:video/mp4;base64,") {
        return format!("data:video/mp4;{}", film(&file));
    }
    let fixtures = root().join("tests/fixtures");
    text.replace(fixtures.to_str().expect("UTF-8"), "{FIXTURES}")
}

/// How long a recording plays, and its hash; that of `want` where it `is_anew`, and ours is no WAV file.
fn sound(file: &[u8], want: &Value, is_anew: bool) -> Value {
    let seconds = Audio::seconds_of(file);
    let hash = if is_anew && !file.starts_with(b"RIFF") {
        want["sha256"].clone()
    } else {
        let mut hash = String::new();
        for byte in Sha256::digest(file) {
            let _ = write!(hash, "{byte:02x}");
        }
        Value::String(hash)
    };
    json!({"seconds": seconds, "sha256": hash})
}

/// The fields of a form by their names, and the output's length that is one of them.
pub(crate) fn form(call: &Call, want: &Value) -> (Value, Value) {
    let kind = call.headers.get("content-type").expect("a type");
    let boundary = kind.split_once("boundary=").expect("a boundary").1;
    let mut fields = Map::new();
    for part in split(&call.raw, format!("--{boundary}").as_bytes()) {
        let Some(end) = find(part, b"\r\n\r\n") else { continue };
        let (head, value) = (String::from_utf8_lossy(&part[..end]), &part[end + 4..]);
        let value = value.strip_suffix(b"\r\n").expect("the end of a field");
        let name = head.split_once("name=\"").expect("a name").1;
        let name = name.split('"').next().unwrap_or_default().to_owned();
        let value = if head.contains("filename=") {
            let want = &want["form"]["file"];
            let mut field = sound(value, want, want["filename"] == "audio.wav");
            // The file's name is said in the book.
            field["name"] = json!(name);
            field["filename"] = want["filename"].clone();
            field
        } else {
            // As Python writes truth.
            let text = String::from_utf8_lossy(value);
            json!(text.replace("true", "True"))
        };
        fields.insert(name, value);
    }
    let length = fields.shift_remove("max_completion_tokens").expect("a length");
    let length: u32 = length.as_str().and_then(|text| text.parse().ok()).expect("a number");
    (Value::Object(fields), json!(length))
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn split<'a>(mut bytes: &'a [u8], by: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = find(bytes, by) {
        parts.push(&bytes[..at]);
        bytes = &bytes[at + by.len()..];
    }
    parts
}

/// Width and height from the frame header of a JPEG file.
fn jpeg_size(file: &[u8]) -> (u16, u16) {
    let mut at = 2;
    loop {
        let (kind, length) = (file[at + 1], u16::from_be_bytes([file[at + 2], file[at + 3]]));
        if matches!(kind, 0xc0..=0xc2) {
            let side = |at: usize| u16::from_be_bytes([file[at], file[at + 1]]);
            return (side(at + 7), side(at + 5));
        }
        at += 2 + usize::from(length);
    }
}

/// Size, pictures and pictures in a second of an MP4 file with one track.
fn film(file: &[u8]) -> String {
    // Where the fields of the only box of that name begin.
    let inside = |name: &[u8]| find(file, name).expect("a box") + name.len();
    let (track, media, sizes) = (inside(b"tkhd"), inside(b"mdhd"), inside(b"stsz"));
    let side = |at: usize| word(file, at) >> 16;
    let (count, units) = (word(file, sizes + 8), word(file, media + 12));
    let (width, height) = (side(track + 76), side(track + 80));
    let length = word(file, media + 16);
    format!("{width}x{height},{count} at {}", count * units / length)
}

/// The big-endian number at a place.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}
