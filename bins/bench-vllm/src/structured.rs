//! The command line of `bench-vllm structured-output`.

use clap::Parser;
use servebench_cli::vllm::StructuredOutputArgs;

/// Sends prompts with constraints on their replies to a running server, and reports latencies, throughput and
/// how many replies are as they should be
///
/// Takes the flags of vLLM's `benchmark_serving_structured_output.py`, and prints its table. A request with a
/// constraint has it in the field `structured_outputs` of its body: a JSON schema, a grammar, a regular
/// expression or a list of words. First one request is sent alone; the run is made only if it succeeds.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm structured-output",
    version,
    after_help = EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct StructuredOutputCommand {
    #[command(flatten)]
    pub(crate) args: StructuredOutputArgs,
}

const EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  bench-vllm structured-output --simulate --dataset choice

  # A vLLM server on this machine, 1000 profiles as JSON at 10 requests per second, replies kept:
  bench-vllm structured-output --model NAME --dataset json --request-rate 10 --save-results

  # What the constraint costs: half of the requests with a schema of their own, then none:
  bench-vllm structured-output --model NAME --dataset json-unique --structured-output-ratio 0.5
  bench-vllm structured-output --model NAME --dataset json-unique --no-structured-output

Exit codes: 0 done, 1 bug, 2 usage, 3 bad plan or data, 4 server not ready or refused,
5 too few requests succeeded, 6 --fail-if-client-bound, 7 output not written, 130/143 interrupted.";
