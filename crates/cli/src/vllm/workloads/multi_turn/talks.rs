//! Conversations as they are sent, and what was said in them.

use super::options::MultiTurnPlan;
use crate::prepare::{PlanHash, Prepared};
use bytes::Bytes;
use serde_json::{Value, json};
use servebench_core::{Conversation, Protocol, Record, Request, Session, Stamp, TurnEnd};
use servebench_datasets::vllm::MultiTurnConversation;
use servebench_run::{Clients, Job};
use servebench_tokens::{Tokenizer, TokensError};
use std::sync::Arc;

/// Header of a conversation's id.
const SESSION: &str = "X-Session-ID";

/// A conversation: what the file says, and what the server has said in place of its answers.
#[derive(Clone, Debug)]
pub(super) struct Talk {
    pub(super) id: String,
    /// The user's messages at even places, the answers at odd ones.
    pub(super) messages: Vec<String>,
    /// Tokens of the file's answers, by the turn that they answer.
    answer_tokens: Vec<u32>,
    /// The file's answers.
    pub(super) expected: Vec<String>,
    /// Turns that were sent before the measured run.
    pub(super) skipped: usize,
    /// Whether all its turns have their answers.
    pub(super) finished: bool,
}

impl Talk {
    /// The conversations, cut to the most messages that they may have.
    pub(super) fn all(
        conversations: Vec<MultiTurnConversation>,
        plan: &MultiTurnPlan,
        tokenizer: &Tokenizer,
    ) -> Result<Vec<Self>, TokensError> {
        let mut talks = Vec::with_capacity(conversations.len());
        for MultiTurnConversation { id, mut messages } in conversations {
            // Of an odd number the last one is the user's, who is answered too.
            messages.truncate(plan.max_turns.unwrap_or(usize::MAX).saturating_add(1) / 2 * 2);
            let expected: Vec<String> = messages.iter().skip(1).step_by(2).cloned().collect();
            let answer_tokens = tokenizer.count_batch(&expected, false)?;
            talks.push(Self { id, messages, answer_tokens, expected, skipped: 0, finished: false });
        }
        Ok(talks)
    }

    /// Its turns, those before the run included.
    pub(super) fn turns(&self) -> usize {
        self.messages.len().div_ceil(2)
    }

    /// The longest reply that it asks for, if there is a limit.
    pub(super) fn longest_reply(&self, plan: &MultiTurnPlan) -> u32 {
        let replies = (0..self.turns()).filter_map(|turn| self.limit(turn, plan.limit_max_tokens));
        replies.max().unwrap_or(0)
    }

    /// What a limit on replies comes to in one turn.
    fn limit(&self, turn: usize, limit: i64) -> Option<u32> {
        match u32::try_from(limit) {
            Err(_) => None,
            // A message without an answer in the file has no length to go by.
            Ok(0) => self.answer_tokens.get(turn).map(|tokens| (*tokens).max(1)),
            Ok(limit) => Some(limit),
        }
    }

    /// Puts an answer of the server in its place.
    pub(super) fn answer(&mut self, turn: usize, text: &str) {
        let place = 2 * turn + 1;
        if place < self.messages.len() {
            text.clone_into(&mut self.messages[place]);
        } else {
            self.messages.push(text.to_owned());
        }
    }

    /// Whether an answer is not the file's.
    pub(super) fn differs(&self, turn: usize) -> bool {
        let expected = self.expected.get(turn);
        expected.is_some_and(|expected| self.messages.get(2 * turn + 1) != Some(expected))
    }
}

/// Whose message is at a place of a conversation.
pub(super) fn role(place: usize) -> &'static str {
    if place.is_multiple_of(2) { "user" } else { "assistant" }
}

/// Where the requests of conversations come from.
pub(super) struct Maker<'a> {
    pub(super) plan: &'a MultiTurnPlan,
    pub(super) protocol: &'a Arc<dyn Protocol>,
    pub(super) model: &'a str,
}

impl Maker<'_> {
    /// The first turn of each conversation.
    pub(super) fn warm_up(&self, talks: &[Talk]) -> Prepared {
        let first = |talk: &Talk| self.request(talk, 0..1);
        self.prepared(talks.iter().map(first).collect(), self.plan.warm_clients())
    }

    /// All turns that were not sent yet.
    pub(super) fn measured(&self, talks: &[Talk]) -> Prepared {
        let all = |talk: &Talk| self.request(talk, talk.skipped..talk.turns());
        self.prepared(talks.iter().map(all).collect(), self.plan.clients())
    }

    fn prepared(&self, mut requests: Vec<Request>, clients: Clients) -> Prepared {
        let mut hash = PlanHash::new(self.protocol.path());
        let mut id = 0;
        for request in &mut requests {
            request.id = id;
            id += request.turns() as u64;
            hash.add(request, Stamp(0));
        }
        let job = Job {
            max_concurrency: Some(self.plan.num_clients),
            clients: Some(clients),
            // Times depend on how many tokens the first piece has.
            keep_pieces: true,
            ..Job::burst(requests)
        };
        Prepared {
            job,
            warmup: Job::burst(Vec::new()),
            warmup_prompts: if self.plan.warmup_step { "first_turns" } else { "none" },
            protocol: Arc::clone(self.protocol),
            samples: Arc::new([]),
            sha256: hash.finish(),
        }
    }

    fn request(&self, talk: &Talk, turns: std::ops::Range<usize>) -> Request {
        let message = |place: usize| {
            json!({"role": role(place), "content": talk.messages[place]}).to_string()
        };
        let first = turns.start;
        let said = |turn: usize| {
            // What was said before the run goes with the first turn.
            let from = if turn == first { 0 } else { 2 * turn };
            Bytes::from((from..=2 * turn).map(message).collect::<Vec<_>>().join(","))
        };
        let conversation = Arc::new(Conversation {
            head: format!(r#"{{"model":{},"messages":["#, Value::from(self.model)).into(),
            turns: turns.clone().map(said).collect(),
            tail: Bytes::new(),
            ends: turns.map(|turn| self.end(talk, turn)).collect(),
        });
        let (session, body) = Session::start(&conversation);
        let headers = self.plan.send_conversation_id.then(|| (SESSION.to_owned(), talk.id.clone()));
        Request {
            body,
            headers: headers.into_iter().collect(),
            output_len: session.output_len().unwrap_or(0),
            conversation: Some(conversation),
            ..Request::default()
        }
    }

    /// What follows the messages in the body of a turn.
    fn end(&self, talk: &Talk, turn: usize) -> TurnEnd {
        let plan = self.plan;
        let most = talk.limit(turn, plan.limit_max_tokens);
        let mut tail = "]".to_owned();
        let mut field = |name: &str, value: Value| {
            tail.extend([",\"", name, "\":", &value.to_string()]);
        };
        if plan.send_conversation_id {
            field("conversation_id", talk.id.as_str().into());
        }
        if plan.stream {
            field("stream", true.into());
            field("stream_options", json!({"include_usage": true}));
        }
        if let Some(most) = most {
            field("max_tokens", most.into());
        }
        if let Some(least) = talk.limit(turn, plan.limit_min_tokens) {
            field("min_tokens", least.into());
        }
        field("temperature", 0.0.into());
        field("seed", plan.seed.into());
        tail.push('}');
        TurnEnd { tail: tail.into(), output_len: most.unwrap_or(0) }
    }
}

/// A turn that was sent: whose it was, and what came of it.
#[derive(Clone, Copy)]
pub(super) struct Sent<'a> {
    /// Place of the conversation.
    pub(super) talk: usize,
    /// The turn, from 0, those before the run included.
    pub(super) turn: usize,
    pub(super) record: &'a Record,
}

/// The turns that were sent, conversation by conversation.
pub(super) fn sent<'a>(talks: &[Talk], job: &Job, records: &'a [Record]) -> Vec<Sent<'a>> {
    let mut sent = Vec::with_capacity(records.len());
    let mut talk = 0;
    for record in records {
        while job.requests.get(talk + 1).is_some_and(|next| next.id <= record.id) {
            talk += 1;
        }
        let Some(request) = job.requests.get(talk) else { break };
        let turn = talks[talk].skipped + (record.id - request.id) as usize;
        sent.push(Sent { talk, turn, record });
    }
    sent
}

#[cfg(test)]
mod tests {
    use super::super::args::MultiTurnArgs;
    use super::*;
    use crate::Environment;
    use servebench_backends::vllm::{VllmBackend, VllmOptions};

    fn plan(set: impl FnOnce(&mut MultiTurnArgs)) -> MultiTurnPlan {
        let mut args = MultiTurnArgs::default();
        set(&mut args);
        MultiTurnPlan::new(&args, &Environment::default()).unwrap()
    }

    fn talks(plan: &MultiTurnPlan) -> Vec<Talk> {
        let messages = ["Hi", "Hello", "And?", "So"].map(str::to_owned).to_vec();
        let conversation = MultiTurnConversation { id: "c\"1".into(), messages };
        Talk::all(vec![conversation], plan, &Tokenizer::byte_level()).unwrap()
    }

    fn bodies(plan: &MultiTurnPlan, talks: &[Talk]) -> Vec<Value> {
        let backend: VllmBackend = "openai-chat".parse().unwrap();
        let protocol = backend.protocol(backend.info().endpoint, VllmOptions::default());
        let maker = Maker { plan, protocol: &protocol, model: "m" };
        let job = maker.measured(talks).job;
        let conversation = job.requests[0].conversation.clone().unwrap();
        let (mut session, mut body) = Session::start(&conversation);
        let mut bodies = Vec::new();
        loop {
            bodies.push(serde_json::from_slice(&body).unwrap());
            let Some(next) = session.next("A") else { return bodies };
            body = next;
        }
    }

    #[test]
    fn each_turn_asks_for_as_many_tokens_as_its_answer_has() {
        let plan = plan(|args| args.around.seed = Some(7));
        let user = |text: &str| json!({"role": "user", "content": text});
        let body = |messages: Value, tokens: u32| {
            json!({"model": "m", "messages": messages, "stream": true,
                "stream_options": {"include_usage": true}, "max_tokens": tokens,
                "min_tokens": tokens, "temperature": 0.0, "seed": 7})
        };
        let second = json!([user("Hi"), {"role": "assistant", "content": "A"}, user("And?")]);
        let want = [body(json!([user("Hi")]), 5), body(second, 2)];
        assert_eq!(bodies(&plan, &talks(&plan)), want);
    }

    #[test]
    fn what_was_said_before_the_run_goes_with_the_first_turn() {
        let plan = plan(|args| {
            args.target.no_stream = true;
            args.target.send_conversation_id = true;
            args.target.limit_min_tokens = Some(-1);
        });
        let mut talks = talks(&plan);
        talks[0].answer(0, "Warm");
        talks[0].skipped = 1;
        let found = bodies(&plan, &talks);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["messages"][1]["content"], "Warm");
        assert_eq!(found[0]["conversation_id"], "c\"1");
        assert_eq!((found[0].get("stream"), found[0].get("min_tokens")), (None, None));
        assert!(talks[0].differs(0), "the file says Hello");
    }

    #[test]
    fn long_replies_have_more_time() {
        let plan = plan(|_| {});
        let mut talks = talks(&plan);
        assert!((plan.timeout(&talks) - 120.0).abs() < 1e-9);
        talks[0].answer_tokens[1] = 1001;
        assert!((plan.timeout(&talks) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn a_cut_conversation_ends_with_an_answer() {
        for (most, turns) in [(1, 1), (2, 1), (3, 2), (9, 2)] {
            let plan = plan(|args| args.target.max_turns = Some(most));
            assert_eq!(talks(&plan)[0].turns(), turns, "{most} messages");
        }
    }
}
