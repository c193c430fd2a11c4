//! Parses a model's reply strictly: the input of its single tool call.

use aws_sdk_bedrockruntime::operation::converse::ConverseOutput;
use aws_sdk_bedrockruntime::types::{ContentBlock, StopReason, ToolUseBlock};
use aws_smithy_types::Document;

use super::FallbackError;
use super::prompt::TOOL;
use interpreter::{Filter, Operator};

/// Returns the filters of a model's reply.
pub(super) fn filters(output: &ConverseOutput) -> Result<Vec<Filter>, FallbackError> {
    // A truncated reply has another stop reason, and its list can be incomplete.
    if *output.stop_reason() != StopReason::ToolUse {
        return Err(FallbackError::NoCall);
    }
    let call = only_call(output).ok_or(FallbackError::NoCall)?;
    let filters = call.input().as_object().and_then(|input| input.get("filters")?.as_array());
    filters.ok_or(FallbackError::Malformed)?.iter().map(filter).collect()
}

fn only_call(output: &ConverseOutput) -> Option<&ToolUseBlock> {
    let message = output.output()?.as_message().ok()?;
    let mut calls = message.content().iter().filter_map(call);
    calls.next().filter(|_| calls.next().is_none())
}

fn call(block: &ContentBlock) -> Option<&ToolUseBlock> {
    block.as_tool_use().ok().filter(|call| call.name() == TOOL)
}

fn filter(document: &Document) -> Result<Filter, FallbackError> {
    let field = |name: &str| {
        let text = document.as_object().and_then(|filter| filter.get(name)?.as_string());
        text.ok_or(FallbackError::Malformed)
    };
    Ok(Filter {
        category_id: field("categoryId")?.to_owned(),
        operator: Operator::parse(field("operator")?).ok_or(FallbackError::Invalid)?,
        value: field("value")?.to_owned(),
    })
}
