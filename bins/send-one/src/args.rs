//! The command line of `send-one`.

use clap::Parser;
use servebench_cli::send_one::SendOneArgs;

/// Sends one prompt to a running SGLang server and shows the reply with its timing
///
/// Takes the flags of `python -m sglang.test.send_one`, unique prefixes of them included, and prints
/// its table: latency and tokens by the server's own count, accepted tokens per step of speculative
/// decoding, speed. A second table has what the client saw (TTFT, ITL, decode speed), and how much
/// of the prompt was found in the server's cache.
#[derive(Parser, Debug)]
#[command(
    name = "send-one",
    version,
    after_help = EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct Args {
    /// All of it.
    #[command(flatten)]
    pub all: SendOneArgs,
}

const EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  send-one --simulate --stream

  # The SGLang server on this machine; is it up, and how fast is it?
  send-one --stream

  # Decode speed at batch size 8 with prompts of 1000 random tokens:
  send-one --stream --batch-size 8 --random-input-len 1000 --different-prompts

  # A trace of the first ten steps of one request, prefill and decode apart:
  send-one --profile --profile-steps 10 --profile-by-stage

Exit codes: 0 done, 1 bug, 2 usage, 3 bad data, 4 server not reached or refused, 5 the request
failed, 7 output not written, 130/143 interrupted.";
