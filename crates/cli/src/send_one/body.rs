//! The body of the one request, on SGLang's native route.

use super::args::PromptArgs;
use crate::Failure;
use serde_json::{Value, json};
use servebench_core::random::PythonRandom;
use std::hash::{BuildHasher, RandomState};

/// A prompt that every model answers at length.
const PROMPT: &str = "User: Write a complete web server with FastAPI that keeps a to-do list, and show all of its \
     Python code.\n\nAssistant:";
const JSON_PROMPT: &str = "User: Name the capital of France, its number of inhabitants and three things to see there. \
     Answer with a JSON object.\n\nAssistant:";
const IMAGE_PROMPT: &str = "User: Say in one short sentence what this picture shows.\n\nAssistant:";
const IMAGES_PROMPT: &str =
    "User: Say in one short sentence what these pictures have in common.\n\nAssistant:";
/// The example image of SGLang's repository, which the server fetches.
const IMAGE: &str =
    "https://raw.githubusercontent.com/sgl-project/sglang/main/examples/assets/example_image.png";
/// Images that `--many-images` sends.
const IMAGES: usize = 4;
/// Any JSON object.
const SCHEMA: &str = r#"{"type": "object"}"#;

/// Checks what cannot go together.
pub(super) fn check(args: &PromptArgs) -> Result<(), Failure> {
    let special =
        [("--image", args.image), ("--many-images", args.many_images), ("--json", args.json)];
    let Some((flag, _)) = special.iter().find(|(_, given)| *given) else { return Ok(()) };
    if args.batch_size > 1 {
        return Err(Failure::usage(format!("{flag} goes with --batch-size 1 only")));
    }
    if args.random_input_len.is_some() {
        return Err(Failure::usage(format!("{flag} and --random-input-len exclude each other")));
    }
    Ok(())
}

/// The body, with every field that the Python tool sends.
pub(super) fn body(args: &PromptArgs) -> Value {
    let (key, prompt) = match args.random_input_len {
        Some(length) => ("input_ids", ids(args, length)),
        None => ("text", texts(args)),
    };
    let image = match (args.image, args.many_images) {
        (true, _) => json!(IMAGE),
        (false, true) => json!(vec![IMAGE; IMAGES]),
        (false, false) => Value::Null,
    };
    json!({
        key: prompt,
        "image_data": image,
        "sampling_params": {
            "sampling_seed": args.seed,
            "temperature": args.temperature,
            "max_new_tokens": args.max_new_tokens,
            "frequency_penalty": args.frequency_penalty,
            "presence_penalty": args.presence_penalty,
            "json_schema": args.json.then_some(SCHEMA),
            "stop": (!args.stop.is_empty()).then_some(&args.stop),
        },
        "return_logprob": args.return_logprob,
        "stream": args.stream,
    })
}

/// The prompt, or one for each of a batch.
fn texts(args: &PromptArgs) -> Value {
    let built_in = match (args.json, args.image, args.many_images) {
        (true, ..) => JSON_PROMPT,
        (_, true, _) => IMAGE_PROMPT,
        (_, _, true) => IMAGES_PROMPT,
        _ => PROMPT,
    };
    let prompt = args.prompt.as_deref().unwrap_or(built_in);
    if args.batch_size == 1 {
        return json!(prompt);
    }
    let text = |index: u32| {
        if args.different_prompts { format!("Test case {index}: {prompt}") } else { prompt.into() }
    };
    (1..=args.batch_size).map(text).collect()
}

/// Random ids, other ones each time: the same would be found in the server's cache.
fn ids(args: &PromptArgs, length: u32) -> Value {
    let mut random = PythonRandom::new(RandomState::new().hash_one("send-one") as u32);
    let mut draw = || random.choices_index(args.random_input_vocab_size, length as usize);
    match (args.batch_size, args.different_prompts) {
        (1, _) => json!(draw()),
        (batch, true) => (0..batch).map(|_| json!(draw())).collect(),
        (batch, false) => json!(vec![draw(); batch as usize]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        prompt: PromptArgs,
    }

    fn args(words: &str) -> PromptArgs {
        let words = words.split_whitespace().map(Into::into).collect();
        let line = crate::parse_as::<Line>(words, "a tool", &[], &crate::Io::captured().0);
        line.unwrap_or_else(|error| panic!("{error}")).expect("arguments").prompt
    }

    fn of(words: &str) -> Value {
        let args = args(words);
        check(&args).expect(words);
        body(&args)
    }

    #[test]
    fn every_field_goes_out_with_its_default() {
        let want = json!({"text": PROMPT, "image_data": null,
            "sampling_params": {"sampling_seed": null, "temperature": 0.0, "max_new_tokens": 512,
                "frequency_penalty": 0.0, "presence_penalty": 0.0, "json_schema": null,
                "stop": null},
            "return_logprob": false, "stream": false});
        assert_eq!(of(""), want);
    }

    #[test]
    fn every_flag_reaches_its_field() {
        let body = of("--prompt Hi --batch-size 2 --different-prompts --seed 7 --temperature 0.5 \
            --max-new-tokens 3 --frequency-penalty 0.25 --presence-penalty -0.5 --return-logprob \
            --stream --stop a b");
        let want = json!({"text": ["Test case 1: Hi", "Test case 2: Hi"], "image_data": null,
            "sampling_params": {"sampling_seed": 7, "temperature": 0.5, "max_new_tokens": 3,
                "frequency_penalty": 0.25, "presence_penalty": -0.5, "json_schema": null,
                "stop": ["a", "b"]},
            "return_logprob": true, "stream": true});
        assert_eq!(body, want);
        assert_eq!(of("--prompt Hi --batch-size 2")["text"], json!(["Hi", "Hi"]));
    }

    #[test]
    fn random_ids_lie_below_the_vocabulary_and_differ_when_asked_to() {
        let body = of("--random-input-len 40 --random-input-vocab-size 3 --batch-size 2");
        let rows = body["input_ids"].as_array().expect("a batch");
        assert!(body.get("text").is_none() && rows.len() == 2 && rows[0] == rows[1], "{body}");
        let row = rows[0].as_array().expect("ids");
        assert!(row.len() == 40 && row.iter().all(|id| id.as_u64().expect("an id") < 3));
        let other = of("--random-input-len 40 --batch-size 2 --different-prompts");
        assert_ne!(other["input_ids"][0], other["input_ids"][1]);
        assert_eq!(of("--random-input-len 4")["input_ids"].as_array().map(Vec::len), Some(4));
    }

    #[test]
    fn images_and_json_bring_their_own_prompts() {
        let image = of("--image");
        assert_eq!((&image["text"], &image["image_data"]), (&json!(IMAGE_PROMPT), &json!(IMAGE)));
        let many = of("--many-images");
        assert_eq!(many["image_data"], json!([IMAGE, IMAGE, IMAGE, IMAGE]));
        let object = of("--json");
        assert_eq!(object["sampling_params"]["json_schema"], SCHEMA);
        assert_eq!(object["text"], JSON_PROMPT);
        for flag in ["--image", "--many-images", "--json"] {
            for with in ["--batch-size 2", "--random-input-len 4"] {
                let failure = check(&args(&format!("{flag} {with}"))).expect_err(flag);
                assert!(failure.to_string().contains(flag), "{failure}");
            }
        }
    }
}
