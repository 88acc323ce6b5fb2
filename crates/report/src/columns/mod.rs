//! The keys of the result line: one table that drives writing, schema and documentation.

mod details;
mod extra;
mod health;
mod own;
mod reception;
mod statistics;
mod upstream;

pub(crate) use details::Row;
pub use own::SCHEMA_VERSION;

use crate::Report;
use serde_json::Value;
use servebench_metrics::Distribution;
use std::borrow::Cow;
use std::sync::LazyLock;

/// All keys in the order in which they are written.
pub(crate) static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let mut table = Table { columns: Vec::new(), upstream: true };
    upstream::add(&mut table);
    table.upstream = false;
    own::add(&mut table);
    extra::add(&mut table);
    table.upstream = true;
    details::add_upstream(&mut table);
    table.upstream = false;
    details::add_own(&mut table);
    table.columns
});

/// When a key is in the result line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Presence {
    /// Always.
    Always,
    /// When objectives were given.
    Goodput,
    /// When cached tokens are reported.
    CacheReport,
    /// When details were asked for.
    Details,
    /// When details were asked for and cached tokens are reported.
    CacheDetails,
    /// When details and the experts that tokens were routed to were asked for.
    ExpertDetails,
    /// When a steady state was asked for.
    SteadyState,
    /// In every line that a command writes.
    Command,
    /// In the line of conversations.
    Conversations,
    /// In the line of conversations, when details were asked for.
    ConversationDetails,
    /// When requests were dealt to several servers.
    SeveralServers,
    /// When the workers of a split server were profiled.
    SplitProfile,
}

impl Presence {
    /// Whether a key of this presence is in the line of `report`, by what the report says of itself. Of
    /// what a command adds to it the line has what there is.
    pub(crate) fn applies(self, report: &Report<'_>) -> bool {
        let details = report.details.is_some();
        match self {
            Self::Always => true,
            Self::Goodput => report.aggregates.own.goodput.is_some(),
            Self::CacheReport => report.info.cache_report,
            Self::Details => details,
            Self::CacheDetails => details && report.info.cache_report,
            Self::ExpertDetails => details && report.info.routed_experts,
            Self::SteadyState => report.info.wants_steady_state,
            Self::Command
            | Self::Conversations
            | Self::ConversationDetails
            | Self::SeveralServers
            | Self::SplitProfile => false,
        }
    }
}

/// Documentation of one key of the result line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyDoc {
    /// The key.
    pub key: Cow<'static, str>,
    /// JSON types its value may have, in the names of JSON Schema. For a key of the details these
    /// are the types of one request's entry; the value is an array of them.
    pub types: &'static [&'static str],
    /// Unit of a number; empty where there is none.
    pub unit: &'static str,
    /// What it means.
    pub doc: Cow<'static, str>,
    /// When it is there.
    pub presence: Presence,
    /// Whether the Python tool writes this key too.
    pub upstream: bool,
}

impl KeyDoc {
    /// Whether the value is an array with one entry per request.
    pub fn is_per_request(&self) -> bool {
        use Presence::{CacheDetails, Details, ExpertDetails};
        matches!(self.presence, Details | CacheDetails | ExpertDetails)
    }
}

/// Where a key's value comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Count(fn(&Report<'_>) -> u64),
    OptionalCount(fn(&Report<'_>) -> Option<u64>),
    Number(fn(&Report<'_>) -> Option<f64>),
    Text(for<'a> fn(&'a Report<'_>) -> Option<&'a str>),
    Flag(fn(&Report<'_>) -> bool),
    /// Anything else.
    Value(fn(&Report<'_>) -> Value),
    /// One statistic of one family, in seconds; written in milliseconds.
    Statistic(fn(&Report<'_>) -> Option<Distribution>, fn(&Distribution) -> f64),
    /// What a command adds to the report.
    Extra,
    /// Each request in turn.
    PerRequest(fn(Row<'_>, &mut Vec<u8>)),
}

impl Source {
    /// Whether a command adds the value.
    pub(crate) const fn is_extra(self) -> bool {
        matches!(self, Self::Extra)
    }

    /// The types of its values; those of the last ones are for the table to say.
    const fn types(self) -> &'static [&'static str] {
        match self {
            Self::Count(_) => &["integer"],
            Self::OptionalCount(_) => &["integer", "null"],
            Self::Number(_) | Self::Statistic(..) => &["number", "null"],
            Self::Text(_) => &["string", "null"],
            Self::Flag(_) => &["boolean"],
            Self::Value(_) | Self::Extra | Self::PerRequest(_) => &[],
        }
    }
}

/// One key with its source.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) doc: KeyDoc,
    pub(crate) source: Source,
}

/// The table while it is put together. Each method adds one key.
struct Table {
    columns: Vec<Column>,
    upstream: bool,
}

type Key = &'static str;
type Unit = &'static str;
type Doc = &'static str;
type Types = &'static [&'static str];

impl Table {
    fn add(&mut self, key: impl Into<Cow<'static, str>>, doc: KeyDoc, source: Source) {
        let doc = KeyDoc { key: key.into(), upstream: self.upstream, ..doc };
        self.columns.push(Column { doc, source });
    }

    fn plain(&mut self, key: Key, unit: Unit, doc: Doc, source: Source) {
        self.add(key, describe(source.types(), unit, doc, Presence::Always), source);
    }

    fn count(&mut self, key: Key, unit: Unit, doc: Doc, of: fn(&Report<'_>) -> u64) {
        self.plain(key, unit, doc, Source::Count(of));
    }

    fn optional(&mut self, key: Key, unit: Unit, doc: Doc, of: fn(&Report<'_>) -> Option<u64>) {
        self.plain(key, unit, doc, Source::OptionalCount(of));
    }

    fn number(&mut self, key: Key, unit: Unit, doc: Doc, of: fn(&Report<'_>) -> Option<f64>) {
        self.plain(key, unit, doc, Source::Number(of));
    }

    fn text(&mut self, key: Key, doc: Doc, of: for<'a> fn(&'a Report<'_>) -> Option<&'a str>) {
        self.plain(key, "", doc, Source::Text(of));
    }

    fn flag(&mut self, key: Key, doc: Doc, of: fn(&Report<'_>) -> bool) {
        self.plain(key, "", doc, Source::Flag(of));
    }

    fn value(&mut self, key: Key, types: Types, doc: Doc, of: fn(&Report<'_>) -> Value) {
        self.add(key, describe(types, "", doc, Presence::Always), Source::Value(of));
    }

    /// Makes the key added last depend on what was asked for.
    fn only(&mut self, presence: Presence) {
        if let Some(column) = self.columns.last_mut() {
            column.doc.presence = presence;
        }
    }
}

fn describe(
    types: Types,
    unit: Unit,
    doc: impl Into<Cow<'static, str>>,
    presence: Presence,
) -> KeyDoc {
    KeyDoc { key: Cow::Borrowed(""), types, unit, doc: doc.into(), presence, upstream: false }
}
