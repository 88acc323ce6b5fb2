//! The repository's scripts, as loads over HTTP.

mod long_document_qa;
mod multi_turn;
mod prefix_caching;
mod prioritization;
mod structured_output;

pub use long_document_qa::{
    LONG_DOCUMENT_QA_FLAGS, LongDocumentQaArgs, RepeatMode, long_document_qa,
    parse_long_document_qa,
};
pub use multi_turn::{
    CONVERT_SHAREGPT_FLAGS, ConversationSampling, ConvertShareGptArgs, MULTI_TURN_FLAGS,
    MultiTurnArgs, MultiTurnLoadArgs, MultiTurnReportArgs, MultiTurnTargetArgs, convert_sharegpt,
    multi_turn, parse_convert_sharegpt, parse_multi_turn,
};
pub use prefix_caching::{
    PREFIX_CACHING_FLAGS, PrefixCachingArgs, parse_prefix_caching, prefix_caching,
};
pub use prioritization::{
    PRIORITIZATION_FLAGS, PrioritizationArgs, parse_prioritization, prioritization,
};
pub use structured_output::{
    STRUCTURED_OUTPUT_FLAGS, StructuredOutputArgs, parse_structured_output, structured_output,
};
