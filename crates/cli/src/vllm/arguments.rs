//! Command lines as vLLM's commands take them, put into the form that argparse would.
//!
//! Underscores in flags become dashes, the entries of `--config FILE` go before what was typed, and
//! `--flag.a.b VALUE` becomes the JSON of `--flag`. What is left is what all our commands take:
//! abbreviations, repeats that replace.

use crate::{Code, Failure, Io};
use serde_json::{Map, Number, Value};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::Path;

/// Puts `arguments` (without program and subcommand) into plain form; `flags` are those there are.
///
/// # Errors
///
/// A `--config` file that cannot be read, a dotted flag without a value.
pub fn plain(arguments: Vec<OsString>, flags: &[&str], io: &Io) -> Result<Vec<OsString>, Failure> {
    let mut words: Vec<OsString> = arguments.into_iter().map(with_dashes).collect();
    for flag in repeated(&words) {
        io.say(format_args!("warning: {flag} is given more than once: the last one counts"));
    }
    if let Some(path) = take_config(&mut words)? {
        let mut all = config_words(Path::new(&path), flags)?;
        all.extend(words);
        words = all;
    }
    dotted(words)
}

/// The flags that are there more than once, each of them once. What makes JSON is not among them.
fn repeated(words: &[OsString]) -> Vec<&str> {
    let mut seen = HashMap::new();
    let mut repeated = Vec::new();
    for word in words.iter().filter_map(|word| word.to_str()) {
        let name = word.split('=').next().unwrap_or(word);
        if name.starts_with("--") && !name.contains('.') {
            let count = seen.entry(name).or_insert(0_u32);
            *count += 1;
            if *count == 2 {
                repeated.push(name);
            }
        }
    }
    repeated
}

/// In a flag, underscores before the first `.` or `=` become dashes.
fn with_dashes(word: OsString) -> OsString {
    let Some(text) = word.to_str().filter(|text| text.starts_with("--")) else { return word };
    let end = text.find(['.', '=']).unwrap_or(text.len());
    format!("{}{}", text[..end].replace('_', "-"), &text[end..]).into()
}

/// Removes `--config FILE` and gives the file.
fn take_config(words: &mut Vec<OsString>) -> Result<Option<OsString>, Failure> {
    let is = |word: &OsString| {
        word.to_str().is_some_and(|text| text == "--config" || text.starts_with("--config="))
    };
    let mut file = None;
    while let Some(at) = words.iter().position(is) {
        let word = words.remove(at);
        file = match word.to_str().and_then(|text| text.split_once('=')) {
            Some((_, path)) => Some(path.into()),
            None if at < words.len() => Some(words.remove(at)),
            None => return Err(Failure::usage("--config needs a file")),
        };
    }
    Ok(file)
}

/// The entries of a YAML file as words of a command line.
fn config_words(path: &Path, flags: &[&str]) -> Result<Vec<OsString>, Failure> {
    let wrong = |error: anyhow::Error| {
        let context = format!("--config {}", path.display());
        Failure::new(Code::Usage, error.context(context))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.into()))?;
    let entries = entries(&text).map_err(|error| wrong(anyhow::anyhow!("{error}")))?;
    let mut words: Vec<OsString> = Vec::new();
    for (key, value) in entries {
        let flag = format!("--{}", key.replace('_', "-"));
        match value {
            Value::Bool(true) => words.push(flag.into()),
            Value::Bool(false) => {
                let opposite = format!("--no-{}", &flag[2..]);
                if flags.contains(&opposite.as_str()) {
                    words.push(opposite.into());
                }
            }
            Value::Array(items) if !items.is_empty() => {
                words.push(flag.into());
                words.extend(items.iter().map(|item| word_of(item).into()));
            }
            Value::Array(_) | Value::Null => {}
            value => words.extend([flag.into(), word_of(&value).into()]),
        }
    }
    Ok(words)
}

/// The top level of a YAML document, which must be a mapping.
pub(crate) fn entries(yaml: &str) -> Result<Map<String, Value>, String> {
    match serde_saphyr::from_str::<Value>(yaml) {
        Ok(Value::Object(entries)) => Ok(entries),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => Err("the file is not a mapping of flags to values".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A value as it would be typed.
fn word_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "true".to_owned(),
        other => other.to_string(),
    }
}

/// Collects `--flag.a.b VALUE` and `--flag.list+ VALUES` into one `--flag JSON` each, at the end.
fn dotted(words: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
    let mut plain = Vec::with_capacity(words.len());
    let mut objects: BTreeMap<String, Value> = BTreeMap::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let Some((flag, path, value)) = word.to_str().and_then(dots) else {
            plain.push(word);
            continue;
        };
        let value = match value {
            Some(value) => value,
            None => words
                .next()
                .and_then(|word| word.into_string().ok())
                .ok_or_else(|| Failure::usage(format!("{flag}.{path} needs a value")))?,
        };
        let object = objects.entry(flag).or_insert_with(|| Value::Object(Map::new()));
        put(object, &path, &value);
    }
    for (flag, object) in objects {
        plain.extend([flag.into(), object.to_string().into()]);
    }
    Ok(plain)
}

/// Flag, path and perhaps value of a dotted flag.
fn dots(word: &str) -> Option<(String, String, Option<String>)> {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (word, None),
    };
    let (flag, path) = name.split_once('.')?;
    let is_flag = flag.len() > 2 && flag.starts_with("--") && !path.is_empty();
    is_flag.then(|| (flag.to_owned(), path.to_owned(), value))
}

/// Sets what stands at `path` in an object; what is in the way is replaced.
fn put(mut at: &mut Value, path: &str, text: &str) {
    let (path, is_list) = match path.strip_suffix('+') {
        Some(path) => (path, true),
        None => (path, false),
    };
    for key in path.split('.') {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        let Value::Object(map) = at else { return };
        at = map.entry(key.to_owned()).or_insert(Value::Null);
    }
    if !is_list {
        *at = scalar(text);
        return;
    }
    if !at.is_array() {
        *at = Value::Array(Vec::new());
    }
    if let Value::Array(items) = at {
        items.extend(text.split(',').map(|item| scalar(item.trim())));
    }
}

/// JSON, else an integer as people write it (`2k`, `1.5m`, `4G`), else text.
fn scalar(text: &str) -> Value {
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    human(text).map_or_else(|| Value::String(text.to_owned()), |n| Value::Number(Number::from(n)))
}

/// `k`, `m`, `g`, `t` are powers of 1000, and may follow a fraction; `K`, `M`, `G`, `T` are powers of
/// 1024.
fn human(text: &str) -> Option<i64> {
    let suffix = text.chars().last()?;
    let digits = &text[..text.len() - suffix.len_utf8()];
    let power = |letters: &str| letters.find(suffix).map(|at| at as u32 + 1);
    if let Some(power) = power("kmgt") {
        let number: f64 = digits.parse().ok()?;
        let value = number * 1000_u64.pow(power) as f64;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        return (plain && value.is_finite() && value < 9e18).then_some(value as i64);
    }
    let number: i64 = digits.parse().ok()?;
    number.checked_mul(1024_i64.checked_pow(power("KMGT")?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn words(typed: &[&str]) -> Vec<String> {
        let typed = typed.iter().map(OsString::from).collect();
        let plain = plain(typed, &["--no-self-timed"], &Io::captured().0).unwrap();
        plain.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn underscores_in_flags_are_dashes() {
        let typed = ["--dataset_path", "a_b", "--num_prompts=1_0", "--extra_body.a_b", "1", "x_y"];
        let want =
            ["--dataset-path", "a_b", "--num-prompts=1_0", "x_y", "--extra-body", r#"{"a_b":1}"#];
        assert_eq!(words(&typed), want);
    }

    #[test]
    fn a_flag_that_is_repeated_is_told() {
        let (io, captured) = Io::captured();
        let typed = ["--a", "1", "--j.x", "1", "--a_b=2", "--j.y", "2", "--a-b", "--a", "--a=3"];
        drop(plain(typed.iter().map(OsString::from).collect(), &[], &io));
        let wanted = "\
warning: --a-b is given more than once: the last one counts
warning: --a is given more than once: the last one counts
";
        assert_eq!(captured.err(), wanted);
    }

    #[test]
    fn dotted_flags_make_json() {
        let typed = [
            "--j.a.b",
            "5",
            "--j.a.c=text",
            "--k.list+",
            "x,2",
            "--j.size",
            "2k",
            "--k.list+=3",
            "--k.n",
            "1.5m",
            "--k.two",
            "4K",
        ];
        let want = [
            "--j",
            r#"{"a":{"b":5,"c":"text"},"size":2000}"#,
            "--k",
            r#"{"list":["x",2,3],"n":1500000,"two":4096}"#,
        ];
        assert_eq!(words(&typed), want);
        let error = plain(vec!["--j.a".into()], &[], &Io::captured().0).unwrap_err();
        assert!(error.to_string().contains("--j.a needs a value"), "{error}");
    }

    #[test]
    fn a_file_goes_before_what_was_typed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bench.yaml");
        let yaml = "num_prompts: 7\nsave-result: true\nignore-eos: false\nself_timed: false\n\
                    header: [a=1, b=2]\nextra-body:\n  top_k: 3\nrequest-rate: inf\nempty:\n";
        std::fs::write(&path, yaml).unwrap();
        let path = path.to_str().unwrap();
        let got = words(&["--seed", "1", "--config", path]);
        let want = [
            "--num-prompts",
            "7",
            "--save-result",
            "--no-self-timed",
            "--header",
            "a=1",
            "b=2",
            "--extra-body",
            r#"{"top_k":3}"#,
            "--request-rate",
            "inf",
            "--seed",
            "1",
        ];
        assert_eq!(got, want);
        for words in [vec!["--config"], vec!["--config=/no/such/file"]] {
            let words = words.into_iter().map(OsString::from).collect();
            assert_eq!(plain(words, &[], &Io::captured().0).unwrap_err().code, Code::Usage);
        }
    }

    #[test]
    fn a_config_is_a_mapping() {
        assert!(entries("- a\n- b").is_err());
        assert!(entries("a: [").is_err());
        assert_eq!(entries("").unwrap(), Map::new());
        assert_eq!(Value::Object(entries("a: 1.5").unwrap()), json!({"a": 1.5}));
    }

    proptest! {
        #[test]
        fn no_words_panic(typed in prop::collection::vec("(--)?[a-z_.+=0-9kM]{0,12}", 0..8)) {
            let typed = typed.into_iter().map(OsString::from).collect();
            drop(plain(typed, &[], &Io::captured().0));
        }

        #[test]
        fn no_yaml_panics(yaml in "\\PC{0,60}") {
            drop(entries(&yaml));
        }
    }
}
