//! Flags of the Python tools that are refused, and why: messages and documents say it with these words.

use crate::Failure;

/// Flags of a Python tool that are not taken here.
#[derive(Clone, Copy, Debug)]
pub struct Refused {
    /// The tool, as users call it.
    pub tool: &'static str,
    /// Which of its flags.
    pub flags: RefusedFlags,
    /// Why they are not taken.
    pub why: &'static str,
    /// What to do instead.
    pub instead: &'static str,
}

/// Which flags are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedFlags {
    /// These.
    Named(&'static [&'static str]),
    /// All that the tool hands on to the server it starts, and that our command does not know.
    OfItsServer,
}

/// What is refused.
pub const REFUSED: &[Refused] = &[
    Refused {
        tool: "sglang.bench_one_batch_server",
        flags: RefusedFlags::OfItsServer,
        why: "flags of SGLang's launch_server are not taken here: they start a Python server",
        instead: "they go into the command of --launch, \
                  as in --launch 'python -m sglang.launch_server --model-path MODEL --tp-size 2'",
    },
    Refused {
        tool: "vllm bench throughput",
        flags: RefusedFlags::Named(&["--hf-enable-torch-compile", "--hf-max-batch-size"]),
        why: "it runs a model in the Python process",
        instead: "start a server with the model and measure that",
    },
    Refused {
        tool: "vllm bench throughput",
        flags: RefusedFlags::Named(&["--async-engine", "--prequeue-requests"]),
        why: "how the engine is fed is the server's own choice",
        instead: "leave it out: all requests are sent at once, and the server begins with the first",
    },
    Refused {
        tool: "vllm bench throughput",
        flags: RefusedFlags::Named(&["--enable-multimodal-chat"]),
        why: "media always go into the messages",
        instead: "leave it out",
    },
    Refused {
        tool: "vllm bench throughput",
        flags: RefusedFlags::Named(&["--lora-path"]),
        why: "adapters are loaded by the server",
        instead: "start the server with --lora-modules NAME=PATH, and give --lora-modules NAME here",
    },
    Refused {
        tool: "vllm bench latency",
        flags: RefusedFlags::Named(&["--enable-prefix-caching", "--no-enable-prefix-caching"]),
        why: "the cache is the server's",
        instead: "leave it out: prompts are drawn anew for each batch, and no cache has them",
    },
    of_the_server("benchmark_long_document_qa_throughput.py", CACHE, START_CACHE),
    of_the_server("benchmark_prefix_caching.py", CACHE, START_CACHE),
    of_the_server(
        "benchmark_prioritization.py",
        &["--scheduling-policy"],
        "leave it out, and start the server with it: vllm serve MODEL --scheduling-policy priority",
    ),
    sends_text("benchmark_prefix_caching.py"),
    sends_text("benchmark_prioritization.py"),
    sends_text("vllm bench throughput"),
    sends_text("vllm bench latency"),
    Refused {
        tool: "benchmark_serving_multi_turn.py",
        flags: RefusedFlags::Named(&["--excel-output"]),
        why: "no spreadsheets are written here",
        instead: "--stats-json-output has the figures of each request, and --output-json the rest",
    },
    of_the_engine("vllm bench throughput"),
    of_the_engine("vllm bench latency"),
    of_the_engine("benchmark_long_document_qa_throughput.py"),
    of_the_engine("benchmark_prefix_caching.py"),
    of_the_engine("benchmark_prioritization.py"),
];

/// Whether prefixes are kept.
const CACHE: &[&str] = &["--enable-prefix-caching", "--no-enable-prefix-caching"];
const START_CACHE: &str =
    "leave it out, and start the server with it: vllm serve MODEL --enable-prefix-caching";

/// Engine options that the command lines of a script always have.
const fn of_the_server(
    tool: &'static str,
    flags: &'static [&'static str],
    instead: &'static str,
) -> Refused {
    Refused { tool, flags: RefusedFlags::Named(flags), why: "the server decides that", instead }
}

/// The one option of replies that a server does not have.
const fn sends_text(tool: &'static str) -> Refused {
    Refused {
        tool,
        flags: RefusedFlags::Named(&["--disable-detokenize"]),
        why: "a server sends text",
        instead: "leave it out",
    }
}

/// The engine options of a command that runs one in its process.
const fn of_the_engine(tool: &'static str) -> Refused {
    Refused {
        tool,
        flags: RefusedFlags::OfItsServer,
        why: "options of vLLM's engine are not taken here: the engine is in the server",
        instead: "start the server with them, as in vllm serve MODEL --tensor-parallel-size 2",
    }
}

impl Refused {
    /// The refusal of this flag of a tool, by its name.
    pub fn named(tool: &str, flag: &str) -> Option<&'static Self> {
        named(REFUSED, tool, flag)
    }

    /// What is said about the flags of the server that a tool starts.
    pub fn of_its_server(tool: &str) -> Option<&'static Self> {
        let mut refused = REFUSED.iter().filter(|refused| refused.tool == tool);
        refused.find(|refused| refused.flags == RefusedFlags::OfItsServer)
    }

    /// The failure of a command line that holds `flag`.
    pub(crate) fn failure(&self, flag: &str) -> Failure {
        let Self { tool, why, instead, .. } = self;
        Failure::usage(format!("{flag} of {tool} is not taken here: {why}")).hint(*instead)
    }
}

fn named<'a>(all: &'a [Refused], tool: &str, flag: &str) -> Option<&'a Refused> {
    all.iter().filter(|refused| refused.tool == tool).find(|refused| match refused.flags {
        RefusedFlags::Named(names) => names.contains(&flag),
        RefusedFlags::OfItsServer => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_refused_by_its_name_and_for_its_tool_alone() {
        let why = Refused {
            tool: "a tool",
            flags: RefusedFlags::Named(&["--one", "--two"]),
            why: "it is odd",
            instead: "use --even",
        };
        let all = [why, Refused { flags: RefusedFlags::OfItsServer, ..why }];
        assert!(named(&all, "a tool", "--three").is_none());
        assert!(named(&all, "another tool", "--two").is_none());
        let refused = named(&all, "a tool", "--two").map(|refused| refused.failure("--two"));
        let said = refused.map(|failure| failure.to_string()).unwrap_or_default();
        assert_eq!(said, "error: --two of a tool is not taken here: it is odd\n\nhint: use --even");
    }
}
