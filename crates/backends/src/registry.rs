//! The endpoints that can be measured, one row each.

use crate::options::GenerateOptions;
use crate::{embeddings, native, openai, triton, truss};
use servebench_core::Protocol;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A backend as named on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BackendKind {
    /// SGLang's native route.
    Sglang,
    /// SGLang's native route, by its other name.
    SglangNative,
    /// SGLang's completions route.
    SglangOai,
    /// SGLang's chat route.
    SglangOaiChat,
    /// vLLM's completions route.
    Vllm,
    /// vLLM's chat route.
    VllmChat,
    /// LMDeploy's completions route.
    Lmdeploy,
    /// LMDeploy's chat route.
    LmdeployChat,
    /// SGLang's embeddings route.
    SglangEmbedding,
    /// vLLM's embeddings route.
    VllmEmbedding,
    /// TensorRT-LLM behind Triton.
    Trt,
    /// Baseten's Truss.
    Truss,
}

/// The language that an endpoint speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// SGLang's `/generate`.
    Native,
    /// `/v1/completions`.
    Completions,
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/embeddings`, whose answers hold no tokens.
    Embeddings,
    /// Triton's `generate_stream` extension.
    Triton,
    /// Truss' `predict`, with a model that speaks as completions do.
    Truss,
}

/// How the Python tool makes inter-token latencies out of chunk gaps, which decides what the `itls` of
/// a result mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItlRule {
    /// The gap before a chunk is spread over the chunk's tokens.
    PerToken,
    /// One gap for each chunk.
    PerChunk,
    /// One gap for each chunk; when the server reports an acceptance length, the gap is spread over the
    /// tokens of the chunk's text, by the client's tokenizer.
    PerChunkUnlessSpeculative,
}

/// All there is to know about a backend beside its protocol's code.
#[derive(Debug)]
pub struct BackendInfo {
    /// Which one it is.
    pub kind: BackendKind,
    /// Its name on the command line and in results.
    pub name: &'static str,
    /// Its path below the base URL.
    pub path: &'static str,
    /// A path that answers 200 once its server is ready.
    pub ready_path: &'static str,
    /// Port used when only a host is given.
    pub default_port: u16,
    /// Its language.
    pub family: Family,
    /// The meaning of `itls`.
    pub itl: ItlRule,
    /// Whether SGLang's control routes are expected at the same server.
    pub is_sglang: bool,
}

const fn row(
    kind: BackendKind,
    name: &'static str,
    default_port: u16,
    family: Family,
    itl: ItlRule,
) -> BackendInfo {
    let path = match family {
        Family::Native => "/generate",
        Family::Completions => "/v1/completions",
        Family::Chat => "/v1/chat/completions",
        Family::Embeddings => "/v1/embeddings",
        Family::Triton => "/v2/models/ensemble/generate_stream",
        Family::Truss => "/v1/models/model:predict",
    };
    let ready_path = match family {
        Family::Triton => "/v2/health/ready",
        Family::Truss => "/v1/models/model",
        _ => "/v1/models",
    };
    let is_sglang = default_port == SGLANG;
    BackendInfo { kind, name, path, ready_path, default_port, family, itl, is_sglang }
}

const SGLANG: u16 = 30000;
const VLLM: u16 = 8000;
const LMDEPLOY: u16 = 23333;
const TRITON: u16 = 8000;
const TRUSS: u16 = 8080;

/// The Python tool lacks `vllm-chat` and `lmdeploy-chat` in its table of ports and takes SGLang's; here
/// they have their servers' own.
#[rustfmt::skip] // a table
static BACKENDS: [BackendInfo; 12] = {
    use {BackendKind as Kind, Family as F, ItlRule as Itl};
    [
        row(Kind::Sglang,          "sglang",          SGLANG,   F::Native,      Itl::PerToken),
        row(Kind::SglangNative,    "sglang-native",   SGLANG,   F::Native,      Itl::PerToken),
        row(Kind::SglangOai,       "sglang-oai",      SGLANG,   F::Completions, Itl::PerChunkUnlessSpeculative),
        row(Kind::SglangOaiChat,   "sglang-oai-chat", SGLANG,   F::Chat,        Itl::PerChunkUnlessSpeculative),
        row(Kind::Vllm,            "vllm",            VLLM,     F::Completions, Itl::PerChunk),
        row(Kind::VllmChat,        "vllm-chat",       VLLM,     F::Chat,        Itl::PerChunk),
        row(Kind::Lmdeploy,        "lmdeploy",        LMDEPLOY, F::Completions, Itl::PerChunk),
        row(Kind::LmdeployChat,    "lmdeploy-chat",   LMDEPLOY, F::Chat,        Itl::PerChunk),
        row(Kind::SglangEmbedding, "sglang-embedding", SGLANG, F::Embeddings,  Itl::PerChunk),
        row(Kind::VllmEmbedding,   "vllm-embedding",   VLLM,   F::Embeddings,  Itl::PerChunk),
        row(Kind::Trt,             "trt",              TRITON, F::Triton,      Itl::PerChunk),
        row(Kind::Truss,           "truss",            TRUSS,  F::Truss,       Itl::PerChunk),
    ]
};

/// A choice of the Python tool behind which there is nothing.
pub const NEVER_BUILT: &str = "gserver";

/// A backend name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", told(name))]
pub struct UnknownBackend {
    /// The name that was given.
    pub name: String,
}

fn told(name: &str) -> String {
    if name == NEVER_BUILT {
        return format!(
            "backend `{name}` exists in no tool: the Python one lists it, but raises \"not \
             implemented\" on its first request, so there is no protocol to speak"
        );
    }
    format!("unknown backend `{name}` (known: {})", names().collect::<Vec<_>>().join(", "))
}

/// The names of all backends, in the order of their table.
pub fn names() -> impl Iterator<Item = &'static str> {
    BACKENDS.iter().map(|row| row.name)
}

impl BackendKind {
    /// All backends, in the order of their table.
    pub fn all() -> impl Iterator<Item = Self> {
        BACKENDS.iter().map(|row| row.kind)
    }

    /// The row of this backend.
    pub fn info(self) -> &'static BackendInfo {
        // The rows stand in the order of the variants; a test checks it.
        &BACKENDS[self as usize]
    }

    /// The name of this backend.
    pub fn name(self) -> &'static str {
        self.info().name
    }

    /// The protocol of this backend with these options.
    pub fn protocol(self, mut options: GenerateOptions) -> Arc<dyn Protocol> {
        let BackendInfo { path, family, is_sglang, .. } = self.info();
        let is_openai = matches!(family, Family::Completions | Family::Chat);
        if options.cache_report && *is_sglang && is_openai {
            options.extra_body.insert("return_cached_tokens_details".to_owned(), true.into());
        }
        match family {
            Family::Native => native::protocol(path, options),
            Family::Completions => openai::completions::protocol(path, options),
            Family::Chat => openai::chat::protocol(path, options),
            Family::Embeddings => embeddings::protocol(path, options),
            Family::Triton => triton::protocol(path, options),
            Family::Truss => truss::protocol(path, options),
        }
    }
}

impl fmt::Display for BackendKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for BackendKind {
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<Self, UnknownBackend> {
        Self::all()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| UnknownBackend { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_stands_at_its_own_place() {
        for (place, kind) in BackendKind::all().enumerate() {
            assert_eq!(kind as usize, place);
            assert_eq!(kind.info().kind, kind);
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.info().is_sglang, kind.name().starts_with("sglang"));
            assert_eq!(kind.protocol(GenerateOptions::default()).path(), kind.info().path);
        }
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        let error = "trtllm".parse::<BackendKind>().expect_err("not a backend");
        assert!(error.to_string().starts_with("unknown backend `trtllm` (known: sglang, "));
    }

    #[test]
    fn a_name_without_a_protocol_is_told_why() {
        let error = NEVER_BUILT.parse::<BackendKind>().expect_err("not a backend");
        assert!(error.to_string().contains("not implemented"), "{error}");
    }

    #[test]
    fn chat_aliases_have_the_ports_of_their_servers() {
        assert_eq!(BackendKind::VllmChat.info().default_port, 8000);
        assert_eq!(BackendKind::LmdeployChat.info().default_port, 23333);
    }
}
