//! The way to a server.

use clap::Args;
use std::path::PathBuf;

/// The way to a server.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Network")]
pub struct NetworkArgs {
    /// Go straight to the server, whatever HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY say
    ///
    /// Without this they hold for every call to the server, the measured ones too; a server on this machine
    /// is reached straight in any case. The hub is reached as they say.
    #[arg(long)]
    pub no_proxy: bool,

    /// Certificate authorities to trust for https, besides the usual ones (PEM)
    #[arg(long, value_name = "FILE")]
    pub ca_file: Option<PathBuf>,

    /// The client's certificate, for an https server that asks for one (PEM)
    #[arg(long, value_name = "FILE")]
    pub client_cert: Option<PathBuf>,

    /// The private key of --client-cert (PEM) [default: in the same file]
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub client_key: Option<PathBuf>,

    /// Speak HTTP/2: as agreed on under https, taken for granted over http
    ///
    /// Many requests then share a connection, and more are opened only where the server allows no more on
    /// one. A receive time is that of the read that completed the frame.
    #[arg(long)]
    pub http2: bool,
}
