//! READMEs, crate documents and the links between pages.

use crate::shell;
use anyhow::{Context, Result};
use cargo_metadata::Metadata;
use std::fs;
use std::path::{Path, PathBuf};

/// Checks what each crate says about itself, and that every relative link leads somewhere.
pub(super) fn check(metadata: &Metadata, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for package in metadata.workspace_packages() {
        let folder = package.manifest_path.parent().context("a manifest lies in a folder")?;
        let group = folder.parent().and_then(|group| group.file_name());
        let library = group == Some("crates");
        if !library && group != Some("bins") {
            continue;
        }
        let described = package.description.as_deref().unwrap_or_default();
        let document = fs::read_to_string(folder.join("src/lib.rs")).unwrap_or_default();
        let first = document.lines().next().unwrap_or_default();
        if first.strip_prefix("//! ") != Some(described) {
            complaints.push(format!(
                "the first line of {}'s src/lib.rs must be `//! ` and its Cargo.toml description: `{described}`",
                package.name
            ));
        }
        let readme = fs::read_to_string(folder.join("README.md")).unwrap_or_default();
        let heading = readme.lines().next().unwrap_or_default();
        if library && heading != format!("# {}", package.name) {
            complaints.push(format!("{0}'s README.md must begin with `# {0}`", package.name));
        }
    }
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(shell::root().join(file))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        for link in links(&text).filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let path = link.split('#').next().unwrap_or_default();
            if !path.is_empty() && !shell::root().join(folder).join(path).exists() {
                complaints.push(format!("{} links to {path}, which is not there", file.display()));
            }
        }
    }
    Ok(complaints)
}

/// The targets of inline links, outside code blocks and code spans.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines()
        .filter(move |line| {
            let fence = line.trim_start().starts_with("```");
            fenced ^= fence;
            !fence && !fenced
        })
        .flat_map(|line| line.split('`').step_by(2)) // every other piece is a code span
        .flat_map(|piece| piece.split("](").skip(1))
        .filter_map(|rest| rest.split(')').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_links_outside_code() {
        let text = "see [a](a.md) and `[b](b.md)`\n```\n[c](c.md)\n```\n[d](d.md#x), [e](f/e.md)\n";
        assert_eq!(links(text).collect::<Vec<_>>(), ["a.md", "d.md#x", "f/e.md"]);
    }
}
