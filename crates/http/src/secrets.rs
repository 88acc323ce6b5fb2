//! What must be shown nowhere, and texts of others that may hold it.

use memchr::memmem;
use std::borrow::Cow;
use std::fmt;

/// Shorter values are not looked for: they stand in texts by chance.
const SHORTEST: usize = 6;
/// What stands in the place of a secret.
const HIDDEN: &str = "***";

/// Values that must be shown nowhere: a server that repeats the key it was sent must not bring it into a
/// message or a result.
///
/// ```
/// let mut secrets = servebench_http::Secrets::default();
/// secrets.add_header("Bearer sk-123456");
/// assert_eq!(secrets.hidden("unknown key sk-123456"), "unknown key ***");
/// assert!(!format!("{secrets:?}").contains("sk-"));
/// ```
#[derive(Clone, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Adds a header's value; of `Bearer KEY` the key, which may be repeated without the word.
    pub fn add_header(&mut self, value: &str) {
        let value = value.trim();
        let credentials = match value.split_once(' ') {
            Some((scheme, rest)) if scheme.bytes().all(|byte| byte.is_ascii_alphabetic()) => rest,
            _ => value,
        };
        self.add(credentials);
    }

    /// Adds a value. One of less than 6 bytes is left out.
    pub fn add(&mut self, value: &str) {
        let value = value.trim();
        if value.len() >= SHORTEST && !self.0.iter().any(|known| known == value) {
            self.0.push(value.to_owned());
            // One that holds another must go first.
            self.0.sort_by_key(|value| std::cmp::Reverse(value.len()));
        }
    }

    /// Adds all of another set.
    pub(crate) fn add_all(&mut self, others: &Self) {
        for value in &others.0 {
            self.add(value);
        }
    }

    /// The text with `***` in the place of each secret.
    pub fn hidden<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.0.iter().fold(Cow::Borrowed(text), |text, secret| {
            if text.contains(secret.as_str()) {
                Cow::Owned(text.replace(secret.as_str(), HIDDEN))
            } else {
                text
            }
        })
    }
}

impl Secrets {
    /// Bytes with `***` in the place of each secret.
    pub(crate) fn hidden_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        self.0.iter().fold(Cow::Borrowed(bytes), |bytes, secret| {
            let secret = secret.as_bytes();
            let Some(mut found) = memmem::find(&bytes, secret) else { return bytes };
            let (mut hidden, mut rest) = (Vec::new(), &bytes[..]);
            loop {
                hidden.extend_from_slice(&rest[..found]);
                hidden.extend_from_slice(HIDDEN.as_bytes());
                rest = &rest[found + secret.len()..];
                match memmem::find(rest, secret) {
                    Some(next) => found = next,
                    None => break,
                }
            }
            hidden.extend_from_slice(rest);
            Cow::Owned(hidden)
        })
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_secret_is_hidden_wherever_it_stands() {
        let mut secrets = Secrets::default();
        for value in
            ["Bearer key-123", "key-123-and-more", "short", "a value with spaces", "key-123"]
        {
            secrets.add_header(value);
        }
        let text = "key-123, key-123-and-more and value with spaces: short";
        assert_eq!(secrets.hidden(text), "***, *** and ***: short");
        assert_eq!(secrets.hidden_bytes(text.as_bytes()), secrets.hidden(text).as_bytes());
        assert!(matches!(secrets.hidden_bytes(b"nothing of it"), Cow::Borrowed(_)));
        assert!(matches!(secrets.hidden("nothing of it"), Cow::Borrowed("nothing of it")));
        assert_eq!(format!("{secrets:?}"), "Secrets(3)");
    }
}
