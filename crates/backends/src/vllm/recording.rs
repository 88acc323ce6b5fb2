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
        seconds: wav_seconds(&file).or_else(|| flac_seconds(&file)).unwrap_or(0.0),
        bytes: file.into(),
    })
}

/// How long a WAV file plays: the size of its data by the bytes of a second.
fn wav_seconds(file: &[u8]) -> Option<f64> {
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

/// How long a FLAC file plays: the samples by the rate, both in the block that it begins with (RFC 9639,
/// 8.2).
fn flac_seconds(file: &[u8]) -> Option<f64> {
    let info = file.strip_prefix(b"fLaC")?.get(14..22)?;
    // Rate in 20 bits, channels in 3, bits of a sample in 5, samples in 36.
    let bits = u64::from_be_bytes(info.try_into().ok()?);
    let (rate, samples) = (bits >> 44, bits & ((1 << 36) - 1));
    (rate > 0).then(|| samples as f64 / rate as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// A file of one channel, 8000 samples of 16 bits a second, with a chunk of odd size before its data.
    fn wav(data: usize) -> Vec<u8> {
        let mut file =
            b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0"
                .to_vec();
        file.extend(b"LIST\x03\0\0\0abc\0data");
        file.extend(u32::try_from(data).expect("small").to_le_bytes());
        file.resize(file.len() + data, 1);
        file
    }

    fn millis(audio: &Audio) -> u64 {
        (audio.seconds * 1e3).round() as u64
    }

    fn part(file: &[u8], format: &str) -> Value {
        let data = STANDARD.encode(file);
        json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
    }

    #[test]
    fn a_part_becomes_a_file_that_plays_for_a_time() {
        let file = wav(4000);
        let audio = recording(&part(&file, "wav")).expect("a recording");
        assert_eq!((&*audio.name, audio.kind.as_deref()), ("audio.wav", Some("audio/wav")));
        assert_eq!((&*audio.bytes, millis(&audio)), (&*file, 250));
        // The size is more than there is.
        let cut = recording(&part(&file[..file.len() - 2000], "wav")).expect("a recording");
        assert_eq!(millis(&cut), 125);
        let mut flac = b"fLaC\0\0\0\x22\x10\0\x10\0\0\0\0\0\0\0".to_vec();
        flac.extend(((0x3e80_u64 << 44) | (15 << 36) | 0x9c40).to_be_bytes());
        assert_eq!(recording(&part(&flac, "flac")).map(|audio| millis(&audio)), Some(2500));
        let mp3 = recording(&part(b"ID3", "mp3")).expect("a recording");
        assert_eq!((mp3.kind.as_deref(), millis(&mp3)), (Some("audio/mpeg"), 0));
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

    proptest! {
        #[test]
        fn no_bytes_panic(
            start in prop::sample::select(vec![&b""[..], b"RIFF\0\0\0\0WAVE", b"RIFF\0\0\0\0WAVEdata", b"fLaC"]),
            bytes in prop::collection::vec(any::<u8>(), 0..60),
        ) {
            let file = [start, &bytes].concat();
            let audio = recording(&part(&file, "wav")).expect("a recording");
            prop_assert!(audio.seconds.is_finite() && audio.seconds >= 0.0);
        }
    }
}
