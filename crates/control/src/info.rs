//! What servers tell about themselves.

use serde_json::Value;
use servebench_http::Secrets;
use std::borrow::Cow;

/// The mean accepted length of speculative decoding in a `/server_info` answer.
///
/// SGLang reports it per data-parallel rank; a router of disaggregated servers wraps the decode
/// servers' answers in a list. The first of each is read. It is the server's average since its last
/// flush, not this run's.
pub fn accept_length(info: &Value) -> Option<f64> {
    let server = info.get("decode").and_then(|decode| decode.get(0)).unwrap_or(info);
    server.get("internal_states")?.get(0)?.get("avg_spec_accept_length")?.as_f64()
}

/// The tokenizer a server uses, by its `/model_info` answer.
pub(crate) fn tokenizer_path(info: &Value) -> Option<String> {
    ["tokenizer_path", "model_path"]
        .iter()
        .find_map(|key| info.get(key)?.as_str().filter(|path| !path.is_empty()))
        .map(str::to_owned)
}

/// Keys under which servers tell their own secrets.
const SECRET: [&str; 7] = [
    "admin_api_key",
    "api_key",
    "auth_token",
    "authorization",
    "hf_token",
    "password",
    "ssl_keyfile_password",
];

/// A server's report without the keys and passwords that it was started with (SGLang's `/server_info`
/// holds all of its arguments), and without what it was asked with (`sent`), wherever that stands.
pub(crate) fn without_secrets(mut info: Value, sent: &Secrets) -> Value {
    match &mut info {
        Value::String(text) => {
            if let Cow::Owned(hidden) = sent.hidden(text) {
                *text = hidden;
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields.iter_mut() {
                let secret = SECRET.iter().any(|name| key.eq_ignore_ascii_case(name));
                *value = match value.take() {
                    Value::Null => Value::Null,
                    _ if secret => "***".into(),
                    other => without_secrets(other, sent),
                };
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = without_secrets(item.take(), sent);
            }
        }
        _ => {}
    }
    info
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_wherever_they_stand() {
        let info = json!({
            "api_key": "sk-1", "API_KEY": ["sk-2"], "tokenizer_path": "t", "admin_api_key": null,
            "command": ["serve", "--api-key", "sk-12345"],
            "decode": [{"api_key": "sk-3", "internal_states": [{"avg_spec_accept_length": 2.5}]}],
        });
        let mut sent = Secrets::default();
        sent.add_header("Bearer sk-12345");
        let shown = without_secrets(info, &sent);
        assert_eq!(shown["command"], json!(["serve", "--api-key", "***"]));
        assert!(!shown.to_string().contains("sk-"), "{shown}");
        assert_eq!(accept_length(&shown), Some(2.5));
        assert_eq!(
            (&shown["tokenizer_path"], &shown["admin_api_key"]),
            (&json!("t"), &json!(null))
        );
    }

    #[test]
    fn the_tokenizer_is_named_by_the_first_key_that_says_something() {
        let path = |info| tokenizer_path(&info);
        assert_eq!(path(json!({"tokenizer_path": "t", "model_path": "m"})), Some("t".into()));
        assert_eq!(path(json!({"tokenizer_path": "", "model_path": "m"})), Some("m".into()));
        assert_eq!(path(json!({"tokenizer_path": 3})), None);
    }

    proptest! {
        #[test]
        fn any_answer_can_be_read(text in "[\\[\\]{}:,\"a-z_0-9.]{0,60}") {
            if let Ok(info) = serde_json::from_str::<Value>(&text) {
                let (length, path) = (accept_length(&info), tokenizer_path(&info));
                let shown = without_secrets(info, &Secrets::default());
                prop_assert_eq!(accept_length(&shown), length);
                prop_assert_eq!(tokenizer_path(&shown), path);
            }
        }
    }
}
