//! `cargo xtask package`: the library crates as they would be published.

use crate::shell;
use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;
use std::time::{SystemTime, UNIX_EPOCH};

/// Package every library crate as for publishing.
#[derive(clap::Args, Debug, Default)]
pub(crate) struct Arguments {
    /// Only put the archives together, do not build them
    #[arg(long)]
    no_verify: bool,
}

/// Packages every workspace member that may be published.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let metadata = MetadataCommand::new().current_dir(shell::root()).no_deps().exec()?;
    let (public, private): (Vec<_>, Vec<_>) = metadata
        .workspace_packages()
        .into_iter()
        .partition(|package| package.publish.as_ref().is_none_or(|where_to| !where_to.is_empty()));
    for package in &public {
        for (what, there) in [
            ("description", package.description.is_some()),
            ("license", package.license.is_some()),
            ("readme", package.readme.is_some()),
            ("repository", package.repository.is_some()),
        ] {
            if !there {
                bail!("{} has no `{what}` in its Cargo.toml", package.name);
            }
        }
    }
    // `--allow-dirty`: what is checked is the archive, not the state of the checkout.
    let mut cargo = shell::cargo(["package", "--workspace", "--allow-dirty"]);
    for package in private {
        cargo.args(["--exclude", &package.name]);
    }
    if arguments.no_verify {
        cargo.arg("--no-verify");
    }
    // Crates are built against each other's archives, which cargo unpacks once per place and version
    // and then keeps: another place each time, so that no archive of yesterday is built.
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
    let folder = shell::target()?.join(format!("xtask/package-{now}"));
    let packaged = shell::run(cargo.arg("--target-dir").arg(&folder));
    std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    packaged
}
