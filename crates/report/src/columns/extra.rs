//! The keys that a command adds: what only it knows.

use super::{Presence, Source, Table, Types, describe};

impl Table {
    fn extra(
        &mut self,
        key: &'static str,
        types: Types,
        unit: &'static str,
        doc: &'static str,
        presence: Presence,
    ) {
        self.add(key, describe(types, unit, doc, presence), Source::Extra);
    }
}

pub(super) fn add(t: &mut Table) {
    let every = Presence::Command;
    t.extra("model", &["string"], "", "Name or path of the model.", every);
    t.extra("served_model_name", &["string"], "", "Model name sent in requests.", every);
    t.extra(
        "num_prompts",
        &["integer"],
        "",
        "Requests there were to send; of conversations, how many. A file may hold fewer rows than were \
         asked for.",
        every,
    );
    t.extra("seed", &["integer"], "", "Seed of all draws.", every);
    t.extra(
        "cache_flushed",
        &["boolean"],
        "",
        "Whether the server's prefix cache was emptied before the measured requests.",
        every,
    );
    t.extra(
        "dns_ms",
        &["number"],
        "ms",
        "How long it took to find the server's address, once and before the run.",
        every,
    );
    t.extra(
        "unsent",
        &["integer"],
        "requests",
        "Requests of the plan that were never sent.",
        every,
    );
    t.extra(
        "ended_by",
        &["string", "null"],
        "",
        "What ended the run before everything was sent and answered: `duration_limit` (`--duration`), \
         `no_progress` (`--no-progress-timeout`) or `interrupt`; `null` if nothing did.",
        every,
    );
    t.extra("plan", &["object"], "", "The plan: what was asked for, with all defaults.", every);
    t.extra(
        "conversations",
        &["object"],
        "",
        "Of conversations, how many there were (`count`), how many had every turn succeed (`completed`), \
         how long those took from the first dispatch to the last token (`duration_ms`), and for each \
         place in a conversation (`turns`) requests, failures, prompt lengths, TTFT, E2E latency and \
         the wait for a slot (`queue_ms`).",
        Presence::Conversations,
    );
    t.extra(
        "conversation_indices",
        &["array"],
        "",
        "For each request, the place of its conversation in the plan, from 0.",
        Presence::ConversationDetails,
    );
    t.extra(
        "turn_numbers",
        &["array"],
        "",
        "For each request, its place in its conversation, from 1.",
        Presence::ConversationDetails,
    );
    t.extra(
        "targets",
        &["array"],
        "",
        "For each server its address (`base_url`), its requests, successes and failures, and its mean \
         TTFT and E2E latency in milliseconds.",
        Presence::SeveralServers,
    );
    t.extra(
        "profile_workers",
        &["array"],
        "",
        "For each worker that was to be profiled its `label` and `url`, and what kept its profiler from \
         starting (`error`, `null` if nothing did).",
        Presence::SplitProfile,
    );
}
