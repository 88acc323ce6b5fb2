//! `cargo xtask tidy`: what the compiler cannot check about the repository.
//!
//! Every rule returns complaints; a complaint says what is wrong and how to mend it.

mod documents;
mod edges;
mod sources;

use crate::shell;
use anyhow::{Context, Result, bail};
use cargo_metadata::{CargoOpt, MetadataCommand};
use std::path::PathBuf;

/// Runs every rule and fails when one of them complains.
pub(crate) fn run() -> Result<()> {
    let metadata = MetadataCommand::new()
        .current_dir(shell::root())
        .features(CargoOpt::AllFeatures)
        .exec()
        .context("cargo metadata failed")?;
    let files = repository_files()?;
    let mut complaints = edges::check(&metadata)?;
    complaints.extend(documents::check(&metadata, &files)?);
    complaints.extend(sources::check(&files)?);
    if complaints.is_empty() {
        println!("tidy: {} files, no complaint", files.len());
        return Ok(());
    }
    for complaint in &complaints {
        eprintln!("tidy: {complaint}");
    }
    bail!("tidy found {} complaints", complaints.len());
}

/// Every file that is in the repository or would be with the next `git add`, from the root.
fn repository_files() -> Result<Vec<PathBuf>> {
    let listing = shell::read(shell::command("git").args([
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "-z",
    ]))?;
    let mut files: Vec<PathBuf> = listing
        .split('\0')
        .filter(|name| !name.is_empty())
        .map(PathBuf::from)
        .filter(|path| shell::root().join(path).is_file())
        .collect();
    files.sort();
    files.dedup();
    Ok(files)
}
