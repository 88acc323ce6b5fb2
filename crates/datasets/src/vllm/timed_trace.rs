//! `timed_trace`: requests at the times of a trace, whose prompts share the blocks that the trace names.

use super::shared::{need, need_path};
use super::{VllmDatasetOptions, VllmLoaded};
use crate::lines::bad_line;
use crate::{DatasetError, corpus};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Value;
use servebench_core::random::PythonRandom;
use servebench_core::{Counted, Prompt, Sample, Stamp};
use servebench_tokens::Tokenizer;
use std::time::Duration;

/// How the lines of a trace are read.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimedTraceOptions {
    /// Tokens of a block.
    pub chunk_size: u32,
    /// Seconds in a unit of the trace's times.
    pub sec_multiplier: f64,
    /// Count times from the first row on, in place of from zero.
    pub rebase: bool,
    /// Name of the field with the time.
    pub timestamp: String,
    /// Name of the field with the prompt's length.
    pub input_length: String,
    /// Name of the field with the output's length.
    pub output_length: String,
    /// Name of the field with the numbers of the prompt's blocks.
    pub hash_ids: String,
}

impl Default for TimedTraceOptions {
    fn default() -> Self {
        Self {
            chunk_size: 16,
            sec_multiplier: 1.0,
            rebase: false,
            timestamp: "timestamp".to_owned(),
            input_length: "input_length".to_owned(),
            output_length: "output_length".to_owned(),
            hash_ids: "hash_ids".to_owned(),
        }
    }
}

pub(super) fn load(
    own: &TimedTraceOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
) -> Result<VllmLoaded, DatasetError> {
    let wrong = |flag, problem| Err(DatasetError::Option { flag, problem });
    if own.chunk_size == 0 {
        return wrong("--timed-trace-chunk-hash-size", "must be 1 or more".to_owned());
    }
    if !(own.sec_multiplier.is_finite() && own.sec_multiplier >= 0.0) {
        let problem = format!("{} is no number of seconds", own.sec_multiplier);
        return wrong("--timed-trace-sec-multiplier", problem);
    }
    let tokenizer = need(tokenizer, "timed_trace")?;
    let path = need_path(options, "timed_trace")?;
    let text = corpus::read(path)?;
    let wanted = options.num_prompts.unwrap_or(usize::MAX);
    let mut rows = Vec::new();
    for (number, line) in crate::lines::numbered(&text).take(wanted) {
        rows.push(Row::read(line, own).map_err(|why| bad_line(path, number, why))?);
    }
    let first = rows.iter().map(|row| row.at).min_by(f64::total_cmp);
    let Some(first) = first else {
        let (dataset, skipped) = (path.display().to_string(), "0 rows".to_owned());
        return Err(DatasetError::NoUsableRows { dataset, skipped });
    };
    let zero = if own.rebase { first } else { 0.0 };
    let blocks = Blocks::new(own.chunk_size, options.seed, tokenizer);
    let mut loaded = VllmLoaded { request_ids: true, ..VllmLoaded::default() };
    loaded.samples = rows.par_iter().map(|row| row.sample(zero, &blocks)).collect();
    let asked = options.num_prompts.filter(|n| *n > rows.len());
    if let Some(asked) = asked {
        let (path, rows) = (path.display(), rows.len());
        loaded.warnings.push(format!("{path} has {rows} rows, fewer than the {asked} asked for"));
    }
    let lengths = rows.iter().map(|row| row.input_len);
    let short =
        lengths.zip(&loaded.samples).filter(|(len, sample)| sample.prompt_len < *len).count();
    if short > 0 {
        loaded.warnings.push(format!(
            "{short} of {} prompts are shorter than the trace says: their `{}` are too few for blocks \
             of {} tokens (--timed-trace-chunk-hash-size)",
            rows.len(),
            own.hash_ids,
            own.chunk_size
        ));
    }
    let waits = loaded.samples.iter().filter_map(|sample| sample.timestamp).min();
    if let Some(wait) = waits.filter(|wait| wait.as_secs_f64() > 10.0) {
        loaded.warnings.push(format!(
            "the trace begins after {:.0} s, in which nothing is sent (--timed-trace-rebase skips them)",
            wait.as_secs_f64()
        ));
    }
    Ok(loaded)
}

/// One request of a trace.
#[derive(Debug, PartialEq)]
pub(super) struct Row {
    /// Seconds.
    at: f64,
    input_len: u32,
    output_len: u32,
    /// The numbers of its blocks, as text.
    blocks: Vec<String>,
}

impl Row {
    pub(super) fn read(line: &str, own: &TimedTraceOptions) -> Result<Self, String> {
        let row: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let Some(row) = row.as_object() else { return Err("it is no object".to_owned()) };
        let field = |name: &str, flag: &str| {
            row.get(name).filter(|value| !value.is_null()).ok_or_else(|| {
                let found: Vec<&str> = row.keys().map(String::as_str).collect();
                format!("it has no `{name}`, only {} ({flag} names another)", found.join(", "))
            })
        };
        let length = |name: &str, flag: &str| {
            let value = field(name, flag)?;
            let length = value.as_u64().and_then(|length| u32::try_from(length).ok());
            length.ok_or_else(|| format!("its `{name}` is {value}, no number of tokens"))
        };
        let time = field(&own.timestamp, "--timed-trace-label-timestamp")?;
        let seconds = match time {
            Value::String(text) => text.trim().parse().ok(),
            value => value.as_f64(),
        };
        let at = seconds.map(|time: f64| time * own.sec_multiplier);
        let at = at.filter(|at| at.is_finite());
        let at = at.ok_or_else(|| format!("its `{}` is {time}, no time", own.timestamp))?;
        let block = |id: &Value| match id {
            Value::Number(number) => Ok(number.to_string()),
            Value::String(text) => Ok(text.clone()),
            other => Err(format!("{other} in its `{}` is no number", own.hash_ids)),
        };
        let blocks = match row.get(&own.hash_ids) {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(ids)) => ids.iter().map(block).collect::<Result<_, _>>()?,
            Some(_) => return Err(format!("its `{}` is no list", own.hash_ids)),
        };
        Ok(Self {
            at,
            input_len: length(&own.input_length, "--timed-trace-label-input-length")?,
            output_len: length(&own.output_length, "--timed-trace-label-output-length")?,
            blocks,
        })
    }

    fn sample(&self, zero: f64, blocks: &Blocks) -> Sample {
        let ids = blocks.prompt(&self.blocks, self.input_len);
        let after = Duration::try_from_secs_f64((self.at - zero).max(0.0));
        Sample {
            prompt_len: ids.len() as u32,
            prompt: Prompt::Ids(ids),
            counted: Counted::Exact,
            output_len: self.output_len,
            timestamp: Some(Stamp::from(after.unwrap_or(Duration::MAX))),
            ..Sample::default()
        }
    }
}

/// What stands in blocks.
pub(super) struct Blocks {
    size: u32,
    /// Ids in ascending order, none of them special.
    ids: Vec<u32>,
    keys: [u64; 2],
}

impl Blocks {
    pub(super) fn new(size: u32, seed: u32, tokenizer: &Tokenizer) -> Self {
        let special = tokenizer.named_special_ids();
        let mut ids = tokenizer.vocabulary_ids();
        ids.retain(|id| special.binary_search(id).is_err());
        ids.sort_unstable();
        Self { size, ids, keys: hash_keys(seed) }
    }

    /// The blocks of those numbers one after the other, up to `len` tokens.
    ///
    /// What a block holds depends on its number and its length, so that the last one of a prompt may be
    /// none that another prompt has. The seed of its draws is Python's hash of both, as the Python tool
    /// has it where `PYTHONHASHSEED` is our seed; else there it is another in every process.
    pub(super) fn prompt(&self, blocks: &[String], len: u32) -> Vec<u32> {
        let mut prompt = Vec::new();
        let mut missing = len;
        for block in blocks {
            if missing == 0 || self.ids.is_empty() {
                break;
            }
            let size = self.size.min(missing);
            let seed = siphash_1_3(self.keys, format!("{block}:{size}").as_bytes()) as u32;
            let places =
                PythonRandom::new(seed).choices_index(self.ids.len() as u32, size as usize);
            prompt.extend(places.into_iter().map(|place| self.ids[place as usize]));
            missing -= size;
        }
        prompt
    }
}

/// The keys of Python's hash of text for a `PYTHONHASHSEED`: zero for 0, else from a linear generator.
fn hash_keys(seed: u32) -> [u64; 2] {
    if seed == 0 {
        return [0; 2];
    }
    let mut state = seed;
    [0; 2].map(|_: u64| {
        u64::from_le_bytes([0; 8].map(|_: u8| {
            state = state.wrapping_mul(214_013).wrapping_add(2_531_011);
            (state >> 16) as u8
        }))
    })
}

/// SipHash with one round for each word and three at the end.
fn siphash_1_3([k0, k1]: [u64; 2], bytes: &[u8]) -> u64 {
    let mut state = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let mut take = |word: u64| {
        state[3] ^= word;
        round(&mut state);
        state[0] ^= word;
    };
    let mut words = bytes.chunks_exact(8);
    let padded = |part: &[u8]| {
        let mut word = [0; 8];
        word[..part.len()].copy_from_slice(part);
        u64::from_le_bytes(word)
    };
    for word in words.by_ref() {
        take(padded(word));
    }
    take(padded(words.remainder()) | (bytes.len() as u64) << 56);
    state[2] ^= 0xff;
    for _ in 0..3 {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *c = c.wrapping_add(*d);
    *b = b.rotate_left(13) ^ *a;
    *d = d.rotate_left(16) ^ *c;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*b);
    *a = a.wrapping_add(*d);
    *b = b.rotate_left(17) ^ *c;
    *d = d.rotate_left(21) ^ *a;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hashes_are_pythons() {
        let hash = |seed, text: &str| siphash_1_3(hash_keys(seed), text.as_bytes()) as u32;
        // PYTHONHASHSEED=0 and 42: hash(text) & 0xffffffff
        assert_eq!(
            ["12:16", "7:3", "123456789:16"].map(|text| hash(0, text)),
            [432_572_991, 4_053_101_945, 2_672_574_890]
        );
        assert_eq!(
            ["12:16", "7:3", "123456789:16"].map(|text| hash(42, text)),
            [2_327_408_105, 817_594_646, 2_556_970_067]
        );
    }

    #[test]
    fn equal_blocks_have_equal_tokens() {
        let blocks = Blocks::new(4, 0, &Tokenizer::byte_level());
        let ids = ["1", "2", "1"].map(str::to_owned);
        let prompt = blocks.prompt(&ids, 11);
        assert_eq!(prompt.len(), 11);
        assert_eq!(prompt[..8], blocks.prompt(&ids[..2], 8));
        assert_ne!(prompt[..3], prompt[8..], "the last block is another, since it is shorter");
        assert_eq!(blocks.prompt(&ids, 99).len(), 12);
        assert!(blocks.prompt(&ids, 0).is_empty() && blocks.prompt(&[], 5).is_empty());
    }

    #[test]
    fn a_row_says_what_it_lacks() {
        let own = TimedTraceOptions { sec_multiplier: 0.001, ..TimedTraceOptions::default() };
        let row =
            r#"{"timestamp": 1500, "input_length": 20, "output_length": 3, "hash_ids": [7, "x"]}"#;
        let blocks = vec!["7".to_owned(), "x".to_owned()];
        let want = Row { at: 1.5, input_len: 20, output_len: 3, blocks };
        assert_eq!(Row::read(row, &own), Ok(want));
        for (row, said) in [
            (r#"{"input_length": 1, "output_length": 1}"#, "--timed-trace-label-timestamp"),
            (r#"{"timestamp": 0, "output_length": 1}"#, "--timed-trace-label-input-length"),
            (r#"{"timestamp": 0, "input_length": -1, "output_length": 1}"#, "no number of tokens"),
            (r#"{"timestamp": [], "input_length": 1, "output_length": 1}"#, "no time"),
            (
                r#"{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": 3}"#,
                "no list",
            ),
            ("[]", "no object"),
        ] {
            let error = Row::read(row, &own).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_line_panics(line in "[\\[\\]{}\":,0-9timestampinput_lengthhash_ids]{0,80}") {
            drop(Row::read(&line, &TimedTraceOptions::default()));
        }

        #[test]
        fn a_prompt_is_as_long_as_its_blocks_allow(
            blocks in prop::collection::vec("[0-9]{1,3}", 0..6), len in 0..80_u32, size in 1..20_u32,
        ) {
            let made = Blocks::new(size, 7, &Tokenizer::byte_level()).prompt(&blocks, len);
            prop_assert_eq!(made.len() as u32, len.min(size * blocks.len() as u32));
        }
    }
}
