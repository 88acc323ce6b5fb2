//! What the files beside a tokenizer say about its processor.

use serde_json::{Map, Value};
use servebench_tokens::{Tokenizer, TokensError};

/// The settings of a processor.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    /// `processor_config.json`.
    processor: Map<String, Value>,
    /// The image processor's part of it, else `preprocessor_config.json`.
    image: Map<String, Value>,
    /// `tokenizer_config.json`.
    tokenizer: Map<String, Value>,
    /// `config.json`.
    config: Map<String, Value>,
}

/// The processors that kinds of models have.
const CLASSES: [(&str, &str); 12] = [
    ("qwen2_vl", "Qwen2VLProcessor"),
    ("qwen2_5_vl", "Qwen2_5_VLProcessor"),
    ("qwen3_vl", "Qwen3VLProcessor"),
    ("qwen3_vl_moe", "Qwen3VLProcessor"),
    ("qwen3_5", "Qwen3VLProcessor"),
    ("qwen3_5_moe", "Qwen3VLProcessor"),
    ("llava", "LlavaProcessor"),
    ("llava_next", "LlavaNextProcessor"),
    ("gemma3", "Gemma3Processor"),
    ("internvl", "InternVLProcessor"),
    ("pixtral", "PixtralProcessor"),
    ("mistral3", "PixtralProcessor"),
];

impl Files {
    pub(super) fn beside(tokenizer: &Tokenizer) -> Result<Self, TokensError> {
        let processor = tokenizer.object_beside("processor_config.json")?;
        let image = match processor.get("image_processor") {
            Some(Value::Object(image)) => image.clone(),
            _ => tokenizer.object_beside("preprocessor_config.json")?,
        };
        Ok(Self {
            image,
            processor,
            tokenizer: tokenizer.object_beside("tokenizer_config.json")?,
            config: tokenizer.object_beside("config.json")?,
        })
    }

    #[cfg(test)]
    pub(super) fn of_test(mut files: Value) -> Self {
        let mut file = |name: &str| match files[name].take() {
            Value::Object(file) => file,
            _ => Map::new(),
        };
        Self {
            processor: file("processor"),
            image: file("preprocessor"),
            tokenizer: file("tokenizer"),
            config: file("config"),
        }
    }

    /// The name of the processor.
    pub(super) fn class(&self) -> Option<String> {
        let named = [&self.processor, &self.image, &self.tokenizer, &self.config];
        let named = named.iter().find_map(|file| file.get("processor_class")?.as_str());
        let by_kind = || CLASSES.iter().find(|(kind, _)| Some(*kind) == self.model_type());
        Some(named.or_else(|| Some(by_kind()?.1))?.to_owned())
    }

    pub(super) fn model_type(&self) -> Option<&str> {
        self.config.get("model_type")?.as_str()
    }

    /// A number of the processor.
    pub(super) fn number(&self, name: &str) -> Option<u32> {
        whole(self.processor.get(name)?)
    }

    /// A text of the processor.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.processor.get(name)?.as_str()
    }

    /// A token that the tokenizer names, else the processor.
    pub(super) fn token(
        &self,
        named: impl Fn(&str) -> Option<String>,
        name: &str,
        usual: &str,
    ) -> String {
        named(name).unwrap_or_else(|| self.text(name).unwrap_or(usual).to_owned())
    }

    /// A value of the image processor.
    pub(super) fn image(&self, name: &str) -> Option<&Value> {
        self.image.get(name).filter(|value| !value.is_null())
    }

    /// A number of the image processor.
    pub(super) fn image_number(&self, name: &str) -> Option<u32> {
        whole(self.image(name)?)
    }

    /// A switch of the image processor.
    pub(super) fn image_flag(&self, name: &str) -> Option<bool> {
        self.image(name)?.as_bool()
    }

    /// A part of a size of the image processor (`size`, `crop_size`).
    pub(super) fn edge(&self, size: &str, edge: &str) -> Option<u32> {
        whole(self.image(size)?.get(edge)?)
    }

    /// Height and width that every picture has when the image processor is done with it.
    pub(super) fn fixed_size(&self) -> Option<(u32, u32)> {
        let of = |name: &str| match self.image(name)? {
            Value::Object(size) => Some((whole(size.get("height")?)?, whole(size.get("width")?)?)),
            side => whole(side).map(|side| (side, side)),
        };
        let kind = self.image("image_processor_type").and_then(Value::as_str);
        let crops = kind.is_none_or(|kind| kind.starts_with("CLIP") || kind.starts_with("Llava"));
        if self.image_flag("do_center_crop").unwrap_or(crops) {
            return of("crop_size")
                .or_else(|| self.image("crop_size").is_none().then_some((224, 224)));
        }
        if self.image_flag("do_resize") == Some(false) { None } else { of("size") }
    }
}

/// A positive whole number.
fn whole(value: &Value) -> Option<u32> {
    let number = value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| number.fract() == 0.0 && *number >= 0.0)?;
        Some(number as u64)
    })?;
    u32::try_from(number).ok().filter(|&number| number > 0)
}
