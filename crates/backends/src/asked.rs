//! What a request asked for, read back from its body.

use memchr::memmem;
use serde_json::Value;

/// The settings of a request that decide whether a reply is complete.
///
/// A row of a dataset may set them itself, so the body is the one place that knows. It is looked into
/// only when a reply ended in an unusual way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Number of choices (`n`), at least 1.
    pub(crate) choices: usize,
    /// Whether the server was told to go on past the end-of-text token.
    pub(crate) ignore_eos: bool,
}

impl Asked {
    /// Reads both settings from the top level or from `sampling_params`.
    pub(crate) fn of(body: &[u8]) -> Self {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let setting =
            |key| body.get(key).or_else(|| body.get("sampling_params").and_then(|s| s.get(key)));
        let choices = setting("n").and_then(Value::as_u64).unwrap_or(1);
        Self {
            choices: usize::try_from(choices).unwrap_or(usize::MAX).max(1),
            ignore_eos: setting("ignore_eos").and_then(Value::as_bool).unwrap_or(false),
        }
    }

    /// The number of choices alone, which mostly needs no parsing.
    pub(crate) fn choices_of(body: &[u8]) -> usize {
        // Within a string the quotes would be escaped, so a body without this key has no `n`.
        if memmem::find(body, b"\"n\"").is_none() { 1 } else { Self::of(body).choices }
    }
}

/// What a reply's decoder looks up in the `body` of its request, as a body of its own: without the prompt.
/// A decoder of a request with that body reads a reply alike.
///
/// ```
/// let body = br#"{"prompt":"a secret","ignore_eos":true,"max_tokens":8}"#;
/// let kept = servebench_backends::without_prompt(body);
/// assert_eq!(kept, br#"{"ignore_eos":true}"#);
/// ```
pub fn without_prompt(body: &[u8]) -> Vec<u8> {
    let Asked { choices, ignore_eos } = Asked::of(body);
    let choices = (choices != 1).then(|| format!(r#""n":{choices}"#));
    let ignore_eos = ignore_eos.then(|| r#""ignore_eos":true"#.to_owned());
    let settings: Vec<String> = choices.into_iter().chain(ignore_eos).collect();
    format!("{{{}}}", settings.join(",")).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_are_found_on_both_levels() {
        let asked = Asked::of(br#"{"n":3,"ignore_eos":true,"prompt":"x"}"#);
        assert_eq!(asked, Asked { choices: 3, ignore_eos: true });
        let asked = Asked::of(br#"{"sampling_params":{"n":2,"ignore_eos":false}}"#);
        assert_eq!(asked, Asked { choices: 2, ignore_eos: false });
    }

    #[test]
    fn what_is_not_set_has_the_servers_default() {
        let default = Asked { choices: 1, ignore_eos: false };
        for body in [&b""[..], b"{}", b"no json", br#"{"n":0}"#, br#"{"n":"many"}"#] {
            assert_eq!(Asked::of(body), default);
        }
        assert_eq!(Asked::choices_of(br#"{"prompt":"say \"n\": 5"}"#), 1);
        assert_eq!(Asked::choices_of(br#"{"n": 5}"#), 5);
    }

    #[test]
    fn nothing_but_the_settings_is_kept() {
        for (n, ignore_eos) in [(1, true), (3, false), (2, true), (1, false)] {
            for body in [
                json!({"prompt": "secret", "n": n, "ignore_eos": ignore_eos}),
                json!({"text": "secret", "sampling_params": {"n": n, "ignore_eos": ignore_eos}}),
            ] {
                let body = body.to_string();
                let kept = without_prompt(body.as_bytes());
                assert_eq!(Asked::of(&kept), Asked::of(body.as_bytes()));
                assert!(!String::from_utf8_lossy(&kept).contains("secret"));
            }
        }
        assert_eq!(without_prompt(b"no json"), b"{}");
    }
}
