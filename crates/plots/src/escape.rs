//! Text from outside, made harmless where it is put.

/// Text as content or attribute value of XML and HTML.
///
/// What XML 1.0 has no character for becomes U+FFFD.
pub(crate) fn markup(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' | '\r' => escaped.push(' '),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// JSON that can stand inside a `<script>` element: no `<` ends it.
///
/// In JSON `<`, `>` and `&` occur inside strings only, where the escape means the same.
pub(crate) fn script_json(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_inert() {
        assert_eq!(markup("a<b>&\"'\n\0"), "a&lt;b&gt;&amp;&quot;&#39; \u{fffd}");
    }

    #[test]
    fn a_script_is_not_ended_by_its_data() {
        let json = serde_json::json!(["</script><!--", "&amp;"]).to_string();
        let safe = script_json(&json);
        assert!(!safe.contains(['<', '>', '&']));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&safe).unwrap(),
            serde_json::json!(["</script><!--", "&amp;"])
        );
    }
}
