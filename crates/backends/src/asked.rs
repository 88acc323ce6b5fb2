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

#[cfg(test)]
mod tests {
    use super::*;

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
}
