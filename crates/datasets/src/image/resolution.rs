//! Sizes of pictures, as the command line has them.

use serde::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// Longest side of a picture, in pixels: more than that no JPEG can have.
const LONGEST: u32 = 65_500;
/// Most pixels of a picture.
const LARGEST: u64 = 1 << 28;

/// Width and height in pixels, both at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Size {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Size {
    /// How many pixels that are.
    pub const fn pixels(self) -> u64 {
        self.width as u64 * self.height as u64
    }
}

impl fmt::Display for Size {
    /// Height first, as the command line has it: `1080x1920`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.height, self.width)
    }
}

/// One size for all pictures, or bounds between which each is drawn.
///
/// Written as `4k`, `1080p`, `720p`, `360p`, `HEIGHTxWIDTH` or `random:LEAST-MOST` of two of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// All pictures have it.
    Fixed(Size),
    /// Width and height are drawn apart, both bounds included.
    Random {
        /// Least width and least height.
        least: Size,
        /// Most width and most height.
        most: Size,
    },
}

/// The sizes that have a name.
const NAMED: [(&str, Size); 4] = [
    ("4k", Size { width: 3840, height: 2160 }),
    ("1080p", Size { width: 1920, height: 1080 }),
    ("720p", Size { width: 1280, height: 720 }),
    ("360p", Size { width: 640, height: 360 }),
];

impl Default for Resolution {
    /// `1080p`.
    fn default() -> Self {
        Self::Fixed(NAMED[1].1)
    }
}

impl Resolution {
    /// The least width and height.
    pub const fn least(self) -> Size {
        match self {
            Self::Fixed(size) | Self::Random { least: size, .. } => size,
        }
    }

    /// The most width and height.
    pub const fn most(self) -> Size {
        match self {
            Self::Fixed(size) | Self::Random { most: size, .. } => size,
        }
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(size) => size.fmt(f),
            Self::Random { least, most } => write!(f, "random:{least}-{most}"),
        }
    }
}

impl Serialize for Resolution {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// A text that is no resolution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolutionError {
    /// It has another form.
    #[error(
        "`{0}` is no resolution: give 4k, 1080p, 720p, 360p, HEIGHTxWIDTH (1080x1920), or \
         random:LEAST-MOST (random:256x256-1024x1024)"
    )]
    Form(String),
    /// The bounds are the wrong way round.
    #[error("`{0}` has a least height or width above the most")]
    Order(String),
    /// No such picture can be made.
    #[error("`{0}` is too large: a side may have 65500 pixels, and all together 268435456")]
    TooLarge(String),
}

impl FromStr for Resolution {
    type Err = ResolutionError;

    fn from_str(text: &str) -> Result<Self, ResolutionError> {
        let form = || ResolutionError::Form(text.to_owned());
        let lower = text.trim().to_ascii_lowercase();
        let Some(bounds) = lower.strip_prefix("random:") else {
            return size(&lower).map(Self::Fixed).ok_or_else(form)?.within(text);
        };
        let (least, most) = bounds.split_once('-').ok_or_else(form)?;
        let (least, most) = (size(least).ok_or_else(form)?, size(most).ok_or_else(form)?);
        if least.width > most.width || least.height > most.height {
            return Err(ResolutionError::Order(text.to_owned()));
        }
        Self::Random { least, most }.within(text)
    }
}

impl Resolution {
    fn within(self, text: &str) -> Result<Self, ResolutionError> {
        let most = self.most();
        if most.width.max(most.height) > LONGEST || most.pixels() > LARGEST {
            return Err(ResolutionError::TooLarge(text.to_owned()));
        }
        Ok(self)
    }
}

/// A name, or height and width.
fn size(text: &str) -> Option<Size> {
    let text = text.trim();
    if let Some((_, size)) = NAMED.iter().find(|(name, _)| *name == text) {
        return Some(*size);
    }
    let side = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // What does not fit is too large, not of another form.
        plain.then(|| digits.parse().unwrap_or(u32::MAX)).filter(|&side| side > 0)
    };
    let (height, width) = text.split_once('x')?;
    Some(Size { height: side(height)?, width: side(width)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Result<Resolution, ResolutionError> {
        text.parse()
    }

    fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }

    #[test]
    fn names_and_numbers_are_sizes() {
        for (text, want) in [
            ("4k", size(3840, 2160)),
            ("1080p", size(1920, 1080)),
            ("720p", size(1280, 720)),
            ("360p", size(640, 360)),
            ("512x768", size(768, 512)),
            (" 512X768 ", size(768, 512)),
            ("1x1", size(1, 1)),
        ] {
            assert_eq!(parse(text), Ok(Resolution::Fixed(want)), "{text}");
        }
        let drawn = parse("random:256x128-720p");
        assert_eq!(drawn, Ok(Resolution::Random { least: size(128, 256), most: size(1280, 720) }));
    }

    #[test]
    fn other_texts_are_told_apart() {
        for text in [
            "",
            "8k",
            "x",
            "12x",
            "x12",
            "0x4",
            "4x0",
            "-1x4",
            "+1x4",
            "1x2x3",
            "1.5x2",
            "random:",
            "random:4x4",
            "random:4x4-",
            "random:4x4-5x5-6x6",
            "1080 p",
            "٣x٣",
        ] {
            assert_eq!(parse(text), Err(ResolutionError::Form(text.to_owned())), "{text}");
        }
        for text in ["random:4x5-4x4", "random:5x4-4x4", "random:1080p-720p"] {
            assert_eq!(parse(text), Err(ResolutionError::Order(text.to_owned())), "{text}");
        }
        for text in ["65501x1", "20000x20000", "99999999999x1", "random:1x1-1x70000"] {
            assert_eq!(parse(text), Err(ResolutionError::TooLarge(text.to_owned())), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(a in 1..9000_u32, b in 1..9000_u32, c in 0..9000_u32, d in 0..9000_u32) {
            let fixed = Resolution::Fixed(size(a, b));
            prop_assert_eq!(fixed.to_string().parse(), Ok(fixed));
            let random = Resolution::Random { least: size(a, b), most: size(a + c, b + d) };
            let read = random.to_string().parse::<Resolution>();
            if random.most().pixels() <= LARGEST {
                prop_assert_eq!(read, Ok(random));
            } else {
                prop_assert!(read.is_err());
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(random:)?[0-9a-zA-Z:x\\- ]{0,24}|\\PC{0,12}") {
            if let Ok(resolution) = parse(&text) {
                prop_assert!(resolution.least().pixels() > 0);
                prop_assert!(resolution.most().pixels() <= LARGEST);
            }
        }
    }
}
