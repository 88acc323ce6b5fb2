//! What the pictures are like.

use super::Resolution;
use crate::DatasetError;
use serde::Serialize;

/// The file format of pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageFormat {
    /// JPEG of quality 85, colours at half the resolution.
    #[default]
    Jpeg,
    /// PNG.
    Png,
}

impl ImageFormat {
    /// Its name on the command line and in a data URI.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Jpeg => "jpeg",
            Self::Png => "png",
        }
    }
}

/// What is in the pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageContent {
    /// Noise: no two pictures are alike.
    #[default]
    Random,
    /// White: all pictures of a size are alike.
    Blank,
}

/// The pictures of the dataset `image`. The defaults are the Python tool's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ImageOptions {
    /// Pictures in a request, at least 1.
    pub count: u32,
    /// Draw the number for each request, from 1 to `count`.
    pub random_count: bool,
    /// Their size.
    pub resolution: Resolution,
    /// Their file format.
    pub format: ImageFormat,
    /// What is in them.
    pub content: ImageContent,
    /// Prompts are for a chat endpoint: the text alone. Else they are what the model's chat template
    /// makes of text and pictures.
    pub messages: bool,
}

impl Default for ImageOptions {
    fn default() -> Self {
        Self {
            count: 1,
            random_count: false,
            resolution: Resolution::default(),
            format: ImageFormat::default(),
            content: ImageContent::default(),
            messages: false,
        }
    }
}

impl ImageOptions {
    pub(crate) fn check(&self) -> Result<(), DatasetError> {
        if self.count == 0 {
            let problem = "must be at least 1".to_owned();
            return Err(DatasetError::Option { flag: "--image-count", problem });
        }
        Ok(())
    }
}
