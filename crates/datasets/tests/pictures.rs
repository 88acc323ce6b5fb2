//! The same seed gives the Python tool's texts, pictures and lengths, for each kind of model whose rule is
//! known.
//!
//! `tests/golden/images.json` of the workspace was made by the Python tool itself; its `PROVENANCE.md` tells
//! how. A crate that was packaged alone does not have it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use servebench_core::random::Draws;
use servebench_core::{Picture, Prompt, Sample};
use servebench_datasets::{
    DatasetError, DatasetName, DatasetOptions, ImageContent, ImageFormat, ImageOptions, load,
};
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io::Cursor;
use std::path::{Path, PathBuf};

fn workspace_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

fn offline() -> Hub {
    Hub::new(HubConfig { offline: true, ..HubConfig::new("nowhere") })
}

fn tokenizer(name: &str) -> Tokenizer {
    let folder = workspace_tests().join("fixtures/tokenizers").join(name);
    Tokenizer::load(folder.to_str().unwrap(), &offline()).unwrap()
}

struct Case<'a>(&'a Value);

impl Case<'_> {
    fn name(&self) -> &str {
        self.0["name"].as_str().unwrap()
    }

    fn has(&self, flag: &str) -> bool {
        self.0["argv"].as_array().unwrap().iter().any(|word| word == flag)
    }

    /// The value of a flag; of a repeated flag the last.
    fn flag(&self, flag: &str) -> Option<String> {
        let words = self.0["argv"].as_array().unwrap();
        let at = words.iter().rposition(|word| word == flag)?;
        let fixtures = workspace_tests().join("fixtures");
        let value = words.get(at + 1).and_then(Value::as_str).unwrap_or_default();
        Some(value.replace("{FIXTURES}", fixtures.to_str().unwrap()))
    }

    fn number<T: std::str::FromStr>(&self, flag: &str, default: T) -> T {
        self.flag(flag).map_or(default, |value| value.parse().ok().unwrap())
    }

    fn options(&self) -> DatasetOptions {
        let png = self.flag("--image-format").as_deref() == Some("png");
        let blank = self.flag("--image-content").as_deref() == Some("blank");
        let image = ImageOptions {
            count: self.number("--image-count", 1),
            random_count: self.has("--random-image-count"),
            resolution: self.number("--image-resolution", "1080p".parse().unwrap()),
            format: if png { ImageFormat::Png } else { ImageFormat::Jpeg },
            content: if blank { ImageContent::Blank } else { ImageContent::Random },
            messages: self.flag("--backend").unwrap().ends_with("-chat"),
        };
        DatasetOptions {
            name: DatasetName::from_name(&self.flag("--dataset-name").unwrap()).unwrap(),
            path: self.flag("--dataset-path").map(PathBuf::from),
            num_prompts: self.number("--num-prompts", 0),
            random_input_len: self.number("--random-input-len", 1024),
            random_output_len: self.number("--random-output-len", 1024),
            random_range_ratio: self.number("--random-range-ratio", 0.0),
            image: Some(image),
            ..DatasetOptions::default()
        }
    }

    fn check(&self) {
        let tokenizer = tokenizer(self.0["tokenizer"].as_str().unwrap());
        let mut draws = Draws::new(self.number("--seed", 0));
        let loaded = load(&self.options(), &tokenizer, &offline(), &mut draws).unwrap();
        let rows = self.0["rows"].as_array().unwrap();
        assert_eq!(loaded.samples.len(), rows.len(), "{}: rows", self.name());
        let fewer = rows.len() < self.number::<usize>("--num-prompts", 0);
        assert_eq!(!loaded.warnings.is_empty(), fewer, "{}: {:?}", self.name(), loaded.warnings);
        for (at, (sample, row)) in loaded.samples.iter().zip(rows).enumerate() {
            self.check_row(&format!("{} row {at}", self.name()), sample, row);
        }
        for want in self.0["probe"]["exponential"].as_array().unwrap() {
            let (got, want) = (draws.numpy.exponential(1.0 / 10.0), want.as_f64().unwrap());
            assert!((got - want).abs() <= want * 1e-15, "{}: {got} is not {want}", self.name());
        }
        for want in self.0["probe"]["random"].as_array().unwrap() {
            assert_eq!(Some(draws.python.random()), want.as_f64(), "{}", self.name());
        }
    }

    fn check_row(&self, place: &str, sample: &Sample, row: &Value) {
        let Prompt::Text(text) = &sample.prompt else { panic!("{place}: {:?}", sample.prompt) };
        assert_eq!(row["prompt"], text.as_str(), "{place}");
        assert_eq!(row["prompt_len"], sample.prompt_len, "{place}: prompt length");
        assert_eq!(row["output_len"], sample.output_len, "{place}: output length");
        let pictures = sample.pictures.as_ref().unwrap();
        let vision = pictures.tokens.unwrap();
        // LLaVA's template says nothing of a text that is no part of a list: upstream then counts all
        // of it to the pictures.
        if self.0["tokenizer"] == "llava" {
            assert!(
                Some(u64::from(vision)) <= row["vision_prompt_len"].as_u64(),
                "{place}: {vision}"
            );
            let each = 336 / 14 * (336 / 14) + "\n".len() as u32;
            assert_eq!(vision, each * pictures.list.len() as u32, "{place}");
        } else {
            assert_eq!(row["vision_prompt_len"], vision, "{place}: vision tokens");
            assert_eq!(row["text_prompt_len"], sample.prompt_len - vision, "{place}: text tokens");
        }
        let recorded = row["pictures"].as_array().unwrap();
        assert_eq!(pictures.list.len(), recorded.len(), "{place}: pictures");
        for (picture, recorded) in pictures.list.iter().zip(recorded) {
            check_picture(place, picture, recorded);
        }
    }
}

fn check_picture(place: &str, picture: &Picture, recorded: &Value) {
    let (head, data) = picture.uri.split_once(',').unwrap();
    assert_eq!(recorded["head"], head, "{place}");
    assert_eq!(recorded["width"], picture.width, "{place}");
    assert_eq!(recorded["height"], picture.height, "{place}");
    let file = STANDARD.decode(data).unwrap();
    // Those that were JPEG in the file: decoders differ by a little.
    let was_jpeg = [(48, 32), (24, 24)].contains(&(picture.width, picture.height));
    if head == "data:image/png;base64" && was_jpeg {
        let pixels = picture.width as usize * picture.height as usize;
        assert_eq!(rgb(&file).len(), 3 * pixels, "{place}");
    } else if head == "data:image/png;base64" {
        assert_eq!(recorded["rgb_sha256"], hash(&rgb(&file)), "{place}: pixels");
    } else {
        let (got, want) = (file.len() as f64, recorded["bytes"].as_f64().unwrap());
        assert!((got - want).abs() <= want * 0.02, "{place}: {got} bytes are not about {want}");
    }
}

/// A PNG's pixels as PIL makes them RGB.
fn rgb(file: &[u8]) -> Vec<u8> {
    let mut decoder = png::Decoder::new(Cursor::new(file));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    match info.color_type {
        png::ColorType::Rgb => pixels,
        png::ColorType::Grayscale => pixels.iter().flat_map(|&gray| [gray; 3]).collect(),
        other => panic!("{other:?}"),
    }
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

#[test]
fn the_same_seed_gives_the_python_tools_texts_and_pictures() {
    let path = workspace_tests().join("golden/images.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        // The workspace always has the file; its absence there is a mistake.
        assert!(!workspace_tests().join("fixtures").exists(), "{} is missing", path.display());
        return;
    };
    let golden: Value = serde_json::from_str(&text).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 117);
    std::thread::scope(|scope| {
        for half in cases.chunks(cases.len().div_ceil(2)) {
            scope.spawn(move || half.iter().for_each(|json| Case(json).check()));
        }
    });
}

fn image(tokenizer: &Tokenizer, image: ImageOptions) -> Result<Vec<Sample>, DatasetError> {
    let options = DatasetOptions {
        name: DatasetName::Image,
        num_prompts: 3,
        random_input_len: 8,
        image: Some(image),
        ..DatasetOptions::default()
    };
    Ok(load(&options, tokenizer, &offline(), &mut Draws::new(1))?.samples)
}

fn small(size: &str) -> ImageOptions {
    ImageOptions { resolution: size.parse().unwrap(), ..ImageOptions::default() }
}

#[test]
fn a_model_whose_rule_is_not_known_has_no_vision_tokens() {
    let options = DatasetOptions {
        name: DatasetName::Image,
        num_prompts: 2,
        random_input_len: 8,
        image: Some(small("20x20")),
        ..DatasetOptions::default()
    };
    let tokenizer = tokenizer("tiny-llama");
    let loaded = load(&options, &tokenizer, &offline(), &mut Draws::new(1)).unwrap();
    for sample in &loaded.samples {
        assert_eq!(sample.pictures.as_ref().unwrap().tokens, None);
        let Prompt::Text(text) = &sample.prompt else { panic!("{:?}", sample.prompt) };
        assert!(text.starts_with("<|im_start|>user\n"), "{text}");
        assert_eq!(sample.prompt_len, tokenizer.count(text, true).unwrap());
    }
    let said = loaded.warnings.join("\n");
    assert!(said.contains("not known") && said.contains("processor"), "{said}");
}

#[test]
fn the_simulated_server_has_a_rule_of_its_own() {
    let tokenizer = Tokenizer::byte_level();
    let options = ImageOptions { count: 2, ..small("28x57") };
    for sample in image(&tokenizer, options).unwrap() {
        let Prompt::Text(text) = &sample.prompt else { panic!("{:?}", sample.prompt) };
        assert_eq!(sample.pictures.unwrap().tokens, Some(2 * 3));
        assert_eq!(sample.prompt_len as usize, text.len() + 6);
    }
}

#[test]
fn a_shape_that_the_model_refuses_is_an_error() {
    let refused = image(&tokenizer("qwen2.5-vl"), small("1x300")).unwrap_err().to_string();
    assert!(refused.contains("300x1 pixels"), "{refused}");
    let none = image(&tokenizer("qwen2.5-vl"), ImageOptions { count: 0, ..small("9x9") });
    assert!(none.unwrap_err().to_string().starts_with("--image-count"));
}

#[test]
fn questions_are_the_same_from_each_kind_of_file() {
    let load = |path: PathBuf| {
        let options = DatasetOptions {
            name: DatasetName::Mmmu,
            path: Some(path),
            num_prompts: 100,
            ..DatasetOptions::default()
        };
        load(&options, &tokenizer("qwen3-vl"), &offline(), &mut Draws::new(1)).unwrap()
    };
    let fixtures = workspace_tests().join("fixtures");
    if !fixtures.exists() {
        return;
    }
    let parquet = load(fixtures.join("mmmu_small.parquet"));
    let json = load(fixtures.join("mmmu_small.jsonl"));
    assert_eq!(parquet.samples, json.samples);
    assert_eq!(parquet.samples.len(), 9);
    let said = parquet.warnings.join("\n");
    for part in
        ["only 9 of 100", "1 without a picture from row 11 on", "1 with a picture that is no PNG"]
    {
        assert!(said.contains(part), "{said}");
    }
    // A file that is named beside the rows, and one that is not there.
    let folder = tempfile::tempdir().unwrap();
    let picture = &parquet.samples[0].pictures.as_ref().unwrap().list[0];
    let data = picture.uri.split_once(',').unwrap().1;
    std::fs::write(folder.path().join("a.png"), STANDARD.decode(data).unwrap()).unwrap();
    let rows =
        [r#"{"question":"?","image_1":"a.png"}"#, r#"{"question":"?","image_1":{"path":"b.png"}}"#];
    std::fs::write(folder.path().join("rows.jsonl"), rows.join("\n")).unwrap();
    let named = load(folder.path().join("rows.jsonl"));
    assert_eq!(named.samples.len(), 1);
    assert_eq!(named.samples[0].pictures.as_ref().unwrap().list[0].uri, picture.uri);
}
