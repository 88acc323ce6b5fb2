//! Values that are shown nowhere.

use std::fmt;
use std::ops::Deref;

/// A value that is used as any other, and never shown: not in a panic either.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Hidden<T>(pub T);

/// A header of every call: its name, and its value, which may be a key.
pub type Header = (String, Hidden<String>);

impl From<String> for Hidden<String> {
    fn from(value: String) -> Self {
        Self(value)
    }
}

impl<T> Deref for Hidden<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> fmt::Debug for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}
