//! What a model is asked: the rules, the request's own categories as the form of a tool, and the
//! query as it was typed. Nothing in it can make the model do more than fill in that form.

use std::collections::HashMap;

use aws_sdk_bedrockruntime::error::BuildError;
use aws_sdk_bedrockruntime::types::{
    AnyToolChoice, ContentBlock, ConversationRole, Message, SystemContentBlock, Tool, ToolChoice,
    ToolConfiguration, ToolInputSchema, ToolSpecification,
};
use aws_smithy_types::Document;
use serde::Serialize;

use super::OpinionError;
use crate::question::WrittenFilter;
use interpreter::{Category, Kind, Operator, Request};

/// The tool that the model calls with its filters.
pub(super) const TOOL: &str = "set_filters";

/// The rules of `docs/semantics/error-filters.md`, for a model.
const INSTRUCTIONS: &str = include_str!("instructions.txt");

/// The most bytes of categories and current filters that are sent, about 8,000 tokens: more are not
/// read in the time that there is.
const MAX_CONTEXT_BYTES: usize = 32_768;

/// What a query is about.
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

/// What the model is told before each question.
pub(super) fn instructions() -> SystemContentBlock {
    SystemContentBlock::Text(INSTRUCTIONS.to_owned())
}

/// The question: the context in one block, the query alone in another.
pub(super) fn question(request: &Request) -> Result<Message, OpinionError> {
    let message = Message::builder()
        .role(ConversationRole::User)
        .content(ContentBlock::Text(context(request)?))
        .content(ContentBlock::Text(request.query.clone()))
        .build()?;
    Ok(message)
}

/// The only way to answer.
pub(super) fn tool(request: &Request) -> Result<ToolConfiguration, BuildError> {
    let specification = ToolSpecification::builder()
        .name(TOOL)
        .description("Sets the complete list of filters that hold after the query.")
        .input_schema(ToolInputSchema::Json(schema(request)))
        .build()?;
    // Of a single tool, `any` is that one, and more models know it than know a choice by name.
    ToolConfiguration::builder()
        .tools(Tool::ToolSpec(specification))
        .tool_choice(ToolChoice::Any(AnyToolChoice::builder().build()))
        .build()
}

fn context(request: &Request) -> Result<String, OpinionError> {
    let context = Context {
        categories: request.categories.iter().map(written).collect(),
        current_filters: request.current_filters.iter().cloned().map(Into::into).collect(),
    };
    let text = serde_json::to_string(&context).map_err(|_| OpinionError::TooLarge)?;
    if text.len() > MAX_CONTEXT_BYTES {
        return Err(OpinionError::TooLarge);
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

/// The JSON schema of the tool's input. Which values and operators a category takes stands in the
/// context: a schema that said so for each of them would be as long again.
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
