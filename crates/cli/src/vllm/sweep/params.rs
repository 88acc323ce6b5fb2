//! Files of parameters: which overrides a command line gets, and how a set of them is called.

use super::words::{python_json, python_text};
use crate::{Code, Failure};
use serde_json::{Map, Value};

/// The key that names a set of overrides, and is no override itself.
const NAME: &str = "_benchmark_name";

/// A set of overrides, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Overrides(pub(super) Map<String, Value>);

impl Overrides {
    /// The sets in a file: a list of objects, or an object of objects whose keys are their names.
    ///
    /// # Errors
    ///
    /// A data failure naming `file` when it is neither, or a name appears twice.
    pub(super) fn read(bytes: &[u8], file: &str) -> Result<Vec<Self>, Failure> {
        let wrong = |error: anyhow::Error| Failure::new(Code::Data, error.context(file.to_owned()));
        let value: Value =
            serde_json::from_slice(bytes).map_err(|error| wrong(anyhow::Error::new(error)))?;
        let sets = match value {
            Value::Array(sets) => sets.into_iter().map(object).collect(),
            Value::Object(sets) => sets
                .into_iter()
                .map(|(name, set)| {
                    let mut named = Map::new();
                    named.insert(NAME.to_owned(), Value::from(name));
                    named.extend(object(set)?.0);
                    Ok(Self(named))
                })
                .collect(),
            _ => Err(anyhow::anyhow!("must be a list of objects or an object of objects")),
        };
        let sets: Vec<Self> = sets.map_err(wrong)?;
        let mut names: Vec<&Value> = Vec::new();
        for name in sets.iter().filter_map(|set| set.0.get(NAME)) {
            if names.contains(&name) {
                return Err(wrong(anyhow::anyhow!("{NAME} {name} appears twice")));
            }
            names.push(name);
        }
        Ok(sets)
    }

    /// Its own name, or its overrides joined by dashes.
    pub(super) fn name(&self) -> String {
        self.0.get(NAME).map_or_else(|| self.text("-"), python_text)
    }

    /// `key=value` of each override.
    pub(super) fn text(&self, separator: &str) -> String {
        let pair = |(key, value): (&String, &Value)| format!("{key}={}", python_text(value));
        self.values().map(pair).collect::<Vec<_>>().join(separator)
    }

    /// With one more override, in the place of an equal key if there is one.
    pub(super) fn with(&self, key: &str, value: impl Into<Value>) -> Self {
        let mut set = self.clone();
        set.0.insert(key.to_owned(), value.into());
        set
    }

    /// Whether it overrides this, spelled with dashes or underscores.
    pub(super) fn has(&self, key: &str) -> bool {
        spellings(key).iter().any(|key| self.0.contains_key(key))
    }

    /// The command with these overrides in place of its own options, others at its end.
    ///
    /// `--key=value` is an option as `--key value` is. A value that overrides a flag without a value goes
    /// behind the flag, and replaces no other option.
    pub(super) fn apply(&self, command: &[String]) -> Vec<String> {
        let mut command = command.to_vec();
        for (key, value) in self.values() {
            let wanted = tokens(key, value);
            let Some((place, joined)) = find(&command, key) else {
                command.extend(wanted);
                continue;
            };
            let next = command.get(place + 1);
            let has_value = next.is_some_and(|next| !next.starts_with("--"));
            let replaced = if !joined && wanted.len() == 2 && has_value { 2 } else { 1 };
            command.splice(place..place + replaced, wanted);
        }
        command
    }

    fn values(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().filter(|(key, _)| *key != NAME)
    }
}

fn object(value: Value) -> Result<Overrides, anyhow::Error> {
    match value {
        Value::Object(set) => Ok(Overrides(set)),
        other => Err(anyhow::anyhow!("a set of overrides must be an object, this is {other}")),
    }
}

/// With dashes, with underscores, as it is; only the part before the first dot varies.
fn spellings(key: &str) -> [String; 3] {
    let (first, rest) = key.split_at(key.find('.').unwrap_or(key.len()));
    [first.replace('_', "-"), first.replace('-', "_"), first.to_owned()]
        .map(|first| format!("{first}{rest}"))
}

/// Where the option is, and whether its value is in the same word.
fn find(command: &[String], key: &str) -> Option<(usize, bool)> {
    let options = spellings(key).map(|key| format!("--{key}"));
    let whole = options
        .iter()
        .find_map(|option| command.iter().position(|word| word == option))
        .map(|place| (place, false));
    let joined = |option: &String| {
        let ours = |word: &String| {
            word.strip_prefix(option.as_str()).is_some_and(|rest| rest.starts_with('='))
        };
        command.iter().position(ours).map(|place| (place, true))
    };
    whole.or_else(|| options.iter().find_map(joined))
}

/// The words of one override.
fn tokens(key: &str, value: &Value) -> Vec<String> {
    let [key_dashed, ..] = spellings(key);
    match value {
        Value::Bool(truth) if key.contains('.') => vec![format!("--{key_dashed}={truth}")],
        Value::Bool(true) => vec![format!("--{key_dashed}")],
        Value::Bool(false) => vec![format!("--no-{key_dashed}")],
        Value::Object(_) => vec![format!("--{key_dashed}"), python_json(value)],
        _ => vec![format!("--{key_dashed}"), python_text(value)],
    }
}

/// Whether every linked pair of variables is in both sets with equal values.
pub(super) fn linked(serve: &Overrides, bench: &Overrides, links: &[(String, String)]) -> bool {
    links.iter().all(|(serve_key, bench_key)| {
        let serve = serve.0.get(serve_key);
        serve.is_some() && serve == bench.0.get(bench_key)
    })
}

/// The folder of a combination inside the experiment's; empty when nothing is overridden.
pub(super) fn folder(serve: &Overrides, bench: &Overrides, workload: Option<&str>) -> String {
    let mut parts = Vec::new();
    for (word, set) in [("SERVE-", serve), ("BENCH-", bench)] {
        if !set.0.is_empty() {
            parts.extend([word.to_owned(), set.name()]);
        }
    }
    if let Some(workload) = workload {
        parts.extend(["WL-".to_owned(), workload.to_owned()]);
    }
    sanitized(&parts.join("-"))
}

/// A name that stays inside its folder.
pub(super) fn sanitized(name: &str) -> String {
    let name = name.replace('/', "_").replace("..", "__");
    let name = name.trim_matches('\'').trim_matches('"');
    if name == "." { "_".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn set(value: Value) -> Overrides {
        object(value).expect("an object")
    }

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn both_forms_are_read() {
        let list = Overrides::read(br#"[{"a": 1}, {"_benchmark_name": "n", "b": true}]"#, "f");
        let names: Vec<String> = list.expect("sets").iter().map(Overrides::name).collect();
        assert_eq!(names, ["a=1", "n"]);
        let named = Overrides::read(br#"{"x": {"a": 1}, "y": {}}"#, "f").expect("sets");
        assert_eq!(named[0], set(json!({"_benchmark_name": "x", "a": 1})));
        assert_eq!(named[1].name(), "y");
        for wrong in
            ["3", "[1]", r#"{"a": 1}"#, "[", r#"[{"_benchmark_name":"a"},{"_benchmark_name":"a"}]"#]
        {
            let failure = Overrides::read(wrong.as_bytes(), "file.json").expect_err("a failure");
            assert!(failure.to_string().contains("file.json"), "{failure}");
        }
    }

    #[test]
    fn options_are_replaced_or_added() {
        for (line, overrides, wanted) in [
            ("c --max_len 3 x", json!({"max-len": 4}), "c --max-len 4 x"),
            ("c --max-len=3 x", json!({"max_len": 4}), "c --max-len 4 x"),
            ("c", json!({"a_b": true, "c_d": false}), "c --a-b --no-c-d"),
            ("c", json!({"a_b.c_d": false}), "c --a-b.c_d=false"),
            ("c --a_b.c_d 1", json!({"a-b.c_d": 2}), "c --a-b.c_d 2"),
            ("c --flag --next 1", json!({"flag": 2}), "c --flag 2 --next 1"),
            ("c --flag", json!({"flag": 2}), "c --flag 2"),
            ("c --x 1", json!({"x": null, "_benchmark_name": "n"}), "c --x None"),
            ("c", json!({"l": [1]}), "c --l [1]"),
        ] {
            assert_eq!(set(overrides).apply(&words(line)), words(wanted), "{line}");
        }
        assert_eq!(set(json!({"o": {"a": [1, 2]}})).apply(&[]), ["--o", r#"{"a": [1, 2]}"#]);
    }

    #[test]
    fn folders_are_named_as_upstream() {
        let (serve, bench, none) = (set(json!({"a": 1})), set(json!({"b": 2})), set(json!({})));
        assert_eq!(folder(&serve, &bench, None), "SERVE--a=1-BENCH--b=2");
        assert_eq!(folder(&none, &none, None), "");
        assert_eq!(folder(&none, &none, Some("request_rate=4")), "WL--request_rate=4");
        assert_eq!(folder(&set(json!({"m": "../x"})), &none, None), "SERVE--m=___x");
    }

    #[test]
    fn links_need_equal_values_on_both_sides() {
        let links = [("a".to_owned(), "b".to_owned())];
        let serve = set(json!({"a": 1}));
        assert!(linked(&serve, &set(json!({"b": 1})), &links));
        assert!(!linked(&serve, &set(json!({"b": 2})), &links));
        assert!(!linked(&set(json!({})), &set(json!({})), &links));
    }

    proptest! {
        #[test]
        fn foreign_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(Overrides::read(&bytes, "f"));
        }

        #[test]
        fn a_folder_has_no_slash_and_no_parent(name in any::<String>()) {
            let name = sanitized(&name);
            prop_assert!(!name.contains('/') && !name.contains("..") && name != ".");
        }

        #[test]
        fn overrides_applied_twice_change_nothing(
            keys in prop::collection::btree_map("[a-z]{1,3}(_[a-z]{1,3})?", 0_u32..9, 0..5),
            command in prop::collection::vec("(--)?[a-z]{1,3}(-[a-z]{1,3})?", 0..8),
        ) {
            let set = Overrides(keys.into_iter().map(|(key, value)| (key, Value::from(value))).collect());
            let once = set.apply(&command);
            prop_assert_eq!(set.apply(&once), once);
        }
    }
}
