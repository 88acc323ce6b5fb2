//! What is aimed at, as data: each goal is judged within one comparison.

use super::figures::{Figure, Figures};
use crate::rig::OURS;

/// Something our own client shall reach in one scenario.
#[derive(Clone, Copy, Debug)]
pub(super) struct Goal {
    scenario: &'static str,
    figure: Figure,
    sense: Sense,
    limit: Limit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sense {
    AtLeast,
    AtMost,
}

#[derive(Clone, Copy, Debug)]
enum Limit {
    Fixed(f64),
    /// So many times what another client has.
    Times(f64, &'static str),
    /// So much more than what another client has.
    Above(f64, &'static str),
}

use Figure::{
    CpuPerToken, ExactItl, ExactTtft, FirstRequest, MeanTtftError, P99ItlRatio, P99TtftError,
    PeakMemory, TokensPerSecond,
};
use Limit::{Above, Fixed, Times};
use Sense::{AtLeast, AtMost};

const fn goal(scenario: &'static str, figure: Figure, sense: Sense, limit: Limit) -> Goal {
    Goal { scenario, figure, sense, limit }
}

const GOALS: &[Goal] = &[
    goal("m64", PeakMemory, AtMost, Fixed(40.0)),
    goal("m64", FirstRequest, AtMost, Fixed(0.05)),
    goal("z64", TokensPerSecond, AtLeast, Times(2.0, "vllm-rs")),
    goal("z64", TokensPerSecond, AtLeast, Times(0.8, "wrk")),
    goal("y64", CpuPerToken, AtMost, Times(0.8, "vllm-rs")),
    goal("t1000", CpuPerToken, AtMost, Times(1.0, "wrk")),
    goal("t1000", ExactTtft, AtLeast, Fixed(99.0)),
    goal("t1000", ExactItl, AtLeast, Fixed(99.0)),
    goal("t1000", MeanTtftError, AtMost, Times(0.5, "vllm-rs")),
    goal("t2000i20", MeanTtftError, AtMost, Times(0.5, "vllm-rs")),
    goal("p300", MeanTtftError, AtMost, Above(0.05, "ideal")),
    goal("p1000", CpuPerToken, AtMost, Fixed(7.5)),
    goal("p1000", ExactTtft, AtLeast, Fixed(99.0)),
    goal("p1000", ExactItl, AtLeast, Fixed(99.0)),
    goal("p1000", MeanTtftError, AtMost, Above(0.1, "ideal")),
    goal("p1000", P99TtftError, AtMost, Fixed(1.0)),
    goal("p1000", P99ItlRatio, AtMost, Fixed(1.03)),
];

/// What a comparison says about a goal: one sentence each.
pub(super) fn judge(scenario: &str, clients: &[(&str, Figures)]) -> Vec<String> {
    let of = |name: &str| clients.iter().find(|(client, _)| *client == name);
    let Some((_, own)) = of(OURS) else { return Vec::new() };
    let goals = GOALS.iter().filter(|goal| goal.scenario == scenario);
    goals.map(|goal| goal.judge(own, |name| of(name).map(|(_, figures)| figures))).collect()
}

impl Goal {
    fn judge<'a>(&self, own: &Figures, of: impl Fn(&str) -> Option<&'a Figures>) -> String {
        let figure = self.figure;
        let sign = if self.sense == AtLeast { '≥' } else { '≤' };
        let theirs = |name: &str| of(name)?.get(&figure).copied();
        let (limit, spelled) = match self.limit {
            Fixed(limit) => (Some(limit), figure.show(limit)),
            Times(factor, name) => {
                (theirs(name).map(|it| it * factor), format!("{factor} × {name}"))
            }
            Above(more, name) => (theirs(name).map(|it| it + more), format!("{name} + {more}")),
        };
        let goal = format!("{} {sign} {spelled}", figure.name());
        let (Some(own), Some(limit)) = (own.get(&figure), limit) else {
            return format!("{goal}: not judged, a number is missing");
        };
        let met = if self.sense == AtLeast { *own >= limit } else { *own <= limit };
        let limit_shown = match self.limit {
            Fixed(_) => String::new(),
            _ => format!(" = {}", figure.show(limit)),
        };
        let shown = figure.show(*own);
        if met {
            return format!("{goal}{limit_shown}: met, {shown}");
        }
        let away = figure.show((own - limit).abs());
        let share = (own / limit - 1.0) * 100.0;
        format!("{goal}{limit_shown}: MISSED by {away} ({share:+.0} %), {shown}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_met_or_missed_by_so_much() {
        let clients = [
            (OURS, Figures::from([(TokensPerSecond, 2100.0), (PeakMemory, 50.0)])),
            ("vllm-rs", Figures::from([(TokensPerSecond, 1000.0)])),
            ("wrk", Figures::from([(TokensPerSecond, 3000.0)])),
        ];
        let said = judge("z64", &clients);
        assert_eq!(said[0], "k tokens/s ≥ 2 × vllm-rs = 2000.0: met, 2100.0");
        assert_eq!(said[1], "k tokens/s ≥ 0.8 × wrk = 2400.0: MISSED by 300.0 (-12 %), 2100.0");
        let said = judge("m64", &clients);
        assert_eq!(said[0], "peak MB ≤ 40: MISSED by 10 (+25 %), 50");
        assert_eq!(said[1], "launch → request s ≤ 0.050: not judged, a number is missing");
        assert!(judge("z64", &clients[1..]).is_empty());
    }

    #[test]
    fn every_goal_is_about_a_scenario() {
        for goal in GOALS {
            assert!(
                crate::rig::SCENARIOS.iter().any(|scenario| scenario.name == goal.scenario),
                "{goal:?}"
            );
        }
    }
}
