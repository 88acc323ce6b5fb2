//! What can go wrong with a tokenizer, a template or the hub.

use std::error::Error;
use std::path::{Path, PathBuf};

/// Why a tokenizer, a chat template or a file of the hub could not be had or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokensError {
    /// The name is neither a path that exists nor something the hub could know.
    #[error("`{name}` is neither a folder or file here nor the id of a model on the hub")]
    NoSuchName {
        /// The name as given.
        name: String,
    },
    /// There is no `tokenizer.json`.
    #[error("`{name}` has no tokenizer.json: only fast tokenizers are supported")]
    NotFast {
        /// The tokenizer as named by the user.
        name: String,
    },
    /// A file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A `tokenizer.json` could not be understood.
    #[error("cannot load {}", path.display())]
    Load {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A JSON file beside the tokenizer could not be understood.
    #[error("bad JSON in {}", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// Text could not be encoded or ids decoded.
    #[error("the tokenizer cannot {operation} this input")]
    Tokenize {
        /// `encode` or `decode`.
        operation: &'static str,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The tokenizer comes without a chat template.
    #[error("tokenizer `{tokenizer}` has no chat template, which --apply-chat-template needs")]
    NoChatTemplate {
        /// The tokenizer as named by the user.
        tokenizer: String,
    },
    /// The chat template is broken, refused the messages, or did not come to an end.
    #[error("the chat template of `{tokenizer}` failed")]
    Template {
        /// The tokenizer as named by the user.
        tokenizer: String,
        /// Where and why.
        source: Box<minijinja::Error>,
    },
    /// A file is not in the cache, and the hub may not be asked.
    #[error(
        "{file} of `{repo}` is not in the cache {} and the hub may not be asked (HF_HUB_OFFLINE); \
         download it once while online, or give a local path",
        cache.display()
    )]
    Offline {
        /// The file wanted.
        file: String,
        /// The repository it belongs to.
        repo: String,
        /// The cache that was searched.
        cache: PathBuf,
    },
    /// A file is not in the cache, and the hub could not be reached or broke off.
    #[error(
        "cannot download {file} of `{repo}` from {endpoint}, and it is not in the cache {}; \
         give a local path where there is no network",
        cache.display()
    )]
    Download {
        /// The file wanted.
        file: Box<str>,
        /// The repository it belongs to.
        repo: Box<str>,
        /// The hub that was asked.
        endpoint: Box<str>,
        /// The cache that was searched.
        cache: Box<Path>,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The hub does not let this user have the file.
    #[error(
        "the hub refused {file} of `{repo}` (HTTP {status}): the name may be wrong, or access must \
         be granted to the account whose token is in HF_TOKEN"
    )]
    Denied {
        /// The file wanted.
        file: String,
        /// The repository it belongs to.
        repo: String,
        /// 401 or 403.
        status: u16,
    },
    /// The hub has no such file.
    #[error("the hub has no {file} in `{repo}`")]
    Missing {
        /// The file wanted.
        file: String,
        /// The repository it was expected in.
        repo: String,
    },
    /// A file is larger than what may be downloaded.
    #[error(
        "{file} of `{repo}` is larger than the {limit} bytes that are downloaded at most; fetch it by \
         hand and give its path, if it is what you want"
    )]
    TooLarge {
        /// The file wanted.
        file: String,
        /// The repository it belongs to.
        repo: String,
        /// The largest size taken.
        limit: u64,
    },
    /// A download ended early; what came of it was thrown away.
    #[error("the download of {file} of `{repo}` is incomplete: {got} of {want} bytes")]
    Truncated {
        /// The file wanted.
        file: String,
        /// The repository it belongs to.
        repo: String,
        /// Bytes received.
        got: u64,
        /// Bytes announced.
        want: u64,
    },
}
