//! The frames of `/v1/completions` and `/v1/chat/completions`.

use crate::cached::CachedParts;
use crate::json::field::{Count, Filled, Finish, List, Number, Present, Text, record};

record! {
    /// One chunk of a stream, or a whole reply.
    Frame<'a> {
        "choices" => choices: List<Choice<'a>>,
        "usage" => usage: Usage,
        "sglext" => extension: Extension<'a>,
        "error" => error: Present,
    }
}

record! {
    /// What one chunk brings for one choice.
    Choice<'a> {
        "index" => index: Count,
        "text" => text: Text<'a>,
        "delta" => delta: Message<'a>,
        "message" => message: Message<'a>,
        "finish_reason" => finish: Finish<'a>,
        "meta_info" => meta: Speculation,
    }
}

record! {
    /// A piece of a chat message, or a whole one.
    Message<'a> {
        "content" => content: Text<'a>,
        "reasoning_content" => reasoning_content: Text<'a>,
        "reasoning" => reasoning: Text<'a>,
        "refusal" => refusal: Filled,
        "tool_calls" => tool_calls: List<ToolCall>,
        "function_call" => function_call: Function,
    }
}

record! {
    /// A piece of a tool call.
    ToolCall {
        "function" => function: Function,
    }
}

record! {
    /// A function to call, or a piece of one.
    Function {
        "name" => name: Filled,
        "arguments" => arguments: Filled,
    }
}

record! {
    /// The server's counts.
    Usage {
        "prompt_tokens" => prompt: Count,
        "completion_tokens" => completion: Count,
        "prompt_tokens_details" => details: PromptDetails,
    }
}

record! {
    /// Where the prompt's tokens came from.
    PromptDetails {
        "cached_tokens" => cached: Count,
    }
}

record! {
    /// SGLang's extension of a frame.
    Extension<'a> {
        "cached_tokens_details" => cached: CachedParts<'a>,
    }
}

record! {
    /// Speculative decoding, as a whole reply of SGLang tells it.
    Speculation {
        "spec_accept_length" => accept_length: Number,
    }
}

impl Message<'_> {
    /// The reasoning text. Servers in transition send both names with the same text: the standard
    /// one counts.
    pub(crate) fn thinking(&self) -> &str {
        if self.reasoning_content.is_empty() {
            &self.reasoning.0
        } else {
            &self.reasoning_content.0
        }
    }

    /// True when there is no output of any kind.
    pub(crate) fn is_empty(&self) -> bool {
        self.content.is_empty() && self.thinking().is_empty() && !self.has_other_output()
    }

    /// True when there is output that is not text of the reply: a tool call or a refusal.
    pub(crate) fn has_other_output(&self) -> bool {
        self.refusal.0
            || self.function_call.is_filled()
            || self.tool_calls.iter().any(|call| call.function.is_filled())
    }
}

impl Extension<'_> {
    /// True when it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.cached.is_empty()
    }
}

impl Function {
    fn is_filled(&self) -> bool {
        self.name.0 || self.arguments.0
    }
}
