//! Counts, lengths, texts and pictures, in the Python tool's order.

use super::{Prompts, noise};
use crate::random::draw_lengths;
use crate::{DatasetError, DatasetOptions, Loaded};
use rayon::prelude::*;
use servebench_core::random::Draws;
use servebench_tokens::Tokenizer;

/// Where so many pictures of at least this many pixels are made, the user is told that it takes time.
const MANY: (u64, usize) = (1920 * 1080, 100);

/// Draws counts and lengths, then all texts, then all pictures: texts and pictures come from generators
/// of their own, so that this is the Python tool's order.
pub(crate) fn load(
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    draws: &mut Draws,
) -> Result<Loaded, DatasetError> {
    let image = options.image.clone().unwrap_or_default();
    let (rows, ratio) = (options.num_prompts, options.random_range_ratio);
    let counts = if image.random_count {
        draws.numpy.randint(1..=image.count, rows)
    } else {
        vec![image.count; rows]
    };
    let input = draw_lengths(options.random_input_len, ratio, rows, &mut draws.numpy);
    let output = draw_lengths(options.random_output_len, ratio, rows, &mut draws.numpy);
    let prompts = Prompts::new(tokenizer, image.messages)?;
    let texts = prompts.texts(&input, &mut draws.python)?;
    let total = counts.iter().map(|&count| count as usize).sum();
    let mut pictures = noise::pictures(&image, total, &mut draws.numpy)?.into_iter();
    let rows: Vec<_> = texts
        .into_iter()
        .zip(counts.iter().map(|&count| pictures.by_ref().take(count as usize).collect()))
        .zip(output)
        .collect();
    let samples = rows
        .into_par_iter()
        .map(|((text, pictures), output_len)| prompts.sample(text, pictures, output_len))
        .collect::<Result<Vec<_>, _>>()?;
    let mut warnings = prompts.warnings(samples.len());
    if total >= MANY.1 && image.resolution.most().pixels() >= MANY.0 {
        let most = image.resolution.most();
        warnings.push(format!(
            "{total} pictures of up to {}x{} pixels are made before the run, which takes time and \
             memory; --image-resolution and --image-content blank make it less",
            most.width, most.height
        ));
    }
    Ok(Loaded { samples, warnings })
}
