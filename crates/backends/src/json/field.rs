//! The types of the fields that are read, each with its strict and its loose reading.

use super::cursor::Cursor;
use serde_json::Value;
use std::borrow::Cow;

/// A value that is read strictly from JSON text, or loosely from a [`Value`].
///
/// Law: what the strict reading accepts, the loose one reads the same. What the strict reading refuses
/// (a wrong type, a lone surrogate), the loose one takes as absent or for what it plainly means.
pub(crate) trait Field<'a>: Default {
    /// Reads the value at the cursor into a default one. `None`: it wants the loose reading.
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<()>;

    /// Reads what can be read of `value`; the default where nothing can.
    fn loose(value: &'a Value) -> Self;
}

/// Reads a whole document strictly.
pub(crate) fn strict<'a, F: Field<'a>>(data: &'a [u8]) -> Option<F> {
    // Validating the bytes once is cheaper than string by string.
    let mut cursor = Cursor::new(std::str::from_utf8(data).ok()?);
    let mut value = F::default();
    value.read(&mut cursor)?;
    cursor.end()?;
    Some(value)
}

/// Declares a record of [`Field`]s, itself one, with both readings.
///
/// Unknown keys are skipped, missing ones and nulls are defaults. Keys that come twice are left to the
/// loose reading, where the last one wins.
macro_rules! record {
    ($(#[$meta:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$doc:meta])* $key:literal => $field:ident: $kind:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Default, PartialEq)]
        pub(crate) struct $name $(<$life>)? {
            $($(#[$doc])* pub(crate) $field: $kind,)*
        }

        impl<'a> $crate::json::field::Field<'a> for $name $(<$life>)? {
            fn read(&mut self, cursor: &mut $crate::json::cursor::Cursor<'a>) -> Option<()> {
                if cursor.null() {
                    return Some(());
                }
                $(let mut $field = false;)*
                cursor.object(|cursor, key| {
                    match key {
                        $($key => {
                            if std::mem::replace(&mut $field, true) {
                                return None;
                            }
                            self.$field.read(cursor)
                        })*
                        _ => cursor.skip(),
                    }
                })
            }

            fn loose(value: &'a serde_json::Value) -> Self {
                $(let $field = value.get($key)
                    .map($crate::json::field::Field::loose)
                    .unwrap_or_default();)*
                Self { $($field,)* }
            }
        }
    };
}
pub(crate) use record;

/// A string; empty where there is none.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> Field<'a> for Text<'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        if !cursor.null() {
            self.0 = cursor.string()?;
        }
        Some(())
    }

    /// Content given as a list of parts is the text of its parts.
    fn loose(value: &'a Value) -> Self {
        match value {
            Value::String(text) => Self(Cow::Borrowed(text)),
            Value::Array(parts) => Self(Cow::Owned(
                parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
            )),
            _ => Self::default(),
        }
    }
}

/// A count of tokens, or an index.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count(pub(crate) Option<u32>);

impl<'a> Field<'a> for Count {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        if !cursor.null() {
            self.0 = Some(cursor.count()?);
        }
        Some(())
    }

    /// Floats with an integral value count.
    fn loose(value: &'a Value) -> Self {
        let float = || value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0);
        let count = value.as_u64().or_else(|| float().map(|n| n as u64));
        Self(count.and_then(|n| u32::try_from(n).ok()))
    }
}

/// A finite number.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Number(pub(crate) Option<f64>);

impl<'a> Field<'a> for Number {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        if !cursor.null() {
            self.0 = Some(cursor.number()?);
        }
        Some(())
    }

    fn loose(value: &'a Value) -> Self {
        Self(value.as_f64())
    }
}

/// Whether there is anything but null.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Present(pub(crate) bool);

impl<'a> Field<'a> for Present {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        if !cursor.null() {
            self.0 = true;
            cursor.skip()?;
        }
        Some(())
    }

    fn loose(value: &'a Value) -> Self {
        Self(!value.is_null())
    }
}

/// Whether there is a string that is not empty.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Filled(pub(crate) bool);

impl<'a> Field<'a> for Filled {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        let mut text = Text::default();
        text.read(cursor)?;
        self.0 = !text.is_empty();
        Some(())
    }

    /// Arguments given as an object are something, too.
    fn loose(value: &'a Value) -> Self {
        Self(match value {
            Value::String(text) => !text.is_empty(),
            Value::Object(map) => !map.is_empty(),
            _ => false,
        })
    }
}

/// A list that mostly holds one item, so that it mostly needs no allocation.
#[derive(Debug, PartialEq)]
pub(crate) struct List<T> {
    first: Option<T>,
    rest: Vec<T>,
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { first: None, rest: Vec::new() }
    }
}

impl<T> List<T> {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.rest)
    }
}

impl<'a, T: Field<'a>> Field<'a> for List<T> {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        if cursor.null() {
            return Some(());
        }
        cursor.list(|cursor| {
            if self.first.is_none() {
                return self.first.insert(T::default()).read(cursor);
            }
            let mut item = T::default();
            item.read(cursor)?;
            self.rest.push(item);
            Some(())
        })
    }

    fn loose(value: &'a Value) -> Self {
        let mut items = value.as_array().into_iter().flatten().map(T::loose);
        Self { first: items.next(), rest: items.collect() }
    }
}

record! {
    /// SGLang's object for the end of a reply.
    FinishObject<'a> {
        "type" => reason: Text<'a>,
        "message" => message: Text<'a>,
    }
}

/// Why a reply stopped: a string, or an object with `type` and, where it was aborted, `message`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Finish<'a>(FinishObject<'a>);

impl Finish<'_> {
    /// The reason; empty while the reply goes on.
    pub(crate) fn reason(&self) -> &str {
        &self.0.reason.0
    }

    /// What an aborting server says about it.
    pub(crate) fn message(&self) -> &str {
        &self.0.message.0
    }
}

impl<'a> Field<'a> for Finish<'a> {
    fn read(&mut self, cursor: &mut Cursor<'a>) -> Option<()> {
        if cursor.at_string() { self.0.reason.read(cursor) } else { self.0.read(cursor) }
    }

    fn loose(value: &'a Value) -> Self {
        match value {
            Value::String(_) => {
                Self(FinishObject { reason: Text::loose(value), ..FinishObject::default() })
            }
            _ => Self(FinishObject::loose(value)),
        }
    }
}
