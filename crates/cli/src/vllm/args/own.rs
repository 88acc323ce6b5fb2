//! What the Python tool does not have: how requests are carried.

use crate::args::{EndingArgs, HttpReaderName, LimitArgs, NetworkArgs, ReceiveStamps};
use clap::Args;

/// How requests are carried, and how few may fail.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Transport")]
pub struct TransportArgs {
    /// Open a connection for each request, inside its measured time
    #[arg(long)]
    pub cold_connections: bool,

    /// Where the times at which bytes were received come from
    #[arg(long, value_name = "SOURCE", default_value = "kernel")]
    pub receive_stamps: ReceiveStamps,

    /// Who reads HTTP/1.1
    #[arg(long, value_name = "READER", default_value = "auto")]
    pub http_reader: HttpReaderName,

    /// Smallest share of requests that must succeed; less is exit code 5 [default: any success]
    #[arg(long, value_name = "RATIO", value_parser = super::super::values::share)]
    pub min_success_rate: Option<f64>,

    /// When the run ends before everything is sent and answered.
    #[command(flatten)]
    pub endings: EndingArgs,

    /// How long a request may take, and how often it is tried.
    #[command(flatten)]
    pub limits: LimitArgs,

    /// The way to the server.
    #[command(flatten)]
    pub network: NetworkArgs,
}
