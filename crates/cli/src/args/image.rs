//! Pictures.

use clap::{Args, ValueEnum};
use servebench_datasets::{ImageContent, ImageFormat, Resolution};

/// The pictures of `image`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset image")]
pub struct ImageArgs {
    /// Pictures in each request [default: 1]
    #[arg(long, value_name = "N")]
    pub image_count: Option<u32>,

    /// Draw the number of pictures of each request, from 1 to --image-count
    #[arg(long)]
    pub random_image_count: bool,

    /// Size of the pictures: 4k, 1080p, 720p, 360p, HEIGHTxWIDTH or random:LEAST-MOST [default: 1080p]
    ///
    /// As in 512x768, which is 512 rows of 768 pixels, or random:256x256-1080p, which draws height and
    /// width of each picture between the two.
    #[arg(long, value_name = "SIZE")]
    pub image_resolution: Option<Resolution>,

    /// File format of the pictures
    #[arg(long, value_name = "FORMAT", default_value = "jpeg")]
    pub image_format: ImageFormatName,

    /// What is in the pictures: noise, or white
    ///
    /// White pictures of one size are all alike, so that a server may find them in its cache.
    #[arg(long, value_name = "CONTENT", default_value = "random")]
    pub image_content: ImageContentName,
}

/// File formats of pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ImageFormatName {
    #[default]
    Jpeg,
    Png,
}

impl From<ImageFormatName> for ImageFormat {
    fn from(name: ImageFormatName) -> Self {
        match name {
            ImageFormatName::Jpeg => Self::Jpeg,
            ImageFormatName::Png => Self::Png,
        }
    }
}

/// What is in pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ImageContentName {
    #[default]
    Random,
    Blank,
}

impl From<ImageContentName> for ImageContent {
    fn from(name: ImageContentName) -> Self {
        match name {
            ImageContentName::Random => Self::Random,
            ImageContentName::Blank => Self::Blank,
        }
    }
}
