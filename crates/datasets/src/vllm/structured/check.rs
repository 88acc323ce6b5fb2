//! Whether replies are of the form that was asked for.

use super::StructuredKind;
use super::constraint::{CHOICES, REGEX};
use regex::Regex;
use serde::de::IgnoredAny;
use std::sync::LazyLock;

/// The e-mail address at the beginning of a text.
static BEGINS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!("^(?:{REGEX})")).ok());

/// A text that is the e-mail address.
static IS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!("^(?:{REGEX})$")).ok());

/// The sentences of the grammar.
static SENTENCE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^SELECT col_[12]  from table_[12]  where col_[12] = [12] $").ok()
});

fn matches(pattern: &LazyLock<Option<Regex>>, text: &str) -> bool {
    pattern.as_ref().is_some_and(|pattern| pattern.is_match(text))
}

impl StructuredKind {
    /// Whether a reply is right by the script's own rule; `None` where it has none.
    ///
    /// For JSON: without blanks and new lines, what stands from the first `{` to the last `}` can be read.
    /// Neither the schema nor what is around it is looked at. For the regular expression: the reply
    /// begins with a match. For the choice: it is one of the words.
    pub fn is_correct(self, reply: &str) -> Option<bool> {
        match self {
            Self::Json | Self::JsonUnique | Self::XgrammarBench => Some(holds_json(reply)),
            Self::Regex => Some(matches(&BEGINS, reply)),
            Self::Choice => Some(CHOICES.contains(&reply)),
            Self::Grammar => None,
        }
    }

    /// Whether a reply is of the form asked for as a whole: one JSON value and nothing else, the whole regular
    /// expression, one of the words, a sentence of the grammar. A schema is not looked at.
    ///
    /// That is what a server that heeds the constraint sends, unless the reply was cut off.
    pub fn is_whole(self, reply: &str) -> bool {
        match self {
            Self::Json | Self::JsonUnique | Self::XgrammarBench => is_json(reply),
            Self::Regex => matches(&IS, reply),
            Self::Choice => CHOICES.contains(&reply),
            Self::Grammar => matches(&SENTENCE, reply),
        }
    }
}

fn holds_json(reply: &str) -> bool {
    let text = reply.replace(['\n', ' '], "");
    match (text.find('{'), text.rfind('}')) {
        (Some(start), Some(end)) if start < end => is_json(&text[start..=end]),
        _ => false,
    }
}

fn is_json(text: &str) -> bool {
    // Nothing is built, so that neither depth nor the size of a number matters.
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn json_is_looked_for_and_not_compared() {
        let right = |reply| StructuredKind::Json.is_correct(reply).unwrap();
        for reply in [
            r#"{"name": "Ada"}"#,
            "Here it is: {\"a\":\n [1, 2]} and that is all",
            "{}",
            // Blanks go, also those in texts and numbers.
            r#"{"a": 1 2}"#,
            r#"{"a": 1e999, "b": "\ud800"}"#,
        ] {
            assert!(right(reply), "{reply}");
        }
        for reply in ["", "{", "}{", r#"{"a": "#, "[1]", "{a: 1}", "{\"a\": \"\t\"}", "{} and {}"] {
            assert!(!right(reply), "{reply}");
        }
        let deep = "{\"a\":".repeat(500) + "1" + &"}".repeat(500);
        assert!(right(&deep));
    }

    #[test]
    fn whole_replies_have_nothing_beside() {
        for kind in
            [StructuredKind::Json, StructuredKind::JsonUnique, StructuredKind::XgrammarBench]
        {
            assert!(kind.is_whole(" {\"a\": [1]}\n") && kind.is_whole("[1]"));
            assert!(
                !kind.is_whole("so: {}") && !kind.is_whole("{\"a\": 1 2}") && !kind.is_whole("")
            );
        }
    }

    #[test]
    fn an_address_stands_at_the_beginning() {
        let regex = StructuredKind::Regex;
        for (reply, begins, whole) in [
            ("turing@enigma.com\n", true, true),
            ("alan_1@énigma.com\n", true, true),
            ("turing@enigma.com\nand more", true, false),
            ("alan.turing@enigma.com\n", false, false),
            (" turing@enigma.com\n", false, false),
            ("turing@enigma.com", false, false),
            ("turing@enigmaxcom\n", false, false),
            ("", false, false),
        ] {
            assert_eq!(regex.is_correct(reply), Some(begins), "{reply:?}");
            assert_eq!(regex.is_whole(reply), whole, "{reply:?}");
        }
    }

    #[test]
    fn choices_are_exact() {
        let choice = StructuredKind::Choice;
        for (reply, is) in
            [("Positive", true), ("Negative", true), ("positive", false), (" Positive", false)]
        {
            assert_eq!(
                (choice.is_correct(reply), choice.is_whole(reply)),
                (Some(is), is),
                "{reply}"
            );
        }
    }

    #[test]
    fn sentences_are_those_of_the_grammar() {
        let grammar = StructuredKind::Grammar;
        assert_eq!(grammar.is_correct("anything"), None);
        assert!(grammar.is_whole("SELECT col_2  from table_1  where col_1 = 2 "));
        for reply in [
            "SELECT col_2 from table_1  where col_1 = 2 ",
            "SELECT col_3  from table_1  where col_1 = 2 ",
            "",
        ] {
            assert!(!grammar.is_whole(reply), "{reply}");
        }
    }

    proptest! {
        #[test]
        fn what_is_whole_is_correct(text in "[ -~\n]{0,40}", number: i64, word in "\\w{1,5}") {
            let replies = [text, json!({"a": number, "b": [word]}).to_string(), format!("{word}@{word}.com\n")];
            for reply in &replies {
                for kind in StructuredKind::ALL {
                    // A JSON value that is no object is whole, but the script looks for an object.
                    if kind.is_whole(reply) && reply.trim_start().starts_with('{') {
                        prop_assert!(kind.is_correct(reply).is_none_or(|right| right), "{kind:?} {reply}");
                    }
                }
            }
        }
    }
}
