//! What the Python tool does not have: how requests are carried.

use crate::args::{HttpReaderName, ReceiveStamps};
use clap::Args;
use std::path::PathBuf;

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

    /// Give a request up when its server is silent for this long [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = crate::args::values::positive)]
    pub idle_timeout: Option<f64>,

    /// Certificate authorities to trust for https, besides the usual ones (PEM)
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,

    /// Smallest share of requests that must succeed; less is exit code 5 [default: any success]
    #[arg(long, value_name = "RATIO", value_parser = super::super::values::share)]
    pub min_success_rate: Option<f64>,
}
