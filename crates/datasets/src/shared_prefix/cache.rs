//! Sets kept on disk, so that the next run need not make them again.
//!
//! A file is named after everything that decides what is in it: the drawn ids in their order, the
//! tokenizer, and how prompts are made of them. It is written beside its place and moved there, so
//! that no reader sees half of it; what is damaged is made anew.

use super::{Drawn, SharedPrefixOptions};
use serde::{Deserialize, Serialize};
use servebench_core::Sample;
use servebench_tokens::Tokenizer;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Another version of this crate may make other prompts of the same ids.
const FORMAT: &str = concat!("servebench-datasets ", env!("CARGO_PKG_VERSION"), " shared prefix 1");

/// The place of one set in the cache.
pub(super) struct Entry {
    folder: PathBuf,
    key: String,
}

/// First line of a file.
#[derive(Deserialize, PartialEq, Serialize)]
struct Header<'a> {
    format: &'a str,
    key: &'a str,
    sha256: &'a str,
}

impl Entry {
    pub(super) fn new(
        folder: &Path,
        drawn: &Drawn,
        shape: &SharedPrefixOptions,
        tokenizer: &Tokenizer,
    ) -> Self {
        let mut hash = Sha256::new_with_prefix(FORMAT);
        hash.update(tokenizer.fingerprint());
        hash.update([u8::from(shape.fast_prepare), u8::from(shape.routing_key)]);
        let mut ids = |ids: &[u32]| {
            hash.update((ids.len() as u64).to_le_bytes());
            for id in ids {
                hash.update(id.to_le_bytes());
            }
        };
        for system in &drawn.systems {
            ids(system);
        }
        for row in &drawn.rows {
            ids(&[row.group as u32, row.output_len, row.questions.len() as u32]);
            for question in &row.questions {
                ids(question);
            }
        }
        Self { folder: folder.to_owned(), key: hexadecimal(&hash.finalize()) }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("shared-prefix-{}.jsonl", &self.key[..32]))
    }

    /// The samples, if they are there and whole.
    pub(super) fn read(&self) -> Option<Vec<Sample>> {
        let text = std::fs::read_to_string(self.path()).ok()?;
        let (first, rows) = text.split_once('\n')?;
        let header: Header<'_> = serde_json::from_str(first).ok()?;
        let sha256 = hexadecimal(&Sha256::digest(rows));
        let whole = Header { format: FORMAT, key: &self.key, sha256: &sha256 };
        (header == whole).then(|| serde_json::from_str(rows).ok()).flatten()
    }

    pub(super) fn write(&self, samples: &[Sample]) -> std::io::Result<()> {
        let rows = serde_json::to_string(samples)?;
        let sha256 = hexadecimal(&Sha256::digest(&rows));
        let header = Header { format: FORMAT, key: &self.key, sha256: &sha256 };
        std::fs::create_dir_all(&self.folder)?;
        let mut builder = tempfile::Builder::new();
        // As any new file of the user's.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(&self.folder)?;
        writeln!(file, "{}", serde_json::to_string(&header)?)?;
        file.write_all(rows.as_bytes())?;
        file.persist(self.path())?;
        Ok(())
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_prefix::make;
    use servebench_core::random::Draws;
    use servebench_tokens::{Hub, HubConfig};

    fn drawn(shape: &SharedPrefixOptions, seed: u32) -> Drawn {
        Drawn::draw(shape, &[97, 98, 99], &mut Draws::new(seed))
    }

    fn two_letters() -> Tokenizer {
        let folder = tempfile::tempdir().unwrap();
        let model = serde_json::json!({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []});
        let json = serde_json::json!({"version": "1.0", "added_tokens": [], "model": model});
        let path = folder.path().join("tokenizer.json");
        std::fs::write(&path, json.to_string()).unwrap();
        let hub = HubConfig { offline: true, ..HubConfig::new("nowhere") };
        Tokenizer::load(path.to_str().unwrap(), &Hub::new(hub)).unwrap()
    }

    #[test]
    fn what_is_written_is_read_unless_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("made/anew");
        let tokenizer = Tokenizer::byte_level();
        for turns in [1, 2] {
            let shape = SharedPrefixOptions {
                groups: 2,
                prompts_per_group: 2,
                system_prompt_len: 5,
                turns,
                routing_key: true,
                ..SharedPrefixOptions::default()
            };
            let drawn = drawn(&shape, 1);
            let entry = Entry::new(&inner, &drawn, &shape, &tokenizer);
            assert_eq!(entry.read(), None);
            let samples = make(&drawn, false, &shape, &tokenizer).unwrap();
            entry.write(&samples).unwrap();
            assert_eq!(entry.read().as_deref(), Some(samples.as_slice()));
            let whole = std::fs::read_to_string(entry.path()).unwrap();
            for damaged in [&whole[..whole.len() - 1], &whole.replacen('a', "b", 1), "", "{}\n[]"] {
                std::fs::write(entry.path(), damaged).unwrap();
                assert_eq!(entry.read(), None, "{damaged:.40}");
            }
        }
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 2, "no half-written file is left");
    }

    #[test]
    fn everything_that_changes_the_data_changes_the_key() {
        let tokenizer = Tokenizer::byte_level();
        let base = SharedPrefixOptions {
            groups: 3,
            prompts_per_group: 3,
            system_prompt_len: 6,
            question_len: 5,
            output_len: 4,
            ..SharedPrefixOptions::default()
        };
        let key = |shape: &SharedPrefixOptions, seed| {
            Entry::new(Path::new(""), &drawn(shape, seed), shape, &tokenizer).key
        };
        let changed = [
            SharedPrefixOptions { groups: 4, ..base.clone() },
            SharedPrefixOptions { prompts_per_group: 4, ..base.clone() },
            SharedPrefixOptions { system_prompt_len: 7, ..base.clone() },
            SharedPrefixOptions { question_len: 6, ..base.clone() },
            SharedPrefixOptions { output_len: 5, ..base.clone() },
            SharedPrefixOptions { range_ratio: 0.5, ..base.clone() },
            SharedPrefixOptions { zipf_alpha: Some(1.0), ..base.clone() },
            SharedPrefixOptions { zipf_alpha: Some(1.0), zipf_seed: 1, ..base.clone() },
            SharedPrefixOptions { turns: 2, ..base.clone() },
            SharedPrefixOptions { ordered: true, ..base.clone() },
            SharedPrefixOptions { fast_prepare: true, ..base.clone() },
            SharedPrefixOptions { routing_key: true, ..base.clone() },
        ];
        let mut keys: Vec<String> = changed.iter().map(|shape| key(shape, 42)).collect();
        keys.extend([key(&base, 42), key(&base, 43)]);
        let shape = &base;
        keys.push(Entry::new(Path::new(""), &drawn(shape, 42), shape, &two_letters()).key);
        let count = keys.len();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), count, "two sets share a key");
        assert_eq!(key(&base, 42), key(&base.clone(), 42), "the same set, another key");
    }
}
