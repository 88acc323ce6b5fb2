//! JSON as Python's `json.dumps` writes it, for the `tojson` filter.

use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind, Value};
use serde::Serialize as _;
use serde_json::ser::{CharEscape, Formatter, Serializer};
use std::io;

/// The options of `json.dumps` that templates use.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    indent: Option<String>,
    item_separator: String,
    key_separator: String,
    sort_keys: bool,
    ensure_ascii: bool,
}

impl Layout {
    /// Takes `indent`, `separators`, `sort_keys` and `ensure_ascii`, with Python's defaults.
    pub(super) fn from_options(options: &Kwargs) -> Result<Self, Error> {
        let indent = match options.get::<Option<Value>>("indent")? {
            None => None,
            Some(value) if value.is_none() || value.is_undefined() => None,
            Some(value) => Some(match value.as_str() {
                Some(text) => text.to_owned(),
                None => " ".repeat(usize::try_from(value).unwrap_or(0).min(64)),
            }),
        };
        let separators = options.get::<Option<Vec<String>>>("separators")?;
        let (item_separator, key_separator) = match separators.as_deref() {
            Some([item, key]) => (item.clone(), key.clone()),
            Some(_) => return Err(invalid("`separators` needs two strings")),
            None if indent.is_some() => (",".to_owned(), ": ".to_owned()),
            None => (", ".to_owned(), ": ".to_owned()),
        };
        let flag = |name| options.get::<Option<bool>>(name).map(Option::unwrap_or_default);
        Ok(Self {
            indent,
            item_separator,
            key_separator,
            sort_keys: flag("sort_keys")?,
            ensure_ascii: flag("ensure_ascii")?,
        })
    }
}

/// Writes `value` in this layout.
pub(super) fn write(value: &Value, layout: &Layout) -> Result<String, Error> {
    let mut json = serde_json::to_value(value).map_err(|error| invalid(error.to_string()))?;
    if layout.sort_keys {
        json.sort_all_objects();
    }
    let mut out = Vec::new();
    let formatter = PythonFormatter { layout, depth: 0, has_items: false };
    json.serialize(&mut Serializer::with_formatter(&mut out, formatter))
        .map_err(|error| invalid(error.to_string()))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message.into())
}

struct PythonFormatter<'a> {
    layout: &'a Layout,
    depth: usize,
    has_items: bool,
}

impl PythonFormatter<'_> {
    fn open<W: ?Sized + io::Write>(&mut self, out: &mut W, bracket: u8) -> io::Result<()> {
        self.depth += 1;
        self.has_items = false;
        out.write_all(&[bracket])
    }

    fn close<W: ?Sized + io::Write>(&mut self, out: &mut W, bracket: u8) -> io::Result<()> {
        self.depth -= 1;
        if self.has_items {
            self.new_line(out)?;
        }
        out.write_all(&[bracket])
    }

    fn item<W: ?Sized + io::Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(self.layout.item_separator.as_bytes())?;
        }
        self.new_line(out)
    }

    fn new_line<W: ?Sized + io::Write>(&self, out: &mut W) -> io::Result<()> {
        let Some(indent) = &self.layout.indent else { return Ok(()) };
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(indent.as_bytes()))
    }
}

impl Formatter for PythonFormatter<'_> {
    fn begin_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b'[')
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b']')
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.item(out, first)
    }

    fn end_array_value<W: ?Sized + io::Write>(&mut self, _out: &mut W) -> io::Result<()> {
        self.has_items = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.open(out, b'{')
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.close(out, b'}')
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.item(out, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(self.layout.key_separator.as_bytes())
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, _out: &mut W) -> io::Result<()> {
        self.has_items = true;
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if !self.layout.ensure_ascii {
            return out.write_all(fragment.as_bytes());
        }
        let mut units = [0; 2];
        for c in fragment.chars() {
            if matches!(c, ' '..='~') {
                out.write_all(&[c as u8])?;
            } else {
                c.encode_utf16(&mut units)
                    .iter()
                    .try_for_each(|unit| write!(out, "\\u{unit:04x}"))?;
            }
        }
        Ok(())
    }

    fn write_char_escape<W: ?Sized + io::Write>(
        &mut self,
        out: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        serde_json::ser::CompactFormatter.write_char_escape(out, escape)
    }
}
