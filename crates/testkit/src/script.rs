//! One server reply, written down line by line.

use serde_json::{Value, json};
use std::str::FromStr;

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyEnd {
    /// As HTTP says it should (`END`).
    Proper,
    /// The connection closes before the body is complete (`CUT`).
    Cut,
    /// The connection is reset (`RST`).
    Reset,
    /// The connection stays open and silent (`HANG`).
    Hang,
}

/// Bytes that the server writes at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// When, in milliseconds from the arrival of the request.
    pub ms: u64,
    /// What.
    pub bytes: Vec<u8>,
}

/// One server reply. Parsed from lines `<ms> MACRO args…`, where the arguments are JSON; two spaces and
/// `#` begin a remark.
///
/// | macro | writes |
/// |---|---|
/// | `ROLE`, `C s`, `R s`, `RV s`, `CPAD n s`, `FIN r` | chat chunks: role, content, `reasoning_content`, `reasoning`, repeated content, finish reason |
/// | `T s`, `TFIN r` | text chunks: text, finish reason |
/// | `U p c` | a usage chunk without choices |
/// | `G i n s [r]` | a native frame: index, cumulative count, text, finish reason |
/// | `D value`, `DONE` | a data event, `[DONE]` |
/// | `RAW s`, `RAWHEX h`, `BODY s` | these bytes |
/// | `EOL s`, `NOSPACE` | from here on, this line end, no space after `data:` |
/// | `HTTP status type` | the head |
/// | `END`, `CUT`, `RST`, `HANG` | see [`BodyEnd`] |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// HTTP status.
    pub status: u16,
    /// Content type.
    pub content_type: String,
    /// The writes, in order; those of the same millisecond are one.
    pub writes: Vec<Write>,
    /// When the body ends, in milliseconds, and how.
    pub end: Option<(u64, BodyEnd)>,
}

/// A script that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the script: {problem}")]
#[non_exhaustive]
pub struct ScriptError {
    /// Its line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: String,
}

impl Default for Script {
    /// An empty event stream.
    fn default() -> Self {
        Self {
            status: 200,
            content_type: "text/event-stream".to_owned(),
            writes: Vec::new(),
            end: None,
        }
    }
}

impl Script {
    /// True for a streamed reply, false for one with a plain body.
    pub fn streams(&self) -> bool {
        self.status == 200 && self.content_type.starts_with("text/event-stream")
    }

    /// The whole body.
    pub fn body(&self) -> Vec<u8> {
        self.writes.iter().flat_map(|write| write.bytes.iter().copied()).collect()
    }

    /// The same script with each write cut after the bytes for which `cut` says so, the parts 1 ms apart
    /// and everything behind them later by as much.
    #[must_use]
    pub fn recut(&self, mut cut: impl FnMut() -> bool) -> Self {
        let mut later = 0;
        let mut writes = Vec::new();
        for write in &self.writes {
            let mut part = Vec::new();
            for (place, &byte) in write.bytes.iter().enumerate() {
                if place > 0 && cut() {
                    let bytes = std::mem::take(&mut part);
                    writes.push(Write { ms: write.ms + later, bytes });
                    later += 1;
                }
                part.push(byte);
            }
            writes.push(Write { ms: write.ms + later, bytes: part });
        }
        let end = self.end.map(|(ms, end)| (ms + later, end));
        Self { writes, end, ..self.clone() }
    }

    fn put(&mut self, ms: u64, bytes: &[u8]) {
        match self.writes.last_mut() {
            Some(write) if write.ms == ms => write.bytes.extend_from_slice(bytes),
            _ => self.writes.push(Write { ms, bytes: bytes.to_vec() }),
        }
    }
}

impl FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let mut script = Self::default();
        let mut writer = Writer { line_end: "\n".to_owned(), space: " " };
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split("  #").next().unwrap_or_default().trim_end();
            if !line.is_empty() {
                writer
                    .take(line, &mut script)
                    .map_err(|problem| ScriptError { line: number, problem })?;
            }
        }
        Ok(script)
    }
}

/// How frames are written from here on.
struct Writer {
    line_end: String,
    space: &'static str,
}

impl Writer {
    fn take(&mut self, line: &str, script: &mut Script) -> Result<(), String> {
        let mut words = line.splitn(3, ' ');
        let ms = words.next().and_then(|ms| ms.parse().ok()).ok_or("no time in milliseconds")?;
        let name = words.next().ok_or("no macro")?;
        let arguments = arguments(words.next().unwrap_or_default())?;
        let value = |place: usize| arguments.get(place).ok_or("an argument is missing");
        let text = |place| value(place)?.as_str().ok_or("an argument is no string");
        let number = |place| value(place)?.as_u64().ok_or("an argument is no number");
        let frame = match name {
            "ROLE" => chat(&json!({"role": "assistant", "content": ""}), &Value::Null),
            "C" => chat(&json!({"content": value(0)?}), &Value::Null),
            "CPAD" => {
                let content = text(1)?.repeat(usize::try_from(number(0)?).unwrap_or(0));
                chat(&json!({"content": content}), &Value::Null)
            }
            "R" => chat(&json!({"reasoning_content": value(0)?}), &Value::Null),
            "RV" => chat(&json!({"reasoning": value(0)?}), &Value::Null),
            "FIN" => chat(&json!({}), value(0)?),
            "T" => completion(text(0)?, &Value::Null),
            "TFIN" => completion("", value(0)?),
            "U" => usage(number(0)?, number(1)?),
            "G" => native(number(0)?, number(1)?, text(2)?, arguments.get(3)),
            "D" => value(0)?.clone(),
            "DONE" => return self.put(ms, "[DONE]", script),
            "RAW" | "BODY" => return put_raw(ms, text(0)?.as_bytes(), script),
            "RAWHEX" => return put_raw(ms, &bytes_of(text(0)?)?, script),
            "EOL" => {
                text(0)?.clone_into(&mut self.line_end);
                return Ok(());
            }
            "NOSPACE" => {
                self.space = "";
                return Ok(());
            }
            "HTTP" => {
                script.status = u16::try_from(number(0)?).map_err(|error| error.to_string())?;
                text(1)?.clone_into(&mut script.content_type);
                return Ok(());
            }
            "END" | "CUT" | "RST" | "HANG" => {
                let end = match name {
                    "END" => BodyEnd::Proper,
                    "CUT" => BodyEnd::Cut,
                    "RST" => BodyEnd::Reset,
                    _ => BodyEnd::Hang,
                };
                script.end = Some((ms, end));
                return Ok(());
            }
            other => return Err(format!("unknown macro `{other}`")),
        };
        self.put(ms, &frame.to_string(), script)
    }

    #[expect(clippy::unnecessary_wraps, reason = "every line ends in a Result")]
    fn put(&self, ms: u64, data: &str, script: &mut Script) -> Result<(), String> {
        let Self { line_end, space } = self;
        script.put(ms, format!("data:{space}{data}{line_end}{line_end}").as_bytes());
        Ok(())
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every line ends in a Result")]
fn put_raw(ms: u64, bytes: &[u8], script: &mut Script) -> Result<(), String> {
    script.put(ms, bytes);
    Ok(())
}

fn arguments(text: &str) -> Result<Vec<Value>, String> {
    let values = serde_json::Deserializer::from_str(text).into_iter();
    values.collect::<Result<_, _>>().map_err(|error| format!("arguments: {error}"))
}

fn bytes_of(hex: &str) -> Result<Vec<u8>, String> {
    let digit = |byte: u8| char::from(byte).to_digit(16).ok_or("not hexadecimal");
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| match pair {
        [high, low] => Ok((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => Err("an odd number of digits"),
    };
    pairs.map(byte).collect::<Result<_, _>>().map_err(str::to_owned)
}

fn chat(delta: &Value, finish: &Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    json!({"id": "x", "object": "chat.completion.chunk", "model": "m", "choices": [choice]})
}

fn completion(text: &str, finish: &Value) -> Value {
    let choice = json!({"index": 0, "text": text, "finish_reason": finish});
    json!({"id": "x", "object": "text_completion", "model": "m", "choices": [choice]})
}

fn usage(prompt: u64, completion: u64) -> Value {
    json!({"id": "x", "model": "m", "choices": [], "usage": {
        "prompt_tokens": prompt, "completion_tokens": completion,
        "total_tokens": prompt + completion}})
}

fn native(index: u64, count: u64, text: &str, finish: Option<&Value>) -> Value {
    let finish = match finish {
        Some(Value::String(reason)) => json!({"type": reason}),
        other => other.cloned().unwrap_or_default(),
    };
    json!({"index": index, "text": text, "meta_info": {
        "id": "x", "prompt_tokens": 8, "completion_tokens": count, "finish_reason": finish}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_one_millisecond_are_one_write() {
        let script: Script = "0 EOL \"\\r\\n\"\n5 RAWHEX \"C3A9\"\n5 DONE  # a remark\n7 RST"
            .parse()
            .expect("a script");
        let want = Write { ms: 5, bytes: "édata: [DONE]\r\n\r\n".into() };
        assert_eq!(script.writes, [want]);
        assert_eq!(script.end, Some((7, BodyEnd::Reset)));
        assert!(script.streams());
    }

    #[test]
    fn mistakes_are_told_with_their_line() {
        for (text, want) in [
            ("5 DONE\nx DONE", "line 2 of the script: no time in milliseconds"),
            ("5 NONSENSE", "line 1 of the script: unknown macro `NONSENSE`"),
            ("5 T", "line 1 of the script: an argument is missing"),
            ("5 RAWHEX \"ABC\"", "line 1 of the script: an odd number of digits"),
        ] {
            assert_eq!(text.parse::<Script>().expect_err(text).to_string(), want);
        }
    }

    #[test]
    fn recutting_keeps_the_bytes() {
        let script: Script = "1 C \"abc\"\n2 DONE\n3 END".parse().expect("a script");
        let recut = script.recut(|| true);
        assert_eq!(recut.body(), script.body());
        assert_eq!(recut.writes.len(), script.body().len());
        assert_eq!(recut.end, Some((3 + script.body().len() as u64 - 2, BodyEnd::Proper)));
    }
}
