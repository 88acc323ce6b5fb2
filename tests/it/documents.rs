//! What the README promises.

use crate::support::root;
use std::fs;

/// The two commands that a newcomer types, word for word.
#[test]
fn the_readme_shows_its_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md");
    for command in ["cargo run --release -p bench-serving -- --simulate", "cargo test --workspace"]
    {
        assert!(readme.lines().any(|line| line == command), "README.md lacks `{command}`");
    }
}
