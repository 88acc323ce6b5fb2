//! Local ports: how many there are towards one address, and how many a run takes.

use crate::{Io, Plan};
use servebench_http::BaseUrl;
use servebench_run::Job;
use std::collections::BTreeMap;

/// How long a port stays taken after its connection, on the side that closed first, in seconds (Linux).
const KEPT: f64 = 60.0;

/// What decides how many ports a run takes.
#[derive(Clone, Copy, Debug)]
struct Load {
    /// Requests in all, and at once.
    total: f64,
    in_flight: f64,
    /// Requests per second; infinite where nothing paces them.
    rate: f64,
    /// Each request has a connection of its own, whose port stays taken for a while.
    keeps_ports: bool,
    /// Many requests share a connection.
    shares: bool,
    /// The part of the requests that goes to the address with the most of them.
    share: f64,
}

impl Load {
    fn of(plan: &Plan, job: &Job) -> Self {
        let cold = plan.load.cold_connections;
        Self {
            total: job.total() as f64,
            in_flight: job.expected_in_flight().unwrap_or(0) as f64,
            rate: plan.load.request_rate.get(),
            keeps_ports: cold && !reuses_ports(plan),
            shares: plan.network.http2 && !cold,
            share: busiest(plan.base_url.iter().chain(&plan.further_base_urls)),
        }
    }

    /// Most ports taken at the same time towards one address.
    fn ports(self) -> u64 {
        let open = if self.shares { 1.0 } else { self.in_flight };
        // All of them, where nothing tells how long the run takes.
        let kept = if self.keeps_ports { self.rate * KEPT } else { 0.0 };
        ((open + kept).min(self.total) * self.share).ceil() as u64
    }
}

/// Says where the system has too few local ports for the connections to one server: each needs one of
/// its own, and without one a request fails.
pub(crate) fn check(plan: &Plan, job: &Job, io: &Io) {
    let range = std::fs::read("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let Some(range) = parse(&range) else { return };
    let load = Load::of(plan, job);
    if let Some(words) = too_few(load, range) {
        io.say(format_args!("warning: {words}"));
    }
}

fn too_few(load: Load, (first, last): (u16, u16)) -> Option<String> {
    let (needed, there) = (load.ports(), u64::from(last - first) + 1);
    let cold = if load.keeps_ports {
        " (with --cold-connections a port stays taken for a minute after its request)"
    } else {
        ""
    };
    (needed > there).then(|| {
        format!(
            "up to {needed} connections to one address need as many local ports{cold}, and there are \
             {there}: some requests may fail to connect; widen the range with `sysctl -w \
             net.ipv4.ip_local_port_range=\"1024 65535\"`, send less at once, or deal the requests to \
             several addresses with --base-urls"
        )
    })
}

/// Whether the kernel gives ports away again at once that connections have left behind: always, or on
/// the loopback device, where the built-in server is too.
fn reuses_ports(plan: &Plan) -> bool {
    let setting = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_tw_reuse").unwrap_or_default();
    let is_here = plan.base_url.as_ref().is_none_or(|base| {
        let ip = base.host().parse::<std::net::IpAddr>();
        base.host() == "localhost" || ip.is_ok_and(|ip| ip.is_loopback() || ip.is_unspecified())
    });
    match setting.trim() {
        "1" => true,
        "2" => is_here,
        _ => false,
    }
}

/// The part of the requests that goes to the address with the most of them; those through Unix sockets
/// take no ports.
fn busiest<'a>(bases: impl Iterator<Item = &'a BaseUrl>) -> f64 {
    let (mut counts, mut all) = (BTreeMap::<_, u32>::new(), 0);
    for base in bases {
        all += 1;
        if base.socket().is_none() {
            *counts.entry((base.host(), base.port())).or_default() += 1;
        }
    }
    // Without an address it is the built-in server's.
    if all == 0 { 1.0 } else { f64::from(counts.into_values().max().unwrap_or(0)) / f64::from(all) }
}

/// Reads the kernel's range of ports: two numbers.
pub(crate) fn parse(text: &[u8]) -> Option<(u16, u16)> {
    let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
    let (first, last) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    (first <= last && numbers.next().is_none()).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LOAD: Load = Load {
        total: 100_000.0,
        in_flight: 20_000.0,
        rate: f64::INFINITY,
        keeps_ports: false,
        shares: false,
        share: 1.0,
    };

    #[test]
    fn a_connection_takes_a_port_and_a_cold_one_keeps_it() {
        assert_eq!(LOAD.ports(), 20_000);
        assert_eq!(Load { share: 0.5, ..LOAD }.ports(), 10_000);
        assert_eq!(Load { shares: true, ..LOAD }.ports(), 1);
        let cold = Load { keeps_ports: true, ..LOAD };
        assert_eq!(cold.ports(), 100_000);
        assert_eq!(Load { rate: 100.0, ..cold }.ports(), 26_000);
    }

    #[test]
    fn too_few_ports_are_told_before_the_run_with_what_to_change() {
        assert_eq!(too_few(LOAD, (32_768, 60_999)), None);
        let cold = Load { keeps_ports: true, ..LOAD };
        let said = too_few(cold, (32_768, 60_999)).unwrap();
        for word in ["100000", "28232", "ip_local_port_range", "--cold-connections", "--base-urls"]
        {
            assert!(said.contains(word), "no {word} in {said}");
        }
        assert!(too_few(LOAD, (40_000, 40_009)).unwrap().contains("there are 10:"));
    }

    #[test]
    fn servers_share_the_ports_of_an_address_only() {
        let busiest = |bases: &[&str]| {
            let bases: Vec<BaseUrl> = bases.iter().map(|base| base.parse().unwrap()).collect();
            (busiest(bases.iter()) * 100.0).round() as i64
        };
        assert_eq!(busiest(&[]), 100);
        assert_eq!(busiest(&["h:1", "h:2"]), 50);
        assert_eq!(busiest(&["h:1/a", "h:1/b", "unix:/x", "i:1"]), 50);
        assert_eq!(busiest(&["unix:/x"]), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_machine_tells_its_range() {
        let range = std::fs::read("/proc/sys/net/ipv4/ip_local_port_range").unwrap();
        assert!(parse(&range).is_some(), "{range:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_range_or_none(first in any::<u16>(), last in any::<u16>(), text in "[0-9 \t\n-]*") {
            let range = (first <= last).then_some((first, last));
            prop_assert_eq!(parse(format!("{first}\t{last}\n").as_bytes()), range);
            parse(text.as_bytes());
        }
    }
}
