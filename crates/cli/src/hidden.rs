//! Values that are shown nowhere.

use std::fmt;
use std::ops::Deref;

/// A value that is used as any other, and never shown: not in a panic either.
#[derive(Clone, Default)]
pub struct Hidden<T>(pub T);

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
