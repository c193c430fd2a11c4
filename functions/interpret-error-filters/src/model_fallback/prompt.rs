//! The prompt for a model: the rules, the request's categories as the schema of a tool, and the
//! query as typed. Nothing in a query can make the model do more than call that tool.

use std::collections::HashMap;

use aws_sdk_bedrockruntime::error::BuildError;
use aws_sdk_bedrockruntime::types::{
    AnyToolChoice, ContentBlock, ConversationRole, Message, SystemContentBlock, Tool, ToolChoice,
    ToolConfiguration, ToolInputSchema, ToolSpecification,
};
use aws_smithy_types::Document;
use serde::Serialize;

use super::FallbackError;
use crate::question::WrittenFilter;
use interpreter::{Category, Kind, Operator, Request};

/// The tool that the model calls with its filters.
pub(super) const TOOL: &str = "set_filters";

/// The rules of `docs/semantics/error-filters.md`, for a model.
const INSTRUCTIONS: &str = include_str!("instructions.txt");

/// Maximum bytes of categories and current filters in a prompt, about 8,000 tokens. A model cannot
/// read more in time.
const MAX_CONTEXT_BYTES: usize = 32_768;

/// The context of a query.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Context<'a> {
    categories: Vec<WrittenCategory<'a>>,
    current_filters: Vec<WrittenFilter>,
}

#[derive(Serialize)]
struct WrittenCategory<'a> {
    id: &'a str,
    label: &'a str,
    kind: &'static str,
    values: &'a [String],
}

/// Returns the system prompt.
pub(super) fn instructions() -> SystemContentBlock {
    SystemContentBlock::Text(INSTRUCTIONS.to_owned())
}

/// Returns the user message: the context in one block, the query alone in another.
pub(super) fn question(request: &Request) -> Result<Message, FallbackError> {
    let message = Message::builder()
        .role(ConversationRole::User)
        .content(ContentBlock::Text(context(request)?))
        .content(ContentBlock::Text(request.query.clone()))
        .build()?;
    Ok(message)
}

/// Returns the only tool, which the model must call.
pub(super) fn tool(request: &Request) -> Result<ToolConfiguration, BuildError> {
    let specification = ToolSpecification::builder()
        .name(TOOL)
        .description("Sets the complete list of filters that hold after the query.")
        .input_schema(ToolInputSchema::Json(schema(request)))
        .build()?;
    // With a single tool, `any` means that tool. More models support `any` than a choice by name.
    ToolConfiguration::builder()
        .tools(Tool::ToolSpec(specification))
        .tool_choice(ToolChoice::Any(AnyToolChoice::builder().build()))
        .build()
}

fn context(request: &Request) -> Result<String, FallbackError> {
    let context = Context {
        categories: request.categories.iter().map(written).collect(),
        current_filters: request.current_filters.iter().cloned().map(Into::into).collect(),
    };
    let text = serde_json::to_string(&context).map_err(|_| FallbackError::TooLarge)?;
    if text.len() > MAX_CONTEXT_BYTES {
        return Err(FallbackError::TooLarge);
    }
    Ok(text)
}

fn written(category: &Category) -> WrittenCategory<'_> {
    let kind = match category.kind {
        Kind::Text => "text",
        Kind::Numeric => "number",
        Kind::Boolean => "boolean",
        Kind::Array => "array",
    };
    WrittenCategory { id: &category.id, label: &category.label, kind, values: &category.values }
}

/// Returns the JSON schema of the tool's input. The context states the values and operators of each
/// category. A schema with them would be as long again.
fn schema(request: &Request) -> Document {
    let ids = request.categories.iter().map(|category| category.id.as_str());
    let operators = Operator::ALL.into_iter().map(Operator::as_str);
    let filter = object([
        ("type", text("object")),
        (
            "properties",
            object([
                ("categoryId", object([("type", text("string")), ("enum", texts(ids))])),
                ("operator", object([("type", text("string")), ("enum", texts(operators))])),
                ("value", object([("type", text("string"))])),
            ]),
        ),
        ("required", texts(["categoryId", "operator", "value"])),
    ]);
    let filters = object([("type", text("array")), ("items", filter)]);
    object([
        ("type", text("object")),
        ("properties", object([("filters", filters)])),
        ("required", texts(["filters"])),
    ])
}

fn object<const N: usize>(members: [(&str, Document); N]) -> Document {
    let members = members.map(|(name, value)| (name.to_owned(), value));
    Document::Object(HashMap::from(members))
}

fn texts<'a>(items: impl IntoIterator<Item = &'a str>) -> Document {
    Document::Array(items.into_iter().map(text).collect())
}

fn text(text: &str) -> Document {
    Document::String(text.to_owned())
}
