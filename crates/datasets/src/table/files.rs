//! Which files of a folder or a repository are a dataset's split.

/// Splits that a name may speak of.
const SPLITS: [&str; 10] = [
    "train",
    "training",
    "test",
    "testing",
    "eval",
    "evaluation",
    "validation",
    "valid",
    "val",
    "dev",
];
/// Folders that are no part of a dataset but where its files are.
const PLAIN_FOLDERS: [&str; 2] = ["data", "default"];
/// The split of files whose names speak of none.
const TRAIN: &str = "train";

/// What the files are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Parquet,
    Json,
}

impl Format {
    /// Whether this build reads it.
    pub(super) const fn is_here(self) -> bool {
        matches!(self, Self::Json) || cfg!(feature = "parquet")
    }

    /// Whether one of the files is of this format.
    pub(super) fn is_in(self, names: &[String]) -> bool {
        names.iter().any(|name| self.has(name))
    }

    fn has(self, name: &str) -> bool {
        let (stem, extension) = split_extension(file_of(name));
        match self {
            Self::Parquet => extension == "parquet",
            // These describe a dataset.
            Self::Json => {
                matches!(extension, "jsonl" | "json" | "ndjson")
                    && !stem.starts_with("dataset_info")
                    && stem != "state"
            }
        }
    }
}

/// The files of `names` that are the `split` of the dataset's part `config`, in their order.
///
/// As the hub reads repositories: a part is a folder; a split is a folder, the beginning of a name
/// (`train-00000-of-00002.parquet`), or a word in it; files that speak of no split are `train`.
pub(super) fn choose(
    names: &[String],
    format: Format,
    config: Option<&str>,
    split: &str,
) -> Result<Vec<String>, String> {
    let hidden = |name: &str| name.split('/').any(|part| part.starts_with('.'));
    let mut found: Vec<&str> = names.iter().map(String::as_str).collect();
    found.retain(|name| format.has(name) && !hidden(name));
    found.sort_unstable();
    if found.is_empty() {
        let what = if format == Format::Parquet { "Parquet" } else { "Parquet or JSON" };
        return Err(format!("no {what} files"));
    }
    if let Some(config) = config {
        let configs = parts(&found, split);
        let is_part = |name: &&str| folders(name).any(|folder| folder == config);
        if found.iter().any(is_part) {
            found.retain(is_part);
        } else if !PLAIN_FOLDERS.contains(&config) {
            return Err(format!("no part `{config}`; there is {}", listed(&configs)));
        }
    }
    let mut found = of_split(found, split)?;
    if config.is_none() {
        let parts = parts(&found, split);
        match parts.iter().find(|part| part.is_empty() || PLAIN_FOLDERS.contains(&part.as_str())) {
            _ if parts.len() < 2 => {}
            Some(plain) => found.retain(|name| part_of(name, split) == *plain),
            None => {
                return Err(format!(
                    "several parts, of which one must be named: {}",
                    listed(&parts)
                ));
            }
        }
    }
    whole(&found)?;
    Ok(found.into_iter().map(str::to_owned).collect())
}

/// The files of a split.
fn of_split<'n>(names: Vec<&'n str>, split: &str) -> Result<Vec<&'n str>, String> {
    let exact =
        |name: &&str| folders(name).any(|folder| folder == split) || without_number(name) == split;
    let in_words = |name: &&str| words(name).any(|word| word == split);
    let tests: [&dyn Fn(&&str) -> bool; 2] = [&exact, &in_words];
    for test in tests {
        let found: Vec<&str> = names.iter().copied().filter(|name| test(name)).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let mut splits: Vec<String> = names
        .iter()
        .flat_map(|name| words(name))
        .filter(|word| SPLITS.contains(word))
        .map(str::to_owned)
        .collect();
    splits.sort_unstable();
    splits.dedup();
    if !splits.is_empty() {
        return Err(format!("no split `{split}`; there is {}", listed(&splits)));
    }
    if split == TRAIN {
        return Ok(names);
    }
    Err(format!("no split `{split}`: the files are {}", listed(&names)))
}

/// A file that is cut into numbered pieces must be there as a whole.
fn whole(names: &[&str]) -> Result<(), String> {
    for name in names {
        let Some((stem, count)) = pieces(name) else { continue };
        let found = names.iter().filter(|other| pieces(other) == Some((stem, count))).count();
        if found < count {
            return Err(format!("only {found} of {count} pieces of {stem}"));
        }
    }
    Ok(())
}

/// `train` and 2 of `train-00000-of-00002.parquet`, with its folders.
fn pieces(name: &str) -> Option<(&str, usize)> {
    let (stem, _) = split_extension(name);
    let (rest, count) = stem.rsplit_once("-of-")?;
    let (stem, number) = rest.rsplit_once('-')?;
    // A hash may follow.
    let count = count.split('-').next()?.parse().ok()?;
    number.parse::<usize>().ok().map(|_| (stem, count))
}

/// The parts that the files belong to, each once.
fn parts(names: &[&str], split: &str) -> Vec<String> {
    let mut parts: Vec<String> = names.iter().map(|name| part_of(name, split)).collect();
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// The folder of a file, but for folders named after its split.
fn part_of(name: &str, split: &str) -> String {
    let is_part = |folder: &&str| *folder != split && !SPLITS.contains(folder);
    folders(name).filter(is_part).collect::<Vec<_>>().join("/")
}

fn listed<T: AsRef<str>>(names: &[T]) -> String {
    const MOST: usize = 20;
    let shown: Vec<&str> = names.iter().map(AsRef::as_ref).take(MOST).collect();
    let more = if names.len() > MOST { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn folders(name: &str) -> impl Iterator<Item = &str> {
    name.rsplit_once('/').map_or("", |(folders, _)| folders).split('/').filter(|f| !f.is_empty())
}

fn file_of(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn split_extension(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or((name, ""))
}

/// `train` of `data/train-00000-of-00002.parquet`, `train_0.jsonl` and `train.json`.
fn without_number(name: &str) -> &str {
    let stem = pieces(name).map_or_else(|| split_extension(name).0, |(stem, _)| stem);
    file_of(stem).trim_end_matches(|c: char| c.is_ascii_digit() || "-_.".contains(c))
}

/// The words of a name and its folders.
fn words(name: &str) -> impl Iterator<Item = &str> {
    split_extension(name).0.split(|c: char| !c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str], config: Option<&str>, split: &str) -> Result<Vec<String>, String> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        choose(&names, Format::Parquet, config, split)
    }

    #[test]
    fn the_layouts_of_the_hub_are_known() {
        let check = |names: &[&str], config, split, want: &[usize]| {
            let want: Vec<String> = want.iter().map(|&at| names[at].to_owned()).collect();
            assert_eq!(chosen(names, config, split), Ok(want), "{names:?}");
        };
        let data = [
            "data/train-00001-of-00002.parquet",
            "data/train-00000-of-00002.parquet",
            "data/test-00000-of-00001.parquet",
        ];
        check(&data, None, "train", &[1, 0]);
        check(&data, Some("default"), "test", &[2]);
        let parts = [
            "Math/test-00000-of-00001.parquet",
            "Math/dev-00000-of-00001.parquet",
            "Art/test-00000-of-00001.parquet",
        ];
        check(&parts, Some("Math"), "test", &[0]);
        let converted =
            ["default/train/0000.parquet", "default/train/0001.parquet", "x/train/0000.parquet"];
        check(&converted, None, "train", &[0, 1]);
        check(&converted, Some("x"), "train", &[2]);
        check(&["all.parquet", "README.md", ".cache/x.parquet"], None, "train", &[0]);
        let alike = ["train_sft-00000-of-00001-0a1b.parquet", "train-00000-of-00001.parquet"];
        check(&alike, None, "train_sft", &[0]);
        check(&alike, None, "train", &[1]);
        check(&["my_test_rows.parquet", "my_train_rows.parquet"], None, "test", &[0]);
        check(&["validation.parquet", "x/validation.parquet"], None, "validation", &[0]);
        check(&["train_0.parquet", "train_1.parquet"], None, "train", &[0, 1]);
    }

    #[test]
    fn what_is_missing_or_unclear_is_told() {
        let check = |names: &[&str], config, split, want: &str| {
            assert_eq!(chosen(names, config, split), Err(want.to_owned()), "{names:?}");
        };
        check(&["a.csv"], None, "train", "no Parquet files");
        let parts = ["Math/test.parquet", "Art/test.parquet"];
        check(&parts, Some("Maths"), "test", "no part `Maths`; there is Art, Math");
        check(&parts, None, "test", "several parts, of which one must be named: Art, Math");
        let splits = ["data/test.parquet", "data/dev.parquet"];
        check(&splits, None, "train", "no split `train`; there is dev, test");
        check(&["rows.parquet"], None, "test", "no split `test`: the files are rows.parquet");
        check(&["train-00001-of-00002.parquet"], None, "train", "only 1 of 2 pieces of train");
    }

    #[test]
    fn descriptions_are_no_rows() {
        let names = ["dataset_infos.json", "state.json", "rows.jsonl"].map(str::to_owned);
        assert_eq!(choose(&names, Format::Json, None, "train"), Ok(vec!["rows.jsonl".to_owned()]));
    }
}
