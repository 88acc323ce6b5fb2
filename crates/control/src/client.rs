//! The calls themselves.

use crate::{ControlError, ProfileRequest, info};
use serde_json::Value;
use servebench_http::{Answer, Caller, Connect, Method};
use std::time::Duration;

/// How long a lookup may take.
const LOOKUP_LIMIT: Duration = Duration::from_secs(10);
/// How long one try of the ready check may take.
const READY_TRY: Duration = Duration::from_secs(5);
/// Pause between tries of the ready check, and of a refused flush.
const PAUSE: Duration = Duration::from_secs(1);
/// Tries of a flush that the server refuses because it is busy.
const FLUSH_TRIES: u32 = 3;
/// How long starting a profiler may take.
const START_LIMIT: Duration = Duration::from_mins(2);
/// How long stopping one may take: the server answers once the traces are written.
const STOP_LIMIT: Duration = Duration::from_mins(10);

/// Kinds of servers that differ in their control calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// SGLang.
    Sglang,
    /// vLLM.
    Vllm,
    /// Others, which mostly follow SGLang's names.
    Other,
}

/// A model that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The name requests use.
    pub id: String,
    /// The base model, for an adapter.
    pub parent: Option<String>,
}

/// Makes control calls to one server.
#[derive(Clone, Debug)]
pub struct Control<K> {
    caller: Caller<K>,
    family: Family,
    ready_path: &'static str,
}

impl<K: Connect> Control<K> {
    /// Controls the server of `caller`, which is ready once it lists its models.
    pub fn new(caller: Caller<K>, family: Family) -> Self {
        Self { caller, family, ready_path: "/v1/models" }
    }

    /// The server is ready once it answers 200 at `path`.
    #[must_use]
    pub fn with_ready_path(self, path: &'static str) -> Self {
        Self { ready_path: path, ..self }
    }

    /// The kind of server that calls are made for.
    pub fn family(&self) -> Family {
        self.family
    }

    /// Asks the server what it is: SGLang answers `/server_info` with its arguments, vLLM `/version`.
    /// [`Family::Other`] if neither does; later calls then follow SGLang's names.
    pub async fn detect(self) -> Result<Self, ControlError> {
        let family = match self.get_json("server info", "/server_info").await {
            // vLLM has one of that name in its development mode.
            Ok(info) if info.get("vllm_config").is_some() => Family::Vllm,
            Ok(_) => Family::Sglang,
            Err(ControlError::Unsupported { .. } | ControlError::Unexpected { .. }) => {
                match self.get_json("version", "/version").await {
                    Ok(version) if version.get("version").is_some() => Family::Vllm,
                    _ => Family::Other,
                }
            }
            Err(error) => return Err(error),
        };
        Ok(Self { family, ..self })
    }

    /// The URL of the endpoint `path`, for messages.
    pub fn url(&self, path: &str) -> String {
        self.caller.target().base().url(path)
    }

    async fn get(&self, path: &str) -> Result<Answer, ControlError> {
        Ok(self.caller.call(Method::GET, path, None, LOOKUP_LIMIT).await?)
    }

    async fn get_json(&self, operation: &'static str, path: &str) -> Result<Value, ControlError> {
        let answer = self.get(path).await?;
        if !answer.is_ok() {
            let hint = "the server has no such endpoint";
            return Err(ControlError::from_answer(operation, self.url(path), &answer, hint));
        }
        serde_json::from_slice(&answer.body).map_err(|error| ControlError::Unexpected {
            url: self.url(path),
            reason: format!("the answer is not JSON: {error}"),
        })
    }

    /// Waits until the path that tells so (`/v1/models`, or
    /// [another](Self::with_ready_path)) answers 200, trying once a second for at most `limit`.
    ///
    /// What waiting cannot mend (a refused key, an untrusted certificate) is an error at once.
    pub async fn wait_ready(&self, limit: Duration) -> Result<(), ControlError> {
        let path = self.ready_path;
        let mut last = String::from("none");
        let polling = async {
            loop {
                match self.caller.call(Method::GET, path, None, READY_TRY).await {
                    Ok(answer) if answer.is_ok() => return Ok(()),
                    Ok(answer) if matches!(answer.status, 401 | 403) => {
                        let url = self.url(path);
                        return Err(ControlError::from_answer("ready check", url, &answer, ""));
                    }
                    Ok(answer) => {
                        let status = format!("status {}", answer.status);
                        let words = answer.excerpt();
                        // An answer without a body has its status for words.
                        last = if words == status { words } else { format!("{status}: {words}") };
                    }
                    Err(error) if error.is_permanent() => return Err(error.into()),
                    Err(error) => last = chain(&error),
                }
                tokio::time::sleep(PAUSE).await;
            }
        };
        match tokio::time::timeout(limit, polling).await {
            Ok(result) => result,
            Err(_) => Err(ControlError::NotReady { url: self.url(path), limit, last }),
        }
    }

    /// The models the server offers.
    pub async fn models(&self) -> Result<Vec<Model>, ControlError> {
        let answer = self.get_json("model lookup", "/v1/models").await?;
        let text = |row: &Value, key: &str| row.get(key)?.as_str().map(str::to_owned);
        let rows = answer.get("data").and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(rows
            .iter()
            .filter_map(|row| Some(Model { id: text(row, "id")?, parent: text(row, "parent") }))
            .collect())
    }

    /// The tokenizer the server says it uses, if it tells.
    pub async fn tokenizer_path(&self) -> Option<String> {
        info::tokenizer_path(&self.get_json("model info", "/model_info").await.ok()?)
    }

    /// Empties the server's prefix cache and waits until that is done.
    ///
    /// SGLang is given `timeout` to become idle. A server that answers that it is busy is asked
    /// again a few times; whatever else is not a 200 is an error, since going on would measure a
    /// warm cache.
    pub async fn flush_cache(&self, timeout: Duration) -> Result<(), ControlError> {
        let operation = "flush cache";
        let (path, hint) = match self.family {
            Family::Sglang => (
                format!("/flush_cache?timeout={:?}", timeout.as_secs_f64()),
                "the server has no way to flush its cache",
            ),
            Family::Vllm => (
                "/reset_prefix_cache".to_owned(),
                "vLLM offers it only when started with VLLM_SERVER_DEV_MODE=1",
            ),
            Family::Other => {
                ("/flush_cache".to_owned(), "the server has no way to flush its cache")
            }
        };
        let limit = timeout + LOOKUP_LIMIT;
        for tried in 1.. {
            let answer = self.caller.call(Method::POST, &path, None, limit).await?;
            if answer.is_ok() {
                break;
            }
            if answer.status != 400 || tried == FLUSH_TRIES {
                return Err(ControlError::from_answer(operation, self.url(&path), &answer, hint));
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Starts the server's profiler.
    pub async fn start_profile(&self, request: &ProfileRequest) -> Result<(), ControlError> {
        let body = serde_json::to_vec(request).map_err(|error| ControlError::Unexpected {
            url: self.url("/start_profile"),
            reason: error.to_string(),
        })?;
        self.profile("start profile", "/start_profile", body, START_LIMIT).await
    }

    /// Starts the profiler of a server that was told at its own start what to profile: vLLM's way.
    pub async fn start_configured_profile(&self) -> Result<(), ControlError> {
        self.profile("start profile", "/start_profile", Vec::new(), START_LIMIT).await
    }

    /// Stops the server's profiler; returns once the traces are written.
    ///
    /// SGLang answers status 500 when none runs: it has ended by itself, or was never started.
    pub async fn stop_profile(&self) -> Result<(), ControlError> {
        self.profile("stop profile", "/stop_profile", b"{}".to_vec(), STOP_LIMIT).await
    }

    async fn profile(
        &self,
        operation: &'static str,
        path: &str,
        body: Vec<u8>,
        limit: Duration,
    ) -> Result<(), ControlError> {
        let body = (!body.is_empty()).then(|| body.into());
        let answer = self.caller.call(Method::POST, path, body, limit).await?;
        if answer.is_ok() {
            return Ok(());
        }
        let hint = "vLLM needs --profiler-config; other servers may not profile at all";
        Err(ControlError::from_answer(operation, self.url(path), &answer, hint))
    }

    /// What the server tells about itself and its load, without the secrets it was started with or asked
    /// with.
    pub async fn server_info(&self) -> Result<Value, ControlError> {
        let info = self.get_json("server info", "/server_info").await?;
        Ok(info::without_secrets(info, self.caller.target().secrets()))
    }
}

/// An error with its causes on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |line, cause| format!("{line}: {cause}"))
}
