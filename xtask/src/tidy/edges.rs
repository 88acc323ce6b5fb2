//! Who may depend on whom: the level diagram of ARCHITECTURE.md, as data.

use anyhow::{Context, Result};
use cargo_metadata::{DependencyKind, Metadata, Package, PackageId};
use std::collections::{BTreeMap, BTreeSet};

/// The library crates, lowest level first, with the library crates each may use.
const LIBRARIES: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("arrival", &["core"]),
    ("reactor", &["core"]),
    ("metrics", &["core"]),
    ("backends", &["core"]),
    ("tokens", &["core"]),
    ("journal", &["core"]),
    ("http", &["core", "backends", "reactor"]),
    ("datasets", &["core", "tokens"]),
    ("sim", &["core", "backends"]),
    ("run", &["core", "arrival", "reactor"]),
    ("control", &["core", "http"]),
    ("recording", &["core", "backends", "http", "journal"]),
    ("report", &["core", "metrics"]),
    ("plots", &["core", "metrics"]),
    ("hashes", &["core"]),
    (
        "cli",
        &[
            "core",
            "arrival",
            "metrics",
            "backends",
            "tokens",
            "http",
            "datasets",
            "sim",
            "run",
            "control",
            "report",
            "plots",
            "hashes",
            "journal",
            "recording",
        ],
    ),
];

/// Packages that may use anything and that no library uses.
const BESIDE: &[&str] = &["testkit", "tests", "benches"];

/// What a crate must not reach, however indirectly.
const UNREACHABLE: &[(&str, &[&str])] = &[
    ("core", &["tokio", "hyper"]),
    ("arrival", &["tokio", "hyper"]),
    ("reactor", &["hyper"]),
    ("metrics", &["tokio", "hyper"]),
    ("backends", &["tokio", "hyper"]),
    ("plots", &["tokio", "hyper"]),
    ("hashes", &["tokio", "hyper"]),
    ("journal", &["tokio", "hyper"]),
    ("run", &["hyper", "tokenizers", "clap", "servebench-http"]),
];

/// Third-party crates that only some packages may name.
const RESERVED: &[(&str, &[&str])] = &[
    ("clap", &["cli"]),
    ("anyhow", &["cli"]),
    ("indicatif", &["cli"]),
    ("tokenizers", &["tokens"]),
    ("hf-hub", &["tokens", "datasets"]),
];

/// What nothing in the workspace may reach.
const FORBIDDEN: &[&str] = &["openssl-sys", "native-tls", "aws-lc-sys", "aws-lc-rs"];

/// Checks every edge of the workspace's dependency graph.
pub(super) fn check(metadata: &Metadata) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    let closure = Closure::new(metadata)?;
    let packages = metadata.workspace_packages();
    for package in &packages {
        let idea = idea(package);
        let free = !is_library(package) || BESIDE.contains(&idea) || idea == "servebench";
        if !free && !LIBRARIES.iter().any(|(name, _)| *name == idea) {
            complaints.push(format!(
                "{} is not in the level diagram; add it to ARCHITECTURE.md and to xtask/src/tidy/edges.rs",
                package.name
            ));
        }
        complaints.extend(direct(package, idea, free));
        for name in closure.names(&package.id) {
            if FORBIDDEN.contains(&name) {
                complaints.push(format!(
                    "{} reaches {name}; find the way with `cargo tree -p {} -i {name}` and turn the feature off",
                    package.name, package.name
                ));
            }
        }
    }
    for (from, forbidden) in UNREACHABLE {
        let Some(package) = packages.iter().find(|package| idea(package) == *from) else {
            continue;
        };
        for name in closure.names(&package.id).filter(|name| forbidden.contains(name)) {
            complaints.push(format!(
                "servebench-{from} reaches {name}; `cargo tree -p servebench-{from} -i {name}` shows how"
            ));
        }
    }
    Ok(complaints)
}

/// The edges that a package's own Cargo.toml names.
fn direct(package: &Package, idea: &str, free: bool) -> Vec<String> {
    let allowed = LIBRARIES.iter().find(|(name, _)| *name == idea).map(|(_, allowed)| *allowed);
    let mut complaints = Vec::new();
    for dependency in &package.dependencies {
        if dependency.kind == DependencyKind::Development {
            continue; // tests may look up; what users get may not
        }
        let name = dependency.name.as_str();
        if let Some(other) = name.strip_prefix("servebench-") {
            if allowed.is_some_and(|allowed| !allowed.contains(&other)) {
                complaints.push(format!(
                    "{} must not use {name}: see the level diagram in ARCHITECTURE.md",
                    package.name
                ));
            }
            if BESIDE.contains(&other) && is_library(package) && !BESIDE.contains(&idea) {
                complaints.push(format!("{} may use {name} in tests only", package.name));
            }
            if idea == "servebench" && other == "cli" {
                complaints.push("the facade must not use servebench-cli".to_owned());
            }
        }
        let reserved = RESERVED.iter().find(|(crate_name, _)| *crate_name == name);
        if let Some((_, owners)) = reserved
            && is_library(package)
            && !(free && idea != "servebench")
            && !owners.contains(&idea)
        {
            complaints.push(format!(
                "{} must not name {name}; only {} may",
                package.name,
                owners.join(", ")
            ));
        }
    }
    complaints
}

/// True for what lives in `crates/`.
fn is_library(package: &Package) -> bool {
    package
        .manifest_path
        .components()
        .rev()
        .nth(2)
        .is_some_and(|folder| folder.as_str() == "crates")
}

/// The package's name without the project's prefix.
fn idea(package: &Package) -> &str {
    package.name.strip_prefix("servebench-").unwrap_or(&package.name)
}

/// Normal and build dependencies, followed to the end.
struct Closure<'a> {
    names: BTreeMap<&'a PackageId, &'a str>,
    edges: BTreeMap<&'a PackageId, Vec<&'a PackageId>>,
}

impl<'a> Closure<'a> {
    fn new(metadata: &'a Metadata) -> Result<Self> {
        let resolve = metadata.resolve.as_ref().context("cargo metadata resolved nothing")?;
        let names = metadata.packages.iter().map(|package| (&package.id, package.name.as_str()));
        let edges = resolve.nodes.iter().map(|node| {
            let normal = node.deps.iter().filter(|dependency| {
                dependency.dep_kinds.iter().any(|kind| kind.kind != DependencyKind::Development)
            });
            (&node.id, normal.map(|dependency| &dependency.pkg).collect())
        });
        Ok(Self { names: names.collect(), edges: edges.collect() })
    }

    fn names(&self, from: &'a PackageId) -> impl Iterator<Item = &'a str> {
        let mut seen = BTreeSet::new();
        let mut open = vec![from];
        while let Some(id) = open.pop() {
            for next in self.edges.get(id).into_iter().flatten() {
                if seen.insert(*next) {
                    open.push(next);
                }
            }
        }
        let mut names: Vec<_> = seen.iter().filter_map(|id| self.names.get(id).copied()).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter()
    }
}
