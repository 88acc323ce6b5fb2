//! Where the hub and its cache are.

use std::fmt;
use std::path::{Path, PathBuf};

/// How to reach the Hugging Face hub and where its files are kept.
#[derive(Clone, PartialEq, Eq)]
pub struct HubConfig {
    /// The folder of the cache (the one that holds `models--…` and `datasets--…`).
    pub cache_dir: PathBuf,
    /// The hub's address, without a slash at the end.
    pub endpoint: String,
    /// The access token. It is sent to the endpoint and never shown.
    pub token: Option<String>,
    /// Use the cache only and never the network.
    pub offline: bool,
    /// Requests go through a proxy, so that the endpoint itself need not be reachable.
    pub proxied: bool,
    /// Largest file that is downloaded, in bytes.
    pub size_limit: u64,
}

impl HubConfig {
    /// The hub's own address.
    pub const ENDPOINT: &str = "https://huggingface.co";
    /// What a benchmark reads is far smaller: tokenizers, and the parts of datasets.
    pub const SIZE_LIMIT: u64 = 16 << 30;

    /// The cache in `cache_dir` and the public hub, without a token.
    pub fn new(cache_dir: impl Into<PathBuf>) -> Self {
        Self {
            cache_dir: cache_dir.into(),
            endpoint: Self::ENDPOINT.to_owned(),
            token: None,
            offline: false,
            proxied: false,
            size_limit: Self::SIZE_LIMIT,
        }
    }

    /// Settings from the variables that the Python libraries read, by way of a lookup function.
    ///
    /// `HF_HUB_CACHE`, else `HF_HOME/hub`, else `XDG_CACHE_HOME/huggingface/hub`, else
    /// `HOME/.cache/huggingface/hub`; `HF_ENDPOINT`; `HF_TOKEN`, else the file `HF_TOKEN_PATH`,
    /// else `HF_HOME/token`; `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE`; the usual proxy variables.
    /// An empty value counts as unset.
    pub fn from_vars(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let get = |name: &str| lookup(name).filter(|value| !value.trim().is_empty());
        let path = |name: &str| get(name).map(|value| expand_home(&value, &get));
        let user = || path("HOME").or_else(|| path("USERPROFILE")).unwrap_or_default();
        let home = path("HF_HOME").unwrap_or_else(|| {
            path("XDG_CACHE_HOME").unwrap_or_else(|| user().join(".cache")).join("huggingface")
        });
        let cache_dir = path("HF_HUB_CACHE")
            .or_else(|| path("HUGGINGFACE_HUB_CACHE"))
            .unwrap_or_else(|| home.join("hub"));
        let token_path = path("HF_TOKEN_PATH").unwrap_or_else(|| home.join("token"));
        let token = get("HF_TOKEN").or_else(|| get("HUGGING_FACE_HUB_TOKEN"));
        let truthy = |name| get(name).is_some_and(|value| is_true(&value));
        Self {
            cache_dir,
            endpoint: get("HF_ENDPOINT")
                .map_or(Self::ENDPOINT.to_owned(), |url| url.trim_end_matches('/').to_owned()),
            token: token.map(|text| text.trim().to_owned()).or_else(|| read_token(&token_path)),
            offline: truthy("HF_HUB_OFFLINE") || truthy("TRANSFORMERS_OFFLINE"),
            proxied: ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY"]
                .iter()
                .any(|name| get(name).is_some() || get(&name.to_ascii_lowercase()).is_some()),
            size_limit: Self::SIZE_LIMIT,
        }
    }

    /// The hub's address without credentials.
    pub(crate) fn shown_endpoint(&self) -> String {
        let Some((scheme, rest)) = self.endpoint.split_once("://") else {
            return self.endpoint.clone();
        };
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = authority.rsplit('@').next().unwrap_or_default();
        format!("{scheme}://{host}{path}")
    }
}

impl fmt::Debug for HubConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubConfig")
            .field("cache_dir", &self.cache_dir)
            .field("endpoint", &self.shown_endpoint())
            .field("token", &self.token.as_ref().map(|_| "…"))
            .field("offline", &self.offline)
            .field("proxied", &self.proxied)
            .field("size_limit", &self.size_limit)
            .finish()
    }
}

fn expand_home(path: &str, get: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    match (path.strip_prefix("~/"), get("HOME")) {
        (Some(rest), Some(home)) => Path::new(&home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// The values that the Python libraries take for yes.
fn is_true(value: &str) -> bool {
    matches!(value.trim().to_ascii_uppercase().as_str(), "1" | "ON" | "YES" | "TRUE")
}

fn read_token(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let token = text.trim();
    (!token.is_empty()).then(|| token.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(vars: &[(&str, &str)]) -> HubConfig {
        HubConfig::from_vars(|name| {
            vars.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_cache_is_where_python_has_it() {
        let cache = |vars: &[(&str, &str)]| from(vars).cache_dir;
        assert_eq!(cache(&[("HOME", "/u")]), Path::new("/u/.cache/huggingface/hub"));
        assert_eq!(
            cache(&[("HOME", "/u"), ("XDG_CACHE_HOME", "/x")]),
            Path::new("/x/huggingface/hub")
        );
        assert_eq!(cache(&[("HOME", "/u"), ("HF_HOME", "~/hf")]), Path::new("/u/hf/hub"));
        assert_eq!(cache(&[("HF_HOME", "/hf"), ("HF_HUB_CACHE", "/c")]), Path::new("/c"));
    }

    #[test]
    fn the_other_settings_are_read() {
        let config = from(&[
            ("HF_ENDPOINT", "http://mirror/"),
            ("HF_TOKEN", " hf_secret\n"),
            ("HF_HUB_OFFLINE", "yes"),
            ("https_proxy", "http://proxy"),
        ]);
        assert_eq!(config.endpoint, "http://mirror");
        assert_eq!(config.token.as_deref(), Some("hf_secret"));
        assert!(config.offline && config.proxied);
        assert!(!format!("{config:?}").contains("secret"));
        let config = from(&[("HF_ENDPOINT", "https://me:secret@mirror/hf")]);
        assert_eq!(config.shown_endpoint(), "https://mirror/hf");
        assert!(!format!("{config:?}").contains("secret"));
        let plain = from(&[("HF_HUB_OFFLINE", "0"), ("HF_TOKEN", "")]);
        assert!(!plain.offline && !plain.proxied);
        assert_eq!((plain.endpoint.as_str(), plain.token), (HubConfig::ENDPOINT, None));
    }

    #[test]
    fn the_token_file_is_the_second_choice() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("token"), "hf_file\n").unwrap();
        let home = folder.path().to_str().unwrap();
        assert_eq!(from(&[("HF_HOME", home)]).token.as_deref(), Some("hf_file"));
        assert_eq!(from(&[("HF_HOME", home), ("HF_TOKEN", "a")]).token.as_deref(), Some("a"));
    }
}
