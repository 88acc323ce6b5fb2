//! What the kernel counts of TCP.

use servebench_report::TcpCounts;
use std::collections::HashMap;

/// The counters since the start of the network namespace, for all its programs.
///
/// `None` where the system has no such files (it is not Linux) or they are not to be read.
pub(crate) fn read() -> Option<TcpCounts> {
    let snmp = std::fs::read("/proc/net/snmp").ok()?;
    let netstat = std::fs::read("/proc/net/netstat").unwrap_or_default();
    parse(&snmp, &netstat)
}

/// What happened between two readings. `None` when a counter went back: they are not of one
/// namespace, or not of one boot.
pub(crate) fn between(before: TcpCounts, after: TcpCounts) -> Option<TcpCounts> {
    let optional = |before: Option<u64>, after: Option<u64>| after?.checked_sub(before?);
    Some(TcpCounts {
        retransmits: after.retransmits.checked_sub(before.retransmits)?,
        timeouts: optional(before.timeouts, after.timeouts),
        out_of_order: optional(before.out_of_order, after.out_of_order),
    })
}

/// Reads the texts of `/proc/net/snmp` and `/proc/net/netstat`.
///
/// Both are pairs of lines with one prefix: names, then values. What is not understood is `None`.
pub(crate) fn parse(snmp: &[u8], netstat: &[u8]) -> Option<TcpCounts> {
    let (tcp, more) = (counters(snmp, "Tcp:"), counters(netstat, "TcpExt:"));
    Some(TcpCounts {
        retransmits: tcp.get("RetransSegs").copied()?,
        timeouts: more.get("TCPTimeouts").copied(),
        out_of_order: more.get("TCPOFOQueue").copied(),
    })
}

/// The counters of one pair of lines, by name. Values that are no counts are left out.
fn counters<'a>(text: &'a [u8], prefix: &str) -> HashMap<&'a str, u64> {
    let text = std::str::from_utf8(text).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(prefix));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let pairs = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
    pairs.filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SNMP: &str = "Ip: Forwarding DefaultTTL\nIp: 1 64\n\
        Tcp: RtoAlgorithm MaxConn RetransSegs InErrs\nTcp: 1 -1 23885 0\nUdp: InDatagrams\nUdp: 9\n";
    const NETSTAT: &str =
        "TcpExt: TCPTimeouts Other TCPOFOQueue\nTcpExt: 17 5 88\nIpExt: A\nIpExt: 1\n";

    #[test]
    fn counters_are_found_by_their_names() {
        let counts = TcpCounts { retransmits: 23_885, timeouts: Some(17), out_of_order: Some(88) };
        assert_eq!(parse(SNMP.as_bytes(), NETSTAT.as_bytes()), Some(counts));
        let alone = TcpCounts { timeouts: None, out_of_order: None, ..counts };
        assert_eq!(parse(SNMP.as_bytes(), b""), Some(alone));
        assert_eq!(parse(NETSTAT.as_bytes(), SNMP.as_bytes()), None);
    }

    #[test]
    fn differences_are_of_one_namespace() {
        let counts =
            |retransmits, timeouts| TcpCounts { retransmits, timeouts, out_of_order: None };
        let delta = between(counts(5, Some(3)), counts(9, Some(4)));
        assert_eq!(delta, Some(counts(4, Some(1))));
        assert_eq!(between(counts(5, Some(3)), counts(9, Some(2))), Some(counts(4, None)));
        assert_eq!(between(counts(5, None), counts(4, None)), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_tells_its_counters() {
        let (first, second) = (read(), read());
        let delta = first.zip(second).and_then(|(first, second)| between(first, second));
        assert!(delta.is_some(), "{first:?} {second:?}");
    }

    proptest! {
        #[test]
        fn whatever_the_files_hold_is_read_or_left(bytes in any::<Vec<u8>>(), text in "[A-Za-z: 0-9\n]*") {
            crate::fuzzing::network_counters(&bytes);
            crate::fuzzing::network_counters(text.as_bytes());
        }

        #[test]
        fn counters_are_read_whatever_stands_between_them(
            before in "[A-Z][a-z]{1,8}", values in proptest::array::uniform3(any::<u64>()),
        ) {
            let [retransmits, timeouts, out_of_order] = values;
            let snmp = format!("Tcp: {before} RetransSegs\nTcp: 3 {retransmits}\n");
            let netstat = format!(
                "TcpExt: TCPOFOQueue {before} TCPTimeouts\nTcpExt: {out_of_order} -1 {timeouts}\n"
            );
            let counts = TcpCounts {
                retransmits, timeouts: Some(timeouts), out_of_order: Some(out_of_order),
            };
            prop_assert_eq!(parse(snmp.as_bytes(), netstat.as_bytes()), Some(counts));
        }
    }
}
