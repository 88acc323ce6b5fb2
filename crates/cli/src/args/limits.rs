//! How long a request may take, and how often it is tried.

use super::values;
use clap::Args;

/// How long a request may take, and how often it is tried. 0 seconds: no limit.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Time limits of a request")]
pub struct LimitArgs {
    /// Longest wait for a connection (DNS, TCP, a proxy, TLS); 0: no limit [default: 120]
    ///
    /// A request that runs into a limit fails with kind `timeout`, and its words name the flag.
    #[arg(long, value_name = "SECONDS", value_parser = values::not_negative)]
    pub connect_timeout: Option<f64>,

    /// Longest wait for the first byte of an answer, from when the request was sent; 0: no limit
    /// [default: 0]
    ///
    /// Until that byte it takes the place of --idle-timeout: a long prompt may keep a server silent for
    /// minutes that never pauses for seconds once it writes.
    #[arg(long, value_name = "SECONDS", value_parser = values::not_negative)]
    pub first_byte_timeout: Option<f64>,

    /// Longest silence of the server; 0: no limit [default: 0]
    ///
    /// Any byte ends a silence, one of a comment too.
    #[arg(long, value_name = "SECONDS", value_parser = values::not_negative)]
    pub idle_timeout: Option<f64>,

    /// Longest time from dispatch to the end of a reply, all tries together; 0: no limit [default: 21600]
    #[arg(long, value_name = "SECONDS", value_parser = values::not_negative)]
    pub request_timeout: Option<f64>,

    /// Send a request up to N times again when a try ends before one byte of an answer [default: 0]
    ///
    /// That is: no connection, or one that breaks. Never again because of a status, an error in the reply or
    /// one of the limits on the answer. The pause before a retry is 0.1 s, then twice the one before, 5 s at
    /// most; latencies hold it all, and the result counts the `retries`.
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
}
