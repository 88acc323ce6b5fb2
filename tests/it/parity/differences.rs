//! Where `bench-serving` differs from the Python tool, and why.

use super::capture::Call;
use super::golden::Case;
use super::rewrites::{self, Calls};
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// A difference that is meant.
#[derive(Debug)]
pub(super) struct Difference {
    pub(super) what: &'static str,
    pub(super) why: &'static str,
    pub(super) applies: Applies,
}

/// Where a difference shows. Each function tells whether it did.
#[derive(Clone, Copy, Debug)]
pub(super) enum Applies {
    /// Changes a recorded command line into one that is taken here.
    Arguments(fn(&mut Vec<String>) -> bool),
    /// Changes the recorded calls, or both, until calls that differ as meant are equal.
    Calls(fn(&Case, &mut Calls) -> bool),
    /// Changes a prompt of ours into the recorded one.
    Prompt(fn(&Case, &mut Value) -> bool),
    /// Tells whether the value of a result key differs as meant: case, key, recorded value, result line.
    Value(fn(&Case, &str, &Value, &Value) -> bool),
}

use Applies::{Arguments, Calls as InCalls, Prompt, Value as InValue};

/// All differences that are meant.
pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        what: "--header items without `=`, or with an empty side, are usage errors",
        why: "the Python tool drops them without a word",
        applies: Arguments(rewrites::without_broken_headers),
    },
    Difference {
        what: "of a rendered chat template only a leading begin-of-sequence text is removed",
        why: "the Python tool removes it from the user's own words, too",
        applies: Prompt(rewrites::without_begin_of_sequence),
    },
    Difference {
        what: "accept, accept-encoding, connection, content-length and user-agent",
        why: "they describe the client and its connection: nothing is compressed, one connection serves many \
              requests, bodies have no blanks",
        applies: InCalls(rewrites::without_transport_headers),
    },
    Difference {
        what: "control calls carry the headers that generation requests carry",
        why: "a gateway that asks for a header asks for it on every path; the Python tool leaves `--header` out, \
              and the key too on profiler calls",
        applies: InCalls(rewrites::headers_on_control_calls),
    },
    Difference {
        what: "GET /server_info is made once",
        why: "the Python tool asks sglang servers a second time, for the result file",
        applies: InCalls(rewrites::one_server_info),
    },
    Difference {
        what: "the warm-up has a prompt of its own unless the cache is flushed after it",
        why: "row 0 as warm-up leaves row 0 in the prefix cache for the measured run",
        applies: InCalls(rewrites::warm_up_prompts),
    },
    Difference {
        what: "streams of the OpenAI routes ask for `stream_options.include_usage`",
        why: "the server knows how many tokens it made; the Python tool takes the number asked for",
        applies: InCalls(rewrites::include_usage),
    },
    Difference {
        what: "--temperature and --top-p reach the OpenAI routes",
        why: "the Python tool ignores them there",
        applies: InCalls(rewrites::sampling_on_openai_routes),
    },
    Difference {
        what: "num_steps and start_step of /start_profile are numbers",
        why: "they are integers in the server's schema; the Python tool sends some as text",
        applies: InCalls(rewrites::numbers_in_profile),
    },
    Difference {
        what: "/stop_profile has no start_step",
        why: "no server reads it",
        applies: InCalls(rewrites::stop_without_step),
    },
    Difference {
        what: "no /stop_profile after --profile-by-stage, which always has a number of steps",
        why: "the server stops by itself and refuses to stop again; the Python tool ignores the refusal",
        applies: InCalls(rewrites::no_second_stop),
    },
    Difference {
        what: "vLLM is told to stop its profiler whatever the number of steps",
        why: "it takes no such number and would go on for ever",
        applies: InCalls(rewrites::vllm_is_stopped),
    },
    Difference {
        what: "an infinite request_rate is the string `inf`",
        why: "JSON has no infinity; the Python tool writes one all the same",
        applies: InValue(rewrites::infinite_rate),
    },
    Difference {
        what: "a key that is computed otherwise has a twin `upstream_<key>` with the Python tool's value",
        why: "the value under the key is the right one, the twin the comparable one",
        applies: InValue(rewrites::twin),
    },
    Difference {
        what: "`null` for what was not measured",
        why: "the Python tool writes 0, which reads as a measurement",
        applies: InValue(rewrites::not_measured),
    },
    Difference {
        what: "errors are in our own words",
        why: "the Python tool's are tracebacks and reason phrases",
        applies: InValue(rewrites::other_words),
    },
    Difference {
        what: "output_lens without a count from the server are the tokenizer's",
        why: "the Python tool takes the number asked for, which a reply that stops early does not reach",
        applies: InValue(rewrites::counted_by_tokenizer),
    },
    Difference {
        what: "input_lens of random text without a count from the server are the tokenizer's",
        why: "decoded ids encode to another number of tokens; the totals stay those of the dataset",
        applies: InValue(rewrites::prompts_counted_by_tokenizer),
    },
];

/// Tells which differences showed in a test, to find those that no longer do.
#[derive(Debug)]
pub(super) struct Shown([AtomicBool; DIFFERENCES.len()]);

impl Shown {
    pub(super) fn none() -> Self {
        Self([const { AtomicBool::new(false) }; DIFFERENCES.len()])
    }

    /// The recorded command line as it is typed here.
    pub(super) fn arguments(&self, case: &Case) -> Vec<String> {
        let mut arguments = case.arguments();
        for (difference, shown) in self.each() {
            if let Arguments(apply) = difference.applies {
                shown.fetch_or(apply(&mut arguments), SeqCst);
            }
        }
        arguments
    }

    /// Changes a prompt of ours into the recorded one; true if it was another.
    pub(super) fn prompt(&self, case: &Case, prompt: &mut Value) -> bool {
        let mut changed = false;
        for (difference, shown) in self.each() {
            if let Prompt(apply) = difference.applies
                && apply(case, prompt)
            {
                shown.store(true, SeqCst);
                changed = true;
            }
        }
        changed
    }

    /// What is left of the calls' differences, in words.
    pub(super) fn calls(&self, case: &Case, ours: Vec<Call>) -> Vec<String> {
        let mut calls = Calls { recorded: case.calls(), ours };
        for (difference, shown) in self.each() {
            if let InCalls(apply) = difference.applies {
                shown.fetch_or(apply(case, &mut calls), SeqCst);
            }
        }
        let Calls { recorded, ours } = calls;
        let (count, counted) = (recorded.len(), ours.len());
        if count != counted {
            let paths = |calls: &[Call]| -> Vec<String> {
                calls.iter().map(|call| format!("{} {}", call.method, call.path)).collect()
            };
            return vec![format!("{:?} is not {:?}", paths(&ours), paths(&recorded))];
        }
        let pairs = recorded.iter().zip(&ours).enumerate();
        let differ = pairs.filter(|(_, (recorded, ours))| {
            let Call { method, path, headers, body, raw: _ } = recorded;
            (method, path, headers, body) != (&ours.method, &ours.path, &ours.headers, &ours.body)
        });
        let text = |call: &Call| {
            let body = call.body.as_ref().unwrap_or(&Value::Null);
            format!("{} {} {:?} {body}", call.method, call.path, call.headers)
        };
        differ
            .map(|(i, (a, b))| format!("call {i} is\n  {}\nand not\n  {}", text(b), text(a)))
            .collect()
    }

    /// Whether a value of the result line differs from the recorded one as meant.
    pub(super) fn is_meant(&self, case: &Case, key: &str, recorded: &Value, line: &Value) -> bool {
        self.each().any(|(difference, shown)| match difference.applies {
            InValue(apply) if apply(case, key, recorded, line) => {
                shown.store(true, SeqCst);
                true
            }
            _ => false,
        })
    }

    /// Panics if one of the differences of this kind showed nowhere.
    pub(super) fn expect_all(&self, of_kind: fn(Applies) -> bool) {
        for (difference, shown) in self.each().filter(|(row, _)| of_kind(row.applies)) {
            let Difference { what, why, .. } = difference;
            assert!(shown.load(SeqCst), "no longer a difference: {what} ({why})");
        }
    }

    fn each(&self) -> impl Iterator<Item = (&'static Difference, &AtomicBool)> {
        DIFFERENCES.iter().zip(&self.0)
    }
}
