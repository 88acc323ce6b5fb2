//! What Python takes for blanks at the ends of a text: four separators more than Rust does.

use minijinja::{Error, State, Value};
use minijinja_contrib::pycompat;

fn is_blank(character: char) -> bool {
    character.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&character)
}

/// The filter `trim`: of blanks, or of the characters given.
#[expect(clippy::needless_pass_by_value, reason = "the engine hands arguments over by value")]
pub(super) fn trim(text: String, characters: Option<String>) -> String {
    match characters {
        Some(set) => text.trim_matches(|character| set.contains(character)).to_owned(),
        None => text.trim_matches(is_blank).to_owned(),
    }
}

/// Python's methods of values.
pub(super) fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    arguments: &[Value],
) -> Result<Value, Error> {
    match (value.as_str(), method, arguments) {
        (Some(text), "strip", []) => Ok(text.trim_matches(is_blank).into()),
        (Some(text), "lstrip", []) => Ok(text.trim_start_matches(is_blank).into()),
        (Some(text), "rstrip", []) => Ok(text.trim_end_matches(is_blank).into()),
        _ => pycompat::unknown_method_callback(state, value, method, arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ChatTemplate;
    use serde_json::json;

    #[test]
    fn blanks_are_pythons() {
        // Each as Python's jinja2 renders it.
        let render = |source: &str, content: &str| {
            let template = ChatTemplate::new("t", source, Vec::new()).unwrap();
            template.render(&[json!({"content": content})], false).unwrap()
        };
        let odd = "\u{1c}\u{85} \u{1f}a\u{1e}b\u{1d}\u{a0}\n";
        let content = "messages[0].content";
        for (source, want) in [
            ("| trim", "a\u{1e}b"),
            (".strip()", "a\u{1e}b"),
            (".lstrip()", "a\u{1e}b\u{1d}\u{a0}\n"),
            (".rstrip()", "\u{1c}\u{85} \u{1f}a\u{1e}b"),
            (".strip('\n')", "\u{1c}\u{85} \u{1f}a\u{1e}b\u{1d}\u{a0}"),
            ("| trim('\n\u{a0}\u{1d}b')", "\u{1c}\u{85} \u{1f}a\u{1e}"),
        ] {
            assert_eq!(render(&format!("{{{{ {content}{source} }}}}"), odd), want, "{source}");
        }
        assert_eq!(render("{{ 7 | trim }}", ""), "7");
    }
}
