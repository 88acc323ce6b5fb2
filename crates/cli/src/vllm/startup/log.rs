//! What a server's log says of compilation.

/// Seconds that a server compiled.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Compilation {
    /// The language model.
    pub(super) model: f64,
    /// The encoder of a multimodal model.
    pub(super) encoder: f64,
}

impl Compilation {
    /// What vLLM's log tells; `None` for a log that tells nothing.
    ///
    /// The engine sums up in its line of initialization; releases that do not give the time there have a
    /// line for each graph. Of several engines the slowest counts.
    pub(super) fn read(log: &str) -> Option<Self> {
        let mut summed: Option<Self> = None;
        let mut graphs: Option<f64> = None;
        let mut initialized = false;
        for line in log.lines() {
            if let Some((_, rest)) = line.split_once("init engine (") {
                initialized |= rest.contains(" took ");
                if let Some(this) = Self::of_engine(rest) {
                    let sum = summed.get_or_insert_default();
                    sum.model = sum.model.max(this.model);
                    sum.encoder = sum.encoder.max(this.encoder);
                }
            } else if let Some((_, rest)) = line.split_once("torch.compile ")
                && line.trim_end().ends_with(" s in total")
                && let Some(seconds) = after(rest, "took ").or_else(|| after(rest, "takes "))
            {
                *graphs.get_or_insert_default() += seconds;
            }
        }
        // Where something was compiled, a line said so.
        let nothing = initialized.then(Self::default);
        summed.or(graphs.map(|model| Self { model, encoder: 0.0 })).or(nothing)
    }

    /// `… took 9.1 s (compilation: 5.0 s)`, or `(compilation: 5.0 s — language_model: 3.0 s, encoder: 2.0 s)`.
    fn of_engine(line: &str) -> Option<Self> {
        let all = after(line, "(compilation: ")?;
        let model = after(line, "language_model: ").unwrap_or(all);
        Some(Self { model, encoder: after(line, "encoder: ").unwrap_or(0.0) })
    }
}

/// The number behind `words`.
fn after(line: &str, words: &str) -> Option<f64> {
    let (_, rest) = line.split_once(words)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    rest[..end].parse().ok().filter(|seconds: &f64| seconds.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn engines_sum_up() {
        let log = "(EngineCore pid=7) INFO 12-01 04:00:00 [monitor.py:63] torch.compile took 4.50 s in total\n\
             (EngineCore pid=7) INFO 12-01 04:00:01 [core.py:395] init engine (profile, create kv cache, \
             warmup model) took 9.10 s (compilation: 5.00 s)\n";
        assert_eq!(Compilation::read(log), Some(Compilation { model: 5.0, encoder: 0.0 }));
        let log = "init engine (profile, create kv cache, warmup model) took 9.10 s \
             (compilation: 5.00 s \u{2014} language_model: 3.00 s, encoder: 2.00 s)\n\
             init engine (profile) took 9.10 s (compilation: 4.00 s)\n";
        assert_eq!(Compilation::read(log), Some(Compilation { model: 4.0, encoder: 2.0 }));
    }

    #[test]
    fn graphs_are_summed_where_engines_do_not() {
        let log = "INFO [monitor.py:33] torch.compile takes 12.25 s in total\n\
             INFO [monitor.py:33] torch.compile and initial profiling/warmup run together took 1.50 s in total\n\
             INFO [core.py:193] init engine (profile, create kv cache, warmup model) took 20.41 seconds\n";
        assert_eq!(Compilation::read(log), Some(Compilation { model: 13.75, encoder: 0.0 }));
    }

    #[test]
    fn an_engine_that_compiled_nothing_took_no_time_for_it() {
        let log = "INFO init engine (profile, create kv cache, warmup model) took 0.41 s\n";
        assert_eq!(Compilation::read(log), Some(Compilation::default()));
        assert_eq!(Compilation::read("ready\n"), None);
    }

    proptest! {
        #[test]
        fn no_log_panics(log in "(init engine \\(|torch.compile |took |takes |[0-9.]{1,3}| s in total|compilation: |é|\n){0,12}") {
            if let Some(compilation) = Compilation::read(&log) {
                prop_assert!(compilation.model >= 0.0 && compilation.encoder >= 0.0);
            }
        }
    }
}
