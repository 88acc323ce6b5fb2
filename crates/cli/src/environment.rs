//! Settings that come from the environment: the one place that reads it.

use std::fmt;
use std::path::PathBuf;

/// The environment variables that the commands honour.
#[derive(Clone, Default)]
pub struct Environment {
    /// This program's own file, which it can start once more; `None` when a command is called from
    /// within another program.
    pub program: Option<PathBuf>,
    lookup: std::collections::HashMap<String, String>,
}

/// The variables read, with what they do: for the documentation.
pub const VARIABLES: [(&str, &str); 21] = [
    ("OPENAI_API_KEY", "sent to the server as `Authorization: Bearer <value>` with every call"),
    ("API_KEY", "sent as `Authorization: <value>` when OPENAI_API_KEY is not set"),
    (
        "SAVE_TO_PYTORCH_BENCHMARK_FORMAT",
        "set to anything: bench-vllm writes `NAME.pytorch.json` beside a result it saves",
    ),
    ("SGLANG_IS_IN_CI", "`true` or `1`: flush the cache before a run on an sglang backend"),
    (
        "GITHUB_STEP_SUMMARY",
        "file that bench-one-batch-server appends its report to when SGLANG_IS_IN_CI is on",
    ),
    ("SGLANG_TORCH_PROFILER_DIR", "where the server writes profiler traces (default /tmp)"),
    (
        "SGLANG_USE_MODELSCOPE",
        "`true` is refused when a download is needed: only the hub is spoken",
    ),
    ("HF_HOME", "folder of the hub's cache (default ~/.cache/huggingface)"),
    ("HF_HUB_CACHE", "folder of downloaded files (default $HF_HOME/hub)"),
    ("HF_ENDPOINT", "address of the hub"),
    ("HF_TOKEN", "token for the hub"),
    ("HF_TOKEN_PATH", "file that holds the token (default $HF_HOME/token)"),
    ("HF_HUB_OFFLINE", "`1`: use cached files only"),
    (
        "XDG_CACHE_HOME",
        "folder of caches: generated data is kept in its `servebench` (default ~/.cache)",
    ),
    ("SSL_CERT_FILE", "further certificate authorities for https, in PEM"),
    ("MULTITURN_BENCH_MAX_RETRIES", "default of `bench-vllm multi-turn --max-retries`"),
    ("REQUESTS_CA_BUNDLE", "the same, when SSL_CERT_FILE is not set"),
    ("HTTP_PROXY", "proxy before http servers, in small letters too; see --no-proxy"),
    ("HTTPS_PROXY", "proxy before https servers, and before the hub; in small letters too"),
    ("ALL_PROXY", "proxy where theirs is not set; in small letters too"),
    (
        "NO_PROXY",
        "names, addresses and networks that are reached without a proxy; in small letters too",
    ),
];

/// Those whose values are secrets, or may hold some.
pub(crate) const SECRET_VARIABLES: [&str; 7] = [
    "OPENAI_API_KEY",
    "API_KEY",
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
];

impl Environment {
    /// The process's environment.
    pub fn from_process() -> Self {
        Self {
            program: std::env::current_exe().ok(),
            lookup: std::env::vars_os()
                .filter_map(|(key, value)| {
                    Some((key.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
        }
    }

    /// An environment that holds just `variables`, for tests.
    pub fn from_pairs<const N: usize>(variables: [(&str, &str); N]) -> Self {
        let own = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        Self { lookup: variables.into_iter().map(own).collect(), ..Self::default() }
    }

    /// The variable's value; one that is set to nothing counts as not set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.lookup.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// The same without the variable `name`.
    #[must_use]
    pub fn without(&self, name: &str) -> Self {
        let mut less = self.clone();
        less.lookup.remove(name);
        less
    }

    /// True for `true` and `1`, whatever the case.
    pub fn is_on(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value == "1" || value.eq_ignore_ascii_case("true"))
    }

    /// The value of the `Authorization` header for the server, if there is a key.
    pub fn authorization(&self) -> Option<String> {
        match self.get("OPENAI_API_KEY") {
            Some(key) => Some(format!("Bearer {key}")),
            None => self.get("API_KEY").map(str::to_owned),
        }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values stay out: some are secrets.
        f.debug_struct("Environment")
            .field("program", &self.program)
            .field("variables", &self.lookup.len())
            .finish()
    }
}
