//! Pictures in requests: where they stand, and what they cost.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Side of the square that is a token.
const CELL: u32 = 28;
/// Tokens of a picture whose size cannot be seen: one at an address, or of another format.
const UNSEEN: u32 = 256;
/// Characters of a picture that are looked into for its size.
const HEAD: usize = 1 << 17;

/// What a picture is in a prompt: a token for every 28 by 28 pixels, begun ones too.
pub(crate) fn tokens(address: &str) -> u32 {
    let cells = |side: u32| side.div_ceil(CELL);
    size(address).map_or(UNSEEN, |(width, height)| cells(width) * cells(height))
}

/// Width and height by the head of a PNG or JPEG in a data URI.
fn size(address: &str) -> Option<(u32, u32)> {
    let (_, data) = address.strip_prefix("data:")?.split_once(";base64,")?;
    let data = data.as_bytes();
    let head = if data.len() > HEAD { &data[..HEAD] } else { data };
    let file = STANDARD.decode(head).ok()?;
    let (width, height) = if file.starts_with(b"\x89PNG") {
        png(&file)?
    } else {
        jpeg(file.strip_prefix(b"\xff\xd8")?)?
    };
    // Larger ones than any real one would be a cost out of bounds.
    ((1..=65_535).contains(&width) && (1..=65_535).contains(&height)).then_some((width, height))
}

fn png(file: &[u8]) -> Option<(u32, u32)> {
    let side = |at: usize| Some(u32::from_be_bytes(file.get(at..at + 4)?.try_into().ok()?));
    Some((side(16)?, side(20)?))
}

/// Goes from segment to segment to the one that begins the picture.
fn jpeg(mut rest: &[u8]) -> Option<(u32, u32)> {
    let two = |bytes: &[u8], at: usize| {
        Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
    };
    loop {
        let &[0xff, marker, ..] = rest else { return None };
        let begins = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if begins {
            return Some((two(rest, 7)?, two(rest, 5)?));
        }
        rest = rest.get(2 + two(rest, 2)? as usize..)?;
    }
}

/// `image_data`: an address, a list of them, or a list of lists, one for each prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Images<'a> {
    entries: Vec<Vec<Cow<'a, str>>>,
    /// Whether the lists were for prompts.
    lists: bool,
}

impl<'a> Images<'a> {
    /// The pictures of each of so many prompts.
    pub(crate) fn of_prompts(self, prompts: usize) -> Vec<Vec<Cow<'a, str>>> {
        if self.lists || prompts > 1 {
            return self.entries;
        }
        vec![self.entries.into_iter().flatten().collect()]
    }
}

struct Entry<'a>(Vec<Cow<'a, str>>, bool);

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = Entry<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an image, a list of images, or null")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Entry(Vec::new(), false))
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Entry(vec![Cow::Borrowed(text)], false))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Entry(vec![Cow::Owned(text.to_owned())], false))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(address) = seq.next_element()? {
            list.push(Cow::Owned(address));
        }
        Ok(Entry(list, true))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Entry<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(EntryVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Images<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ImagesVisitor;
        impl<'de> Visitor<'de> for ImagesVisitor {
            type Value = Images<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                EntryVisitor.expecting(f)
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Images::default())
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Images { entries: vec![vec![Cow::Borrowed(text)]], lists: false })
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Images { entries: vec![vec![Cow::Owned(text.to_owned())]], lists: false })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut images = Images::default();
                while let Some(Entry(entry, list)) = seq.next_element()? {
                    images.entries.push(entry);
                    images.lists |= list;
                }
                Ok(images)
            }
        }
        from.deserialize_any(ImagesVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(kind: &str, file: &[u8]) -> String {
        format!("data:image/{kind};base64,{}", STANDARD.encode(file))
    }

    #[test]
    fn the_size_is_in_the_head() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x39\0\0\0\x1c".to_vec();
        assert_eq!(tokens(&uri("png", &png)), 3);
        png.truncate(22);
        assert_eq!(tokens(&uri("png", &png)), UNSEEN);
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x38\0\x39\x03";
        assert_eq!(tokens(&uri("jpeg", jpeg)), 6);
        for other in
            ["", "http://somewhere/a.png", "data:image/png;base64,!", "data:image/gif;base64,R0lG"]
        {
            assert_eq!(tokens(other), UNSEEN, "{other}");
        }
    }

    #[test]
    fn images_come_in_several_shapes() {
        fn rows(json: &str, prompts: usize) -> Vec<Vec<Cow<'_, str>>> {
            let images: Images<'_> = serde_json::from_str(json).expect("images");
            images.of_prompts(prompts)
        }
        assert_eq!(rows(r#""a""#, 1), [["a"]]);
        assert_eq!(rows(r#"["a", "b"]"#, 1), [["a", "b"]]);
        assert_eq!(rows(r#"["a", "b"]"#, 2), [["a"], ["b"]]);
        assert_eq!(rows(r#"[["a", "b"], ["c"]]"#, 2), [vec!["a", "b"], vec!["c"]]);
        assert_eq!(rows("null", 1), [Vec::<&str>::new()]);
        assert!(serde_json::from_str::<Images<'_>>("[1]").is_err());
    }
}
