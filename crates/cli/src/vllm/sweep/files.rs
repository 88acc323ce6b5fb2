//! Results on disk: written whole, read back with what they were measured with.

use super::params::Overrides;
use crate::exit::OrCode;
use crate::{Code, Failure};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::Path;

/// The result of one run, its overrides among its values.
pub(super) type Run = Map<String, Value>;

/// Writes a file whole or not at all, and makes its folder if there is none.
pub(super) fn write(file: &Path, text: &str) -> Result<(), Failure> {
    let context = |error: std::io::Error| {
        Failure::new(Code::Output, anyhow::Error::new(error).context(file.display().to_string()))
    };
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).map_err(context)?;
    }
    let part = file.with_extension("part");
    fs::write(&part, text).map_err(context)?;
    fs::rename(&part, file).map_err(context)
}

/// [`write`] for JSON.
pub(super) fn write_json(file: &Path, value: &impl serde::Serialize) -> Result<(), Failure> {
    write(file, &serde_json::to_string_pretty(value).or_code(Code::Bug)?)
}

/// A result, with what it was measured with; the client's overrides win over the server's.
pub(super) fn read(
    file: &Path,
    serve: &Overrides,
    bench: &Overrides,
    number: i64,
) -> Result<Run, Failure> {
    let parse = || -> Result<Run, anyhow::Error> { Ok(serde_json::from_slice(&fs::read(file)?)?) };
    let run = parse().map_err(|error| error.context(file.display().to_string()));
    let mut run = run.or_code(Code::Data)?;
    run.insert("run_number".to_owned(), number.into());
    run.extend(serve.0.clone());
    run.extend(bench.0.clone());
    Ok(run)
}

/// Writes down what failed, and with which overrides.
pub(super) fn write_failure(
    file: &Path,
    failure: &Failure,
    serve: &Overrides,
    run: Option<(i64, &Overrides)>,
) -> Result<(), Failure> {
    let mut written = Map::new();
    if let Some((number, _)) = run {
        written.insert("run_number".to_owned(), number.into());
    }
    written.insert("error_type".to_owned(), format!("{:?}", failure.code).into());
    written.insert("error".to_owned(), format!("{:#}", failure.error).into());
    written.insert("serve_overrides".to_owned(), json!(serve.0));
    if let Some((_, bench)) = run {
        written.insert("bench_overrides".to_owned(), json!(bench.0));
    }
    write_json(file, &written)
}
