//! Which prompts are sent, and in which order.

use super::PrefixCachingArgs;
use crate::exit::OrCode;
use crate::{Code, Failure};
use servebench_core::random::PythonRandom;
use servebench_core::{Prompt, Sample};
use servebench_tokens::Tokenizer;

/// Different prompts of random tokens, with the script's draws for the same seed: first the prefix, then
/// for each prompt its length and its tokens.
///
/// The script draws from the vocabulary in an order that differs from process to process; here it is that
/// of the ids.
pub(super) fn random(
    args: &PrefixCachingArgs,
    tokenizer: &Tokenizer,
    random: &mut PythonRandom,
) -> Result<Vec<Sample>, Failure> {
    let special = tokenizer.named_special_ids();
    let mut vocabulary = tokenizer.vocabulary_ids();
    vocabulary.retain(|id| !special.contains(id));
    if vocabulary.is_empty() {
        let error = anyhow::anyhow!("the tokenizer has no tokens but special ones");
        return Err(Failure::new(Code::Data, error));
    }
    let draw = |random: &mut PythonRandom, count: u32| -> Vec<u32> {
        let drawn = random.choices_index(vocabulary.len() as u32, count as usize);
        drawn.into_iter().map(|place| vocabulary[place as usize]).collect()
    };
    let prefix = draw(random, args.prefix_len);
    let (min, max) = (*args.input_length_range.start(), *args.input_length_range.end());
    (0..args.num_prompts)
        .map(|_| {
            let length = min + random.below(max - min + 1);
            let mut ids = prefix.clone();
            ids.extend(draw(random, length.saturating_sub(args.prefix_len)));
            Ok(Sample {
                prompt_len: ids.len() as u32,
                prompt: Prompt::Text(tokenizer.decode(&ids, false).or_code(Code::Data)?),
                output_len: args.output_len,
                ..Sample::default()
            })
        })
        .collect()
}

/// Puts the prompts of a file into the form in which the script sends them: what their tokens decode to,
/// the special ones before them included.
pub(super) fn retokenize(samples: &mut [Sample], tokenizer: &Tokenizer) -> Result<(), Failure> {
    for sample in samples {
        if let Prompt::Text(text) = &mut sample.prompt {
            let ids = tokenizer.encode(text, true).or_code(Code::Data)?;
            *text = tokenizer.decode(&ids, false).or_code(Code::Data)?;
        }
    }
    Ok(())
}

/// Which prompt each request sends.
pub(super) fn order(
    samples: &[Sample],
    repeat_count: u32,
    sort: bool,
    random: &mut PythonRandom,
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..repeat_count).flat_map(|_| 0..samples.len()).collect();
    if sort {
        order.sort_by_key(|prompt| samples[*prompt].prompt_len);
    } else {
        random.shuffle(&mut order);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_prompts_come_first_when_sorted() {
        let sample = |prompt_len| Sample { prompt_len, ..Sample::default() };
        let samples = [sample(5), sample(3), sample(5)];
        let mut random = PythonRandom::new(0);
        assert_eq!(order(&samples, 2, true, &mut random), [1, 1, 0, 2, 0, 2]);
        // random.seed(0); order = [0, 1, 2] * 2; random.shuffle(order)
        assert_eq!(order(&samples, 2, false, &mut random), [1, 2, 1, 0, 2, 0]);
    }
}
