//! The repository's scripts that feed an engine in Python, as loads over HTTP.

mod long_document_qa;

pub use long_document_qa::{
    LONG_DOCUMENT_QA_FLAGS, LongDocumentQaArgs, RepeatMode, long_document_qa,
    parse_long_document_qa,
};
