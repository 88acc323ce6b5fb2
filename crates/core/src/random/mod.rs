//! Random streams that reproduce the generators of the Python tools.
//!
//! The Python tools seed NumPy's legacy generator and Python's `random` module with the same
//! number and draw from both, in a fixed order. [`Draws`] holds the pair: whoever draws in that
//! order from a pair of the same seed gets the same workload.
//!
//! ```
//! use servebench_core::random::Draws;
//!
//! let mut draws = Draws::new(42);
//! assert_eq!(draws.numpy.randint(1..=1024, 3), [103, 436, 861]);
//! assert_eq!(draws.python.choices_index(100, 3), [63, 2, 27]);
//! ```

mod counts;
mod gamma;
mod numpy;
mod pcg;
mod python;

pub use numpy::NumpyLegacy;
pub use pcg::NumpyGenerator;
pub use python::PythonRandom;

use rand_mt::Mt;

/// The two generators of a Python tool, seeded alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Draws {
    /// NumPy's global generator: lengths, offsets, arrival gaps, skewed choices.
    pub numpy: NumpyLegacy,
    /// Python's global generator: shuffles, uniform choices.
    pub python: PythonRandom,
}

impl Draws {
    /// Both generators, freshly seeded. NumPy takes no seed beyond 32 bits, so neither does this.
    pub fn new(seed: u32) -> Self {
        Self { numpy: NumpyLegacy::new(seed), python: PythonRandom::new(seed) }
    }
}

/// A double in `[0, 1)` with 53 random bits, made of two words as both Python generators do.
fn random_f64(words: &mut Mt) -> f64 {
    let high = words.next_u32() >> 5;
    let low = words.next_u32() >> 6;
    (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
}
