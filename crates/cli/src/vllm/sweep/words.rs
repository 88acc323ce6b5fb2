//! Command lines as text and as words, and values as Python writes them.

use crate::Failure;
use serde_json::Value;

/// Splits a command line as a POSIX shell does, without any expansion.
///
/// # Errors
///
/// A usage failure when a quotation is not closed or a backslash ends the line.
pub(in crate::vllm) fn split(line: &str, flag: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    let unfinished = |what: &str| Failure::usage(format!("{flag}: {what} in `{line}`"));
    while let Some(letter) = letters.next() {
        match letter {
            '\'' => loop {
                let letter = letters.next().ok_or_else(|| unfinished("a ' is not closed"))?;
                let word = word.get_or_insert_default();
                if letter == '\'' {
                    break;
                }
                word.push(letter);
            },
            '"' => loop {
                let letter = letters.next().ok_or_else(|| unfinished("a \" is not closed"))?;
                let word = word.get_or_insert_default();
                match letter {
                    '"' => break,
                    '\\' => {
                        let next =
                            letters.next().ok_or_else(|| unfinished("a \" is not closed"))?;
                        if !matches!(next, '"' | '\\') {
                            word.push('\\');
                        }
                        word.push(next);
                    }
                    other => word.push(other),
                }
            },
            '\\' => {
                let next =
                    letters.next().ok_or_else(|| unfinished("nothing follows the last \\"))?;
                word.get_or_insert_default().push(next);
            }
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The words as one line that a shell reads as these words.
pub(in crate::vllm) fn quoted(words: &[String]) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_@%+=:,./-".contains(letter);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\"'\"'"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A value as Python's `str` writes it.
pub(super) fn python_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => python_repr(other),
    }
}

/// A value as Python's `repr` writes it.
pub(super) fn python_repr(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Number(number) => match number.as_f64() {
            Some(double) if number.is_f64() => python_float(double),
            _ => number.to_string(),
        },
        Value::String(text) => text_repr(text),
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(python_repr).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(map) => {
            let pair = |(key, value): (&String, &Value)| {
                format!("{}: {}", text_repr(key), python_repr(value))
            };
            let pairs: Vec<String> = map.iter().map(pair).collect();
            format!("{{{}}}", pairs.join(", "))
        }
    }
}

/// The words as Python writes a list of them.
pub(super) fn list_repr(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| text_repr(word)).collect();
    format!("[{}]", words.join(", "))
}

/// The shortest digits, with an exponent below 1e-4 and from 1e16 on.
fn python_float(number: f64) -> String {
    let size = number.abs();
    if size == 0.0 || (1e-4..1e16).contains(&size) {
        return format!("{number:?}");
    }
    let text = format!("{number:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

fn text_repr(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut repr = String::from(quote);
    for letter in text.chars() {
        match letter {
            '\n' => repr.push_str("\\n"),
            '\r' => repr.push_str("\\r"),
            '\t' => repr.push_str("\\t"),
            '\\' => repr.push_str("\\\\"),
            letter if letter == quote => repr.extend(['\\', letter]),
            letter if letter.is_ascii_control() => {
                repr.extend(format!("\\x{:02x}", u32::from(letter)).chars());
            }
            letter => repr.push(letter),
        }
    }
    repr.push(quote);
    repr
}

/// A value as Python's `json.dumps` writes it: blanks after commas and colons, ASCII only.
pub(super) fn python_json(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(python_json).collect();
            format!("[{}]", values.join(", "))
        }
        Value::Object(map) => {
            let pair = |(key, value): (&String, &Value)| {
                format!("{}: {}", ascii_json(key), python_json(value))
            };
            let pairs: Vec<String> = map.iter().map(pair).collect();
            format!("{{{}}}", pairs.join(", "))
        }
        Value::String(text) => ascii_json(text),
        Value::Number(_) => python_repr(value),
        other => other.to_string(),
    }
}

fn ascii_json(text: &str) -> String {
    let mut json = String::new();
    for letter in Value::from(text).to_string().chars() {
        if letter.is_ascii() {
            json.push(letter);
        } else {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                json.extend(format!("\\u{unit:04x}").chars());
            }
        }
    }
    json
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn lines_are_split_as_a_shell_does() {
        let words = split(r#"a 'b c'd "e \" \n" \  ''"#, "--x").expect("words");
        assert_eq!(words, ["a", "b cd", "e \" \\n", " ", ""]);
        for wrong in ["'a", "\"a", "\"a\\", "a\\"] {
            assert!(split(wrong, "--x").expect_err("a failure").to_string().contains("--x"));
        }
    }

    #[test]
    fn values_are_written_as_python_does() {
        let value = json!({"a": [1, 2.0, 1e-7, null, true], "b": "it's", "c": "é\n"});
        assert_eq!(
            python_repr(&value),
            "{'a': [1, 2.0, 1e-07, None, True], 'b': \"it's\", 'c': 'é\\n'}"
        );
        assert_eq!(
            python_json(&value),
            "{\"a\": [1, 2.0, 1e-07, null, true], \"b\": \"it's\", \"c\": \"\\u00e9\\n\"}"
        );
    }

    proptest! {
        #[test]
        fn what_is_quoted_is_split_again(words in prop::collection::vec("\\PC*", 0..6)) {
            prop_assert_eq!(split(&quoted(&words), "--x").expect("words"), words);
        }

        #[test]
        fn any_line_is_split_or_refused(line in any::<String>()) {
            drop(split(&line, "--x"));
        }

        #[test]
        fn json_stays_the_same_value(text in any::<String>(), number in any::<i64>()) {
            let value = json!({ text.clone(): [text, number] });
            prop_assert_eq!(serde_json::from_str::<Value>(&python_json(&value)).expect("JSON"), value);
        }
    }
}
