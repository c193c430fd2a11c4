//! The operations of `openapi.yaml` with the functions that handle them.

use std::sync::LazyLock;

use lambda_http::http::Method;
use serde_json::Value;
use shared::app::Operation;

use crate::call::Call;
use crate::contract::{OPENAPI, resolve};
use crate::operations::OPERATIONS;

/// An operation of `openapi.yaml`.
pub struct OperationSpec {
    /// The operationId.
    pub id: &'static str,
    /// The tag.
    pub tag: &'static str,
    /// The operation of the function that handles it.
    pub operation: &'static Operation,
    /// The method.
    pub method: Method,
    /// The path.
    pub path: &'static str,
    /// The parameters, including those of the path.
    pub parameters: Vec<&'static Value>,
    /// The media types of the body with their descriptions.
    pub contents: Vec<(&'static str, &'static Value)>,
}

impl OperationSpec {
    /// Returns a call of the operation.
    pub fn call(&self) -> Call {
        Call::of(self.operation).method(self.method.clone()).path(self.path)
    }
}

/// All operations of `openapi.yaml`.
pub static OPERATION_SPECS: LazyLock<Vec<OperationSpec>> = LazyLock::new(|| {
    let mut specs = Vec::new();
    for (path, item) in OPENAPI["paths"].as_object().expect("openapi.yaml has paths") {
        for method in ["get", "post", "put", "patch", "delete"] {
            let operation = &item[method];
            let Some(id) = operation["operationId"].as_str() else { continue };
            let function = operation["x-function"].as_str().unwrap_or(id);
            let found = OPERATIONS.iter().find(|operation| operation.name == function);
            let of_path = item["parameters"].as_array().into_iter().flatten();
            let own = operation["parameters"].as_array().into_iter().flatten();
            let contents = resolve(&operation["requestBody"])["content"].as_object();
            let contents = contents.into_iter().flatten();
            specs.push(OperationSpec {
                id,
                tag: operation["tags"][0].as_str().expect("the operation has a tag"),
                operation: found.unwrap_or_else(|| panic!("no function handles {id}")),
                method: method.to_uppercase().parse().expect("the method is valid"),
                path,
                parameters: of_path.chain(own).map(resolve).collect(),
                contents: contents.map(|(kind, content)| (kind.as_str(), content)).collect(),
            });
        }
    }
    specs
});

/// Returns the operation with an operationId.
pub fn operation_of(id: &str) -> &'static OperationSpec {
    OPERATION_SPECS
        .iter()
        .find(|it| it.id == id)
        .unwrap_or_else(|| panic!("openapi.yaml has no operation {id}"))
}
