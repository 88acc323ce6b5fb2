use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use servebench_core::random::NumpyLegacy;

fn config() -> Value {
    json!({
        "filetype": "generate_conversations",
        "num_conversations": 3,
        "text_files": ["words.txt"],
        "prompt_input": {
            "num_turns": {"distribution": "uniform", "min": 3, "max": 6},
            "common_prefix_num_tokens": {"distribution": "constant", "value": 20},
            "prefix_num_tokens": {"distribution": "lognormal", "average": 50, "max": 400},
            "num_tokens": {"distribution": "uniform", "min": 120, "max": 160},
        },
        "prompt_output": {"num_tokens": {"distribution": "poisson", "alpha": 30}},
    })
}

fn read(config: &Value) -> Result<GeneratorConfig, String> {
    let found = GeneratorConfig::read(&config.to_string(), Path::new("gen.json"));
    found.map_err(|error| error.to_string())
}

fn conversations(text: &str) -> Result<Vec<MultiTurnConversation>, String> {
    file::read(text, Path::new("talks.json")).map_err(|error| error.to_string())
}

#[test]
fn a_mistake_is_named_by_its_field() {
    let cases = [
        ("/filetype", json!("other"), "`filetype` must be \"generate_conversations\""),
        ("/num_conversations", json!(0), "`num_conversations` must be a whole number from 1"),
        ("/text_files", json!([]), "`text_files` must be a list of file names"),
        ("/prompt_input", json!(7), "`prompt_input` must be an object, not 7"),
        ("/prompt_output/num_tokens", json!("x"), "`prompt_output.num_tokens` must be an object"),
        (
            "/prompt_input/num_turns/distribution",
            json!("normal"),
            "`prompt_input.num_turns.distribution` must be one of constant, uniform",
        ),
        ("/prompt_input/num_turns/min", json!(0), "`prompt_input.num_turns.min` must be above 0"),
        ("/prompt_input/num_turns/min", json!(9), "must not be above max: 9 is above 6"),
        (
            "/prompt_input/prefix_num_tokens/average",
            json!(0.5),
            "`prompt_input.prefix_num_tokens.average` must be at least 1",
        ),
    ];
    for (pointer, value, want) in cases {
        let mut config = config();
        *config.pointer_mut(pointer).unwrap() = value;
        let said = read(&config).unwrap_err();
        assert!(said.contains(want) && said.contains("gen.json"), "{said} has no {want}");
    }
    for field in ["filetype", "num_conversations", "text_files", "prompt_input", "prompt_output"] {
        let mut config = config();
        config.as_object_mut().unwrap().remove(field);
        assert!(read(&config).unwrap_err().contains(&format!("`{field}` is missing")));
    }
    let mut both = config();
    both["prompt_input"]["prefix_num_tokens"]["sigma"] = json!(1);
    assert!(read(&both).unwrap_err().contains("does not go with average"));
    assert!(read(&json!("text")).is_err());
}

#[test]
fn distributions_show_themselves_as_in_python() {
    let config = read(&config()).unwrap();
    let shown = [&config.num_turns, &config.common_prefix_num_tokens, &config.prefix_num_tokens];
    let want =
        ["UniformDistribution[3, 6]", "Constant[20]", "LognormalDistribution[50, 0.85, 400]"];
    assert_eq!(shown.map(ToString::to_string), want);
    assert_eq!(config.output_num_tokens.to_string(), "PoissonDistribution[30]");
}

#[test]
fn a_file_is_read_or_the_field_is_named() {
    let talk = r#"[{"id":"a","messages":[{"role":"user","content":"Hi"}],"more":1}]"#;
    let want = MultiTurnConversation { id: "a".into(), messages: vec!["Hi".into()] };
    assert_eq!(conversations(talk), Ok(vec![want]));
    for (text, want) in [
        ("[]", "no conversation"),
        (r#"[{"id":"a","messages":[]}]"#, "`[0].messages` nothing is said"),
        (
            r#"[{"id":"a","messages":[{"role":"assistant","content":"x"}]}]"#,
            "`[0].messages[0].role` must be `user`, not `assistant`",
        ),
        (&talk.replacen('[', &format!("[{},", &talk[1..talk.len() - 1]), 1), "is there twice"),
    ] {
        let said = conversations(text).unwrap_err();
        assert!(said.contains(want) && said.contains("talks.json"), "{said} has no {want}");
    }
    assert!(conversations(r#"[{"id":7,"messages":[]}]"#).is_err());
}

#[test]
fn too_little_text_is_an_error_that_says_how_much_there_is() {
    let config = read(&config()).unwrap();
    let made = generate_multi_turn(&config, "too short", &Tokenizer::byte_level(), 0);
    let said = made.unwrap_err().to_string();
    assert!(said.contains("`text_files` have 9 tokens"), "{said}");
}

proptest! {
    #[test]
    fn messages_have_the_lengths_that_were_drawn(seed: u32, turns in 1..9_u32, common in 3..40_u32) {
        let mut config = config();
        config["prompt_input"]["num_turns"] = json!({"distribution": "constant", "value": turns});
        config["prompt_input"]["common_prefix_num_tokens"]["value"] = json!(common);
        let config = read(&config).unwrap();
        // One token is one byte here.
        let text = "0123456789".repeat(3000);
        let made = generate_multi_turn(&config, &text, &Tokenizer::byte_level(), seed).unwrap();
        let mut numpy = NumpyLegacy::new(seed);
        let turns = turns.max(2).next_multiple_of(2) as usize;
        let prefixes = config.prefix_num_tokens.sample(&mut numpy, 3);
        for (number, (conversation, prefix)) in made.iter().zip(prefixes).enumerate() {
            prop_assert_eq!(conversation.messages.len(), turns);
            let inputs = config.num_tokens.sample(&mut numpy, turns);
            let outputs = config.output_num_tokens.sample(&mut numpy, turns);
            for (turn, message) in conversation.messages.iter().enumerate() {
                let want = match turn {
                    0 => inputs[0] as usize + prefix as usize + format!("{number}, ").len(),
                    _ if turn.is_multiple_of(2) => inputs[turn] as usize,
                    _ => outputs[turn].max(1) as usize,
                };
                prop_assert_eq!(message.len(), want, "turn {}", turn);
            }
        }
        let shared = &text[..common as usize - 2];
        prop_assert!(made.iter().all(|it| it.messages[0].starts_with(shared)));
    }

    #[test]
    fn a_file_holds_what_was_written(
        talks in prop::collection::btree_map(".*", prop::collection::vec(".*", 1..6), 1..5),
    ) {
        let role = |at: usize| if at.is_multiple_of(2) { "user" } else { "assistant" };
        let message = |(at, text): (usize, &String)| json!({"role": role(at), "content": text});
        let item = |(id, said): (&String, &Vec<String>)| {
            json!({"id": id, "messages": said.iter().enumerate().map(message).collect::<Vec<_>>()})
        };
        let written = talks.iter().map(item).collect::<Value>().to_string();
        let read = conversations(&written).unwrap();
        let back = read.into_iter().map(|it| (it.id, it.messages)).collect();
        prop_assert_eq!(talks, back);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzzed(&bytes);
    }

    #[test]
    fn no_value_in_a_configuration_panics(
        place in 0..9_usize,
        value in prop_oneof![
            any::<f64>().prop_map(|number| json!(number)),
            any::<i64>().prop_map(|number| json!(number)),
            Just(json!(null)), Just(json!([1])), Just(json!("zipf")), Just(json!("lognormal")),
        ],
    ) {
        let mut config = config();
        let at = [
            "/num_conversations", "/text_files", "/prompt_input/num_turns/min",
            "/prompt_input/num_turns/max", "/prompt_input/num_turns/distribution",
            "/prompt_input/common_prefix_num_tokens/value",
            "/prompt_input/prefix_num_tokens/average", "/prompt_input/prefix_num_tokens/max",
            "/prompt_output/num_tokens/alpha",
        ][place];
        *config.pointer_mut(at).unwrap() = value;
        fuzzed(config.to_string().as_bytes());
    }
}
