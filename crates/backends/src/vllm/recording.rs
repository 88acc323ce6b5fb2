//! Recordings that datasets hold as parts of a message, as the files that they are.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use servebench_core::Audio;

/// The recording of an `input_audio` part; `None` for any other part.
pub(super) fn recording(part: &Value) -> Option<Audio> {
    let audio = part.get("input_audio")?;
    let format = audio.get("format")?.as_str()?;
    let file = STANDARD.decode(audio.get("data")?.as_str()?).ok()?;
    let kind = if format == "mp3" { "mpeg" } else { format };
    Some(Audio {
        name: format!("audio.{format}").into(),
        kind: Some(format!("audio/{kind}").into()),
        seconds: Audio::seconds_of(&file).unwrap_or(0.0),
        bytes: file.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn part(file: &[u8], format: &str) -> Value {
        let data = STANDARD.encode(file);
        json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
    }

    #[test]
    fn a_part_becomes_a_file_that_plays_for_a_time() {
        let mut flac = b"fLaC\0\0\0\x22\x10\0\x10\0\0\0\0\0\0\0".to_vec();
        flac.extend(((0x3e80_u64 << 44) | (15 << 36) | 0x9c40).to_be_bytes());
        let audio = recording(&part(&flac, "flac")).expect("a recording");
        assert_eq!((&*audio.name, audio.kind.as_deref()), ("audio.flac", Some("audio/flac")));
        assert_eq!(&*audio.bytes, &*flac);
        assert!((audio.seconds - 2.5).abs() < 1e-9, "{}", audio.seconds);
        let mp3 = recording(&part(b"ID3", "mp3")).expect("a recording");
        assert_eq!(mp3.kind.as_deref(), Some("audio/mpeg"));
        assert!(mp3.seconds.abs() < 1e-9, "{}", mp3.seconds);
    }

    #[test]
    fn what_is_no_recording_is_none() {
        for part in [
            json!({"type": "text", "text": "a"}),
            json!({"input_audio": {"data": "!", "format": "wav"}}),
            json!({"input_audio": {"data": ""}}),
        ] {
            assert_eq!(recording(&part), None, "{part}");
        }
    }
}
