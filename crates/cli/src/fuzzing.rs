//! Fuzz bodies, shared by the fuzz targets and the property tests. Each panics where a law breaks.

use crate::network;
pub use crate::vllm::read_foreign_bytes as vllm_config_and_counters;
pub use crate::vllm::sweep::read_foreign_bytes as sweep_parameters;

/// Whatever two files of the kernel hold, their counters are read or left out. A zero byte parts the
/// first from the second.
pub fn network_counters(data: &[u8]) {
    let cut = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (snmp, netstat) = data.split_at(cut);
    let netstat = netstat.get(1..).unwrap_or_default();
    if let Some(counts) = network::parse(snmp, netstat) {
        let nothing = network::between(counts, counts).expect("no counter went back");
        assert_eq!(nothing.retransmits, 0);
    }
}
