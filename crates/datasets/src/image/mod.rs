//! `image`: random text with pictures of noise or of nothing.

#[cfg(feature = "images")]
mod encode;
#[cfg(feature = "images")]
mod generate;
#[cfg(feature = "images")]
mod noise;
mod options;
#[cfg(feature = "images")]
mod prompt;
#[cfg(feature = "images")]
mod recode;
mod resolution;
#[cfg(feature = "images")]
mod vision;

pub use options::{ImageContent, ImageFormat, ImageOptions};
pub use resolution::{Resolution, ResolutionError, Size};

#[cfg(feature = "images")]
pub use noise::noise_like;

#[cfg(feature = "images")]
pub(crate) use {
    encode::{Pixels, data_uri, jpeg},
    generate::load,
    prompt::Prompts,
    recode::{Recoded, recode},
};
