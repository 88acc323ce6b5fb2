//! What the flags of `multi-turn` come to.

use super::args::{ConversationSampling, MultiTurnArgs};
use super::talks::Talk;
use crate::{Environment, Failure};
use serde::Serialize;
use servebench_run::Clients;

/// A fifth of a second for each token of a reply.
const SECONDS_PER_TOKEN: f64 = 0.2;
/// Seconds that a request may take.
const TIMEOUT: f64 = 120.0;

/// What is asked for, checked as far as that can be done without the conversations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct MultiTurnPlan {
    pub(super) num_clients: usize,
    pub(super) max_active_conversations: usize,
    pub(super) max_num_requests: Option<usize>,
    pub(super) max_turns: Option<usize>,
    pub(super) limit_min_tokens: i64,
    pub(super) limit_max_tokens: i64,
    pub(super) request_rate: f64,
    pub(super) max_retries: u32,
    pub(super) conversation_sampling: ConversationSampling,
    pub(super) request_timeout_s: f64,
    pub(super) early_stop: bool,
    pub(super) warmup_step: bool,
    /// Parts of the requests, ascending.
    pub(super) warmups: Vec<f64>,
    pub(super) stream: bool,
    pub(super) send_conversation_id: bool,
    pub(super) seed: u32,
}

impl MultiTurnPlan {
    pub(super) fn new(args: &MultiTurnArgs, environment: &Environment) -> Result<Self, Failure> {
        let (target, load) = (&args.target, &args.clients);
        let num_clients = positive("--num-clients", load.num_clients)?.unwrap_or(1);
        let active = positive("--max-active-conversations", load.max_active_conversations)?;
        let max_active_conversations = active.unwrap_or(num_clients);
        if max_active_conversations < num_clients {
            let text = format!(
                "--max-active-conversations {max_active_conversations} is less than one for each of \
                 --num-clients {num_clients}"
            );
            return Err(Failure::usage(text));
        }
        let max_num_requests = positive("--max-num-requests", load.max_num_requests)?;
        if let Some(requests) = max_num_requests.filter(|requests| *requests < num_clients) {
            let text = format!(
                "--max-num-requests {requests} is less than one for each of --num-clients {num_clients}"
            );
            return Err(Failure::usage(text));
        }
        let least = target.limit_min_tokens.unwrap_or(0);
        let most = target.limit_max_tokens.unwrap_or(0);
        check_limits(least, most)?;
        let request_timeout_s = match load.request_timeout_sec {
            None => args.transport.limits.request_timeout.unwrap_or(TIMEOUT),
            Some(seconds) if seconds > 0 => seconds as f64,
            Some(seconds) => {
                let text = format!("--request-timeout-sec {seconds} is not above 0");
                return Err(Failure::usage(text));
            }
        };
        let request_rate = load.request_rate.unwrap_or(0.0);
        if !(request_rate.is_finite() && request_rate >= 0.0) {
            return Err(Failure::usage(format!("--request-rate {request_rate} is not 0 or more")));
        }
        Ok(Self {
            num_clients,
            max_active_conversations,
            max_num_requests,
            max_turns: positive("--max-turns", target.max_turns)?,
            limit_min_tokens: least,
            limit_max_tokens: most,
            request_rate,
            max_retries: retries(load.max_retries, environment)?,
            conversation_sampling: load.conversation_sampling.unwrap_or_default(),
            request_timeout_s,
            early_stop: load.early_stop,
            warmup_step: load.warmup_step,
            warmups: warmups(args.report.warmup_percentages.as_deref().unwrap_or("0%"))?,
            stream: !target.no_stream,
            send_conversation_id: target.send_conversation_id,
            seed: args.around.seed.unwrap_or(0),
        })
    }

    /// Makes sure that there are enough conversations.
    pub(super) fn fit(&self, conversations: usize) -> Result<(), Failure> {
        let wrong = |flag: &str, count: usize| {
            let text =
                format!("{flag} {count} is more than the {conversations} conversations there are");
            Err(Failure::usage(text))
        };
        if self.num_clients > conversations {
            return wrong("--num-clients", self.num_clients);
        }
        if self.max_active_conversations > conversations {
            return wrong("--max-active-conversations", self.max_active_conversations);
        }
        Ok(())
    }

    /// What the clients do in the measured run.
    pub(super) fn clients(&self) -> Clients {
        Clients {
            held: self.max_active_conversations / self.num_clients,
            choice: self.conversation_sampling.into(),
            rate: self.request_rate,
            retries: self.max_retries,
            max_requests: self.max_num_requests,
            early_stop: self.early_stop,
            seed: self.seed,
        }
    }

    /// What they do before it.
    pub(super) fn warm_clients(&self) -> Clients {
        Clients { held: 1, rate: 0.0, max_requests: None, early_stop: false, ..self.clients() }
    }

    /// How many seconds a request may take: more where a reply may be long.
    pub(super) fn timeout(&self, talks: &[Talk]) -> f64 {
        let longest = talks.iter().map(|talk| talk.longest_reply(self)).max().unwrap_or(0);
        (f64::from(longest) * SECONDS_PER_TOKEN).floor().max(self.request_timeout_s)
    }
}

fn positive(flag: &str, value: Option<i64>) -> Result<Option<usize>, Failure> {
    let Some(value) = value else { return Ok(None) };
    match usize::try_from(value) {
        Ok(count) if count > 0 => Ok(Some(count)),
        _ => Err(Failure::usage(format!("{flag} {value} is not above 0"))),
    }
}

fn check_limits(least: i64, most: i64) -> Result<(), Failure> {
    let pair = format!("--limit-min-tokens {least}, --limit-max-tokens {most}");
    if most > i64::from(u32::MAX) {
        return Err(Failure::usage(format!("{pair}: that long is no reply")));
    }
    if (least > 0) != (most > 0) {
        return Err(Failure::usage(format!("{pair}: of the two limits, both are needed or none")));
    }
    if least > most && most > 0 {
        return Err(Failure::usage(format!("{pair}: the fewest are more than the most")));
    }
    Ok(())
}

fn retries(given: Option<u32>, environment: &Environment) -> Result<u32, Failure> {
    const NAME: &str = "MULTITURN_BENCH_MAX_RETRIES";
    match (given, environment.get(NAME)) {
        (Some(retries), _) => Ok(retries),
        (None, None) => Ok(0),
        (None, Some(text)) => text
            .trim()
            .parse()
            .map_err(|_| Failure::usage(format!("{NAME}: `{text}` is no number of retries"))),
    }
}

fn warmups(text: &str) -> Result<Vec<f64>, Failure> {
    let part = |word: &str| {
        let percent: Option<f64> = word.trim().trim_end_matches('%').parse().ok();
        percent.map(|percent| percent / 100.0).filter(|part| (0.0..1.0).contains(part))
    };
    let parts: Option<Vec<f64>> = text.split(',').map(part).collect();
    let Some(mut parts) = parts else {
        let text = format!("--warmup-percentages {text}: expected percentages from 0 to below 100");
        return Err(Failure::usage(text));
    };
    parts.sort_unstable_by(f64::total_cmp);
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(set: impl FnOnce(&mut MultiTurnArgs)) -> Result<MultiTurnPlan, String> {
        let mut args = MultiTurnArgs::default();
        set(&mut args);
        MultiTurnPlan::new(&args, &Environment::default()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn what_makes_no_sense_is_named() {
        let said = |set: fn(&mut MultiTurnArgs)| plan(set).unwrap_err();
        assert!(said(|args| args.clients.num_clients = Some(0)).contains("--num-clients 0"));
        let few = said(|args| {
            args.clients.num_clients = Some(4);
            args.clients.max_active_conversations = Some(3);
        });
        assert!(few.contains("--max-active-conversations 3 is less than one for each"), "{few}");
        let few = said(|args| {
            args.clients.num_clients = Some(4);
            args.clients.max_num_requests = Some(3);
        });
        assert!(few.contains("--max-num-requests 3"), "{few}");
        assert!(said(|args| args.target.limit_max_tokens = Some(5)).contains("both are needed"));
        let crossed = said(|args| {
            args.target.limit_max_tokens = Some(5);
            args.target.limit_min_tokens = Some(6);
        });
        assert!(crossed.contains("the fewest are more"), "{crossed}");
        assert!(said(|args| args.clients.request_timeout_sec = Some(0)).contains("not above 0"));
        assert!(said(|args| args.target.max_turns = Some(0)).contains("--max-turns 0"));
        for text in ["x", "-1%", "100%", "5,,6"] {
            assert!(warmups(text).is_err(), "{text}");
        }
        assert!(plan(|_| {}).unwrap().fit(0).is_err());
    }

    #[test]
    fn what_is_left_out_is_as_in_the_python_script() {
        let plan = plan(|args| args.clients.num_clients = Some(3)).unwrap();
        assert_eq!((plan.max_active_conversations, plan.clients().held), (3, 1));
        assert_eq!(warmups("50%,0%").unwrap(), [0.0, 0.5]);
        let environment = Environment::from_pairs([("MULTITURN_BENCH_MAX_RETRIES", "2")]);
        assert_eq!(retries(None, &environment).unwrap(), 2);
        assert_eq!(retries(Some(0), &environment).unwrap(), 0);
    }
}
