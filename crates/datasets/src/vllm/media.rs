//! Images, videos and audio as parts of a message.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use servebench_core::{Audio, Prompt};
use std::path::Path;

/// A user's message: the text, then the media.
pub(super) fn message(text: &str, media: Vec<Value>) -> Prompt {
    let text = json!({"type": "text", "text": text});
    let content: Vec<Value> = std::iter::once(text).chain(media).collect();
    Prompt::Messages(vec![json!({"role": "user", "content": content})])
}

/// The part for an image that is at an address.
pub(super) fn image_at(address: &str) -> Value {
    let known = ["http://", "https://", "file://", "data:image/"];
    json!({"type": "image_url", "image_url": {"url": as_url(address, &known)}})
}

/// The part for a video that is at an address.
pub(super) fn video_at(address: &str) -> Value {
    let known = ["http://", "https://", "file://"];
    json!({"type": "video_url", "video_url": {"url": as_url(address, &known)}})
}

/// The address, as that of a file where it does not begin as one of those known.
fn as_url(address: &str, known: &[&str]) -> String {
    let is_url = known.iter().any(|start| address.starts_with(start));
    if is_url { address.to_owned() } else { format!("file://{address}") }
}

/// The part for an image that is sent along, from its file.
pub(super) fn image_of(file: &[u8]) -> Result<Value, String> {
    let kind = match file {
        [0x89, b'P', b'N', b'G', ..] => "png",
        [0xff, 0xd8, ..] => "jpeg",
        [b'G', b'I', b'F', b'8', ..] => "gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "webp",
        _ => return Err("not a PNG, JPEG, GIF or WebP image".to_owned()),
    };
    let url = format!("data:image/{kind};base64,{}", STANDARD.encode(file));
    Ok(json!({"type": "image_url", "image_url": {"url": url}}))
}

/// The file of an image at an address that is not on the web.
pub(super) fn read_image(address: &str) -> Result<Value, String> {
    if address.starts_with("http://") || address.starts_with("https://") {
        return Err(format!(
            "{address} would have to be fetched: give a file, or leave \
             --custom-ensure-client-side-data out and let the server fetch it"
        ));
    }
    let path = Path::new(address.strip_prefix("file://").unwrap_or(address));
    let file = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    image_of(&file).map_err(|problem| format!("{}: {problem}", path.display()))
}

/// The part for audio that is sent along, from its file.
pub(super) fn audio_of(file: &[u8]) -> Result<Value, String> {
    let format = match file {
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "wav",
        [b'f', b'L', b'a', b'C', ..] => "flac",
        [b'O', b'g', b'g', b'S', ..] => "ogg",
        [b'I', b'D', b'3', ..] => "mp3",
        [0xff, second, ..] if second & 0xe0 == 0xe0 => "mp3",
        _ => return Err("neither WAV, FLAC, Ogg nor MP3".to_owned()),
    };
    Ok(json!({
        "type": "input_audio", "input_audio": {"data": STANDARD.encode(file), "format": format},
    }))
}

/// A recording as a part of a message.
#[derive(Debug, PartialEq)]
pub(super) struct Recording {
    /// The part.
    pub(super) part: Value,
    /// How long it plays, where its file tells.
    pub(super) seconds: Option<f64>,
}

impl Recording {
    /// Of the bytes of a file.
    pub(super) fn of(file: &[u8]) -> Result<Self, String> {
        Ok(Self { part: audio_of(file)?, seconds: Audio::seconds_of(file) })
    }

    /// Of a file.
    pub(super) fn read(path: &str) -> Result<Self, String> {
        let path = path.strip_prefix("file://").unwrap_or(path);
        let file = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        Self::of(&file).map_err(|problem| format!("{path}: {problem}"))
    }
}

/// A WAV file of 16-bit samples: `frames` of one value from -1 to 1 for each channel.
pub(super) fn wav(frames: &[f64], channels: u16, rate: u32) -> Vec<u8> {
    let size = u32::try_from(2 * frames.len()).unwrap_or(u32::MAX - 36);
    let mut file = Vec::with_capacity(44 + 2 * frames.len());
    file.extend(b"RIFF");
    file.extend((36 + size).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    file.extend(1_u16.to_le_bytes());
    file.extend(channels.to_le_bytes());
    file.extend(rate.to_le_bytes());
    file.extend(rate.saturating_mul(2 * u32::from(channels)).to_le_bytes());
    file.extend((2 * channels).to_le_bytes());
    file.extend(16_u16.to_le_bytes());
    file.extend(b"data");
    file.extend(size.to_le_bytes());
    for value in frames {
        // Rounded down, as libsndfile does it; the conversion keeps to the range.
        file.extend(((value * 32_768.0).floor() as i16).to_le_bytes());
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_urls() {
        let url = |part: &Value, kind: &str| part[kind]["url"].as_str().map(str::to_owned);
        let image = |address| url(&image_at(address), "image_url").unwrap();
        assert_eq!(image("/a/b.png"), "file:///a/b.png");
        assert_eq!(image("data:image/png;base64,AA"), "data:image/png;base64,AA");
        assert_eq!(url(&video_at("data:video"), "video_url").unwrap(), "file://data:video");
    }

    #[test]
    fn files_are_known_by_their_first_bytes() {
        let png = image_of(b"\x89PNG\r\n").unwrap();
        assert_eq!(png["image_url"]["url"], "data:image/png;base64,iVBORw0K");
        assert!(image_of(b"text").is_err() && audio_of(b"text").is_err() && image_of(b"").is_err());
        let part = audio_of(&wav(&[0.0], 1, 8000)).unwrap();
        assert_eq!(part["input_audio"]["format"], "wav");
        assert!(read_image("https://example.com/x.png").is_err());
    }

    #[test]
    fn samples_become_a_file() {
        let file = wav(&[0.0, 1.0, -1.0, 2.0], 2, 16_000);
        assert_eq!(file.len(), 52);
        assert_eq!(file[4..8], 44_u32.to_le_bytes());
        assert_eq!(file[22..28], [2, 0, 0x80, 0x3e, 0, 0]);
        assert_eq!(file[44..], [0, 0, 0xff, 0x7f, 0, 0x80, 0xff, 0x7f]);
        assert_eq!(wav(&[-0.1, 0.1], 1, 8000)[44..], [0x33, 0xf3, 0xcc, 0x0c], "-3277 and 3276");
    }
}
