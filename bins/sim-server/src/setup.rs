//! From what the user said to a configuration.

use crate::args::{Args, Count, Text};
use anyhow::{Context, Result};
use servebench_sim::{
    CostModel, PromptCount, SimConfig, Speculative, TextStyle, Timing, parse_faults,
};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Tokens in a draft unless the user says otherwise.
const DRAFT_TOKENS: u32 = 4;

/// Reads the files that `args` name and checks everything.
pub fn configuration(args: &Args) -> Result<SimConfig> {
    let mut config = SimConfig::default();
    if let Some(path) = &args.config {
        config = config.patched(read(path)?.as_bytes()).with_context(|| named(path))?;
    }
    if let Some(timing) = timing(args)? {
        config.timing = timing;
    }
    if let Some(path) = &args.faults {
        config.faults = parse_faults(&read(path)?).with_context(|| named(path))?;
    }
    if let Some(style) = args.text {
        config.text = match style {
            Text::Bytes => TextStyle::Bytes,
            Text::Words => TextStyle::Words,
        };
    }
    if let Some(count) = args.prompt_count {
        config.prompt_count = match count {
            Count::Bytes => PromptCount::Bytes,
            Count::QuarterBytes => PromptCount::QuarterBytes,
        };
    }
    set(&mut config.model, args.model.as_ref());
    set(&mut config.context_tokens, args.max_tokens.as_ref());
    set(&mut config.coalesce, args.coalesce.as_ref());
    set(&mut config.reasoning_tokens, args.reasoning_tokens.as_ref());
    set(&mut config.early_stop, args.early_stop.as_ref());
    set(&mut config.seed, args.seed.as_ref());
    config.yield_each |= args.yield_each;
    if args.api_key.is_some() {
        config.api_key.clone_from(&args.api_key);
    }
    config.check()?;
    Ok(config)
}

fn set<T: Clone>(field: &mut T, value: Option<&T>) {
    if let Some(value) = value {
        field.clone_from(value);
    }
}

fn timing(args: &Args) -> Result<Option<Timing>> {
    let Some(name) = &args.engine else {
        if args.ttft_ms.is_none() && args.itl_ms.is_none() {
            return Ok(None);
        }
        let ttft = milliseconds("--ttft-ms", args.ttft_ms)?;
        return Ok(Some(Timing::canned(ttft, milliseconds("--itl-ms", args.itl_ms)?)));
    };
    let mut cost = match CostModel::named(name) {
        Ok(cost) => cost,
        Err(unknown) => {
            let path = Path::new(name);
            if !path.exists() {
                return Err(unknown).with_context(|| format!("--engine {name}: no such file"));
            }
            serde_json::from_str(&read(path)?).with_context(|| named(path))?
        }
    };
    if let Some(tokens) = args.max_kv_tokens {
        cost.kv_tokens = tokens;
    }
    if let Some(acceptance) = args.spec_accept {
        let draft_tokens = args.spec_draft.unwrap_or(DRAFT_TOKENS);
        cost.speculative = Some(Speculative { draft_tokens, acceptance });
    }
    Ok(Some(Timing::Engine(cost)))
}

fn milliseconds(flag: &str, value: Option<f64>) -> Result<Duration> {
    let value = value.unwrap_or(0.0);
    anyhow::ensure!((0.0..=1e10).contains(&value), "{flag} {value} must lie between 0 and 1e10");
    Ok(Duration::from_nanos((value * 1e6).round() as u64))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

fn named(path: &Path) -> String {
    format!("{} is not valid", path.display())
}
