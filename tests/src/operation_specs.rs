//! The operations of `openapi.yaml`, each with what answers it.

use std::sync::LazyLock;

use lambda_http::http::Method;
use serde_json::Value;
use shared::app::Operation;

use crate::call::Call;
use crate::contract::{OPENAPI, resolve};
use crate::operations::OPERATIONS;

/// An operation of `openapi.yaml`.
pub struct OperationSpec {
    /// Its operationId.
    pub id: &'static str,
    /// What answers it.
    pub operation: &'static Operation,
    /// Its method.
    pub method: Method,
    /// Its path.
    pub path: &'static str,
    /// Its parameters, those of its path included.
    pub parameters: Vec<&'static Value>,
    /// The media types of its body, and what is said of each.
    pub contents: Vec<(&'static str, &'static Value)>,
}

impl OperationSpec {
    /// A call of it.
    pub fn call(&self) -> Call {
        Call::of(self.operation).method(self.method.clone()).path(self.path)
    }
}

/// Every operation of `openapi.yaml`.
pub static OPERATION_SPECS: LazyLock<Vec<OperationSpec>> = LazyLock::new(|| {
    let mut described = Vec::new();
    for (path, item) in OPENAPI["paths"].as_object().expect("there are paths") {
        for method in ["get", "post", "put", "patch", "delete"] {
            let operation = &item[method];
            let Some(id) = operation["operationId"].as_str() else { continue };
            let function = operation["x-function"].as_str().unwrap_or(id);
            let found = OPERATIONS.iter().find(|operation| operation.name == function);
            let of_path = item["parameters"].as_array().into_iter().flatten();
            let own = operation["parameters"].as_array().into_iter().flatten();
            let contents = resolve(&operation["requestBody"])["content"].as_object();
            let contents = contents.into_iter().flatten();
            described.push(OperationSpec {
                id,
                operation: found.unwrap_or_else(|| panic!("nothing answers {id}")),
                method: method.to_uppercase().parse().expect("it is a method"),
                path,
                parameters: of_path.chain(own).map(resolve).collect(),
                contents: contents.map(|(kind, content)| (kind.as_str(), content)).collect(),
            });
        }
    }
    described
});

/// The operation of an operationId.
pub fn operation_of(id: &str) -> &'static OperationSpec {
    OPERATION_SPECS.iter().find(|it| it.id == id).unwrap_or_else(|| panic!("there is no {id}"))
}
