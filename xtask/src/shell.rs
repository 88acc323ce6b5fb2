//! Running other programs from the repository's root.

use anyhow::{Context, Result, bail};
use cargo_metadata::MetadataCommand;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The repository's root folder.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// The folder into which cargo builds.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec()?;
    Ok(metadata.target_directory.into())
}

/// A command that runs in the root folder.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that started this program, with its first arguments.
pub(crate) fn cargo<const N: usize>(arguments: [&str; N]) -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(arguments);
    cargo
}

/// Runs a command with its output shown; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = spell(command);
    println!("$ {line}");
    let status = command.status().with_context(|| format!("cannot start `{line}`"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

/// Runs a command and returns what it wrote to standard output.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    let line = spell(command);
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !output.status.success() {
        bail!("`{line}` ended with {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not write UTF-8"))
}

/// Builds release binaries and returns the folder that holds them.
pub(crate) fn release_binaries(packages: &[&str]) -> Result<PathBuf> {
    let mut build = cargo(["build", "--release"]);
    for package in packages {
        build.args(["-p", package]);
    }
    run(&mut build)?;
    Ok(target()?.join("release"))
}

/// True when `program` can be started with `argument` (`--version`, mostly).
pub(crate) fn has(program: &str, argument: &str) -> bool {
    succeeds(command(program).arg(argument))
}

/// True when the command can be started and ends well; what it writes is not shown.
pub(crate) fn succeeds(command: &mut Command) -> bool {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .stdin(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// True when `cargo NAME` exists.
pub(crate) fn has_cargo(name: &str) -> bool {
    cargo([name, "--version"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as one would type it.
fn spell(command: &Command) -> String {
    let program = Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect::<Vec<_>>()
        .join(" ")
}
