//! What a model answered: the input of its one call of the tool, read strictly.

use aws_sdk_bedrockruntime::operation::converse::ConverseOutput;
use aws_sdk_bedrockruntime::types::{ContentBlock, StopReason, ToolUseBlock};
use aws_smithy_types::Document;

use super::OpinionError;
use super::prompt::TOOL;
use interpreter::{Filter, Operator};

/// The filters of a model's answer.
pub(super) fn filters(output: &ConverseOutput) -> Result<Vec<Filter>, OpinionError> {
    // An answer that was cut off has another reason, and a list that may lack its end.
    if *output.stop_reason() != StopReason::ToolUse {
        return Err(OpinionError::NoCall);
    }
    let call = only_call(output).ok_or(OpinionError::NoCall)?;
    let filters = call.input().as_object().and_then(|input| input.get("filters")?.as_array());
    filters.ok_or(OpinionError::Malformed)?.iter().map(filter).collect()
}

fn only_call(output: &ConverseOutput) -> Option<&ToolUseBlock> {
    let message = output.output()?.as_message().ok()?;
    let mut calls = message.content().iter().filter_map(call);
    calls.next().filter(|_| calls.next().is_none())
}

fn call(block: &ContentBlock) -> Option<&ToolUseBlock> {
    block.as_tool_use().ok().filter(|call| call.name() == TOOL)
}

fn filter(document: &Document) -> Result<Filter, OpinionError> {
    let member = |name: &str| {
        let text = document.as_object().and_then(|filter| filter.get(name)?.as_string());
        text.ok_or(OpinionError::Malformed)
    };
    Ok(Filter {
        category_id: member("categoryId")?.to_owned(),
        operator: Operator::parse(member("operator")?).ok_or(OpinionError::Invalid)?,
        value: member("value")?.to_owned(),
    })
}
