//! Which model and which tokenizer a run uses.

use crate::exit::OrCode;
use crate::{Code, Environment, Failure, Io, Plan};
use servebench_control::Control;
use servebench_http::Connect;
use servebench_tokens::{Hub, Tokenizer};
use std::path::Path;
use std::thread::JoinHandle;

/// The names a run goes by.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    /// Model name or path.
    pub(crate) model: String,
    /// Model name sent in requests.
    pub(crate) served: String,
}

/// The model to use: the one given, else the first that the server offers and that is no adapter.
pub(crate) async fn model<K: Connect>(plan: &Plan, control: &Control<K>) -> Result<Names, Failure> {
    let model = if let Some(model) = &plan.model {
        model.clone()
    } else {
        let hint = "give --model";
        let models = control.models().await;
        let models = models.map_err(|error| Failure::new(Code::Server, error).hint(hint))?;
        let base = models.iter().find(|model| model.parent.is_none());
        let Some(model) = base.or(models.first()) else {
            let error = anyhow::anyhow!("{} lists no model", control.url("/v1/models"));
            return Err(Failure::new(Code::Server, error).hint(hint));
        };
        model.id.clone()
    };
    let served = plan.served_model_name.clone().unwrap_or_else(|| model.clone());
    Ok(Names { model, served })
}

/// The tokenizer to count with: the one given, else the one the server names, else the model's.
pub(crate) async fn tokenizer<K: Connect>(
    plan: &Plan,
    names: &Names,
    control: &Control<K>,
    hub: &Hub,
    environment: &Environment,
    io: &Io,
) -> Result<Tokenizer, Failure> {
    if let Some(name) = &plan.tokenizer {
        return load(name, hub, environment);
    }
    if plan.simulate {
        return Ok(Tokenizer::byte_level());
    }
    let told = control.tokenizer_path().await;
    // A path on the server's machine says nothing here, unless it exists here too.
    let usable = |name: &str| Path::new(name).exists() || name.split('/').count() == 2;
    let hint = "give --tokenizer: a folder with a tokenizer.json, or a hub name";
    let Some(name) = told.iter().chain([&names.model]).find(|name| usable(name)) else {
        let error = anyhow::anyhow!(
            "no tokenizer for model `{}`: it is neither a local path nor a hub name",
            names.model
        );
        return Err(Failure::new(Code::Data, error).hint(hint));
    };
    io.say(format_args!("tokenizer: {name}"));
    load(name, hub, environment).map_err(|failure| match failure.hint {
        Some(_) => failure,
        None => failure.hint(hint),
    })
}

/// A tokenizer that is loaded on a thread of its own, while the server is asked whether it is ready.
#[derive(Debug)]
pub(crate) struct EarlyTokenizer(Option<JoinHandle<Result<Tokenizer, Failure>>>);

impl EarlyTokenizer {
    /// Begins, if a file or folder was named: a download might outlast a server that is not there.
    pub(crate) fn start(plan: &Plan, hub: &Hub, environment: &Environment) -> Self {
        let named = plan.tokenizer.clone().filter(|name| Path::new(name).exists());
        let (hub, environment) = (hub.clone(), environment.clone());
        let thread = std::thread::Builder::new().name("tokenizer".into());
        Self(named.and_then(|name| thread.spawn(move || load(&name, &hub, &environment)).ok()))
    }

    /// The tokenizer, if it was begun.
    pub(crate) fn finish(mut self) -> Option<Result<Tokenizer, Failure>> {
        self.0.take()?.join().ok()
    }
}

impl Drop for EarlyTokenizer {
    fn drop(&mut self) {
        // No thread is left behind.
        if let Some(thread) = self.0.take() {
            drop(thread.join());
        }
    }
}

/// Loads a tokenizer by its name.
pub(crate) fn load(name: &str, hub: &Hub, environment: &Environment) -> Result<Tokenizer, Failure> {
    if environment.is_on("SGLANG_USE_MODELSCOPE") && !Path::new(name).exists() {
        let error = anyhow::anyhow!(
            "SGLANG_USE_MODELSCOPE is set, but only the Hugging Face hub is spoken here"
        );
        return Err(Failure::new(Code::Data, error)
            .hint("download the tokenizer by hand and give its folder as --tokenizer"));
    }
    Tokenizer::load(name, hub).or_code(Code::Data)
}
