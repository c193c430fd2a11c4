//! Converts the examples of `openapi.yaml` to curl commands.

use std::path::Path;

use yaml_serde::Value as Yaml;

/// Project slug in examples.
const EXAMPLE_SLUG: &str = "shop";

/// The reason why `openapi.yaml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ExampleError {
    /// The file could not be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not YAML.
    #[error("openapi.yaml is not YAML: {0}")]
    NotYaml(#[from] yaml_serde::Error),
    /// An example is not JSON.
    #[error("openapi.yaml has an example that is not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    /// The operation is missing, or its body has no example.
    #[error("openapi.yaml has no example of a request to {0}")]
    Missing(String),
}

/// The address, project and key of commands.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The address of the API.
    pub base_url: &'a str,
    /// The project's slug.
    pub slug: &'a str,
    /// An API key.
    pub key: &'a str,
}

/// The API description as YAML, which preserves the order of fields.
#[derive(Debug)]
pub struct Examples {
    document: Yaml,
}

impl Examples {
    /// Reads the description.
    pub fn read(path: &Path) -> Result<Self, ExampleError> {
        let text = std::fs::read_to_string(path).map_err(|source| ExampleError::Unreadable {
            path: path.display().to_string(),
            source,
        })?;
        Ok(Self { document: yaml_serde::from_str(&text)? })
    }

    /// Returns a curl command for an operation, with the first example of its body. `parameters`
    /// are path parameters in addition to the project.
    pub fn curl(
        &self,
        id: &str,
        parameters: &[(&str, &str)],
        target: Target<'_>,
    ) -> Result<String, ExampleError> {
        let (method, path, operation) = self.operation(id)?;
        let body = self.first_body(operation);
        let body = body.ok_or_else(|| ExampleError::Missing(id.to_owned()))?;
        let project = [("idOrSlug", target.slug)];
        let path = project.iter().chain(parameters).fold(path.to_owned(), |path, (name, value)| {
            path.replace(&format!("{{{name}}}"), value)
        });
        // With a body, curl defaults to POST.
        let method =
            if method == "post" { String::new() } else { format!("-X {} ", method.to_uppercase()) };
        let localized = |text: &str| text.replace(&quoted(EXAMPLE_SLUG), &quoted(target.slug));
        let body = localized(&serde_json::to_string(body)?).replace('\'', r"'\''");
        let Target { base_url, key, .. } = target;
        Ok(format!(
            "{method}{base_url}{path} \\\n    -H 'x-api-key: {key}' -H 'content-type: application/json' \\\n    \
             -d '{body}'"
        ))
    }

    fn operation(&self, id: &str) -> Result<(&str, &str, &Yaml), ExampleError> {
        let paths = self.document.get("paths").and_then(Yaml::as_mapping);
        let operations = paths.into_iter().flatten().flat_map(|(path, item)| {
            let methods = item.as_mapping().into_iter().flatten();
            methods.filter_map(move |(method, operation)| {
                Some((method.as_str()?, path.as_str()?, operation))
            })
        });
        let is_wanted =
            |operation: &Yaml| operation.get("operationId").and_then(Yaml::as_str) == Some(id);
        let mut found = operations.filter(|(.., operation)| is_wanted(operation));
        found.next().ok_or_else(|| ExampleError::Missing(id.to_owned()))
    }

    fn first_body<'y>(&'y self, operation: &'y Yaml) -> Option<&'y Yaml> {
        let content = self.resolve(operation.get("requestBody")?)?.get("content")?;
        let examples = content.get("application/json")?.get("examples")?.as_mapping()?;
        self.resolve(examples.values().next()?)?.get("value")
    }

    /// Resolves a `$ref`, or returns the value itself.
    fn resolve<'y>(&'y self, value: &'y Yaml) -> Option<&'y Yaml> {
        let Some(reference) = value.get("$ref").and_then(Yaml::as_str) else { return Some(value) };
        let mut names = reference.strip_prefix("#/")?.split('/');
        names.try_fold(&self.document, |value, name| value.get(name))
    }
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target<'_> = Target { base_url: "http://host", slug: "demo", key: "k" };

    fn curl(id: &str) -> Result<String, ExampleError> {
        let text = r"
paths:
  /v0/projects/{idOrSlug}/things/{thingId}:
    patch:
      operationId: update-thing
      requestBody: {$ref: '#/components/requestBodies/Thing'}
    get: {operationId: get-thing}
components:
  requestBodies:
    Thing: {content: {application/json: {examples: {
      one: {$ref: '#/components/examples/thing'}, another: {value: {}}}}}}
  examples: {thing: {value: {project: shop, name: It's shop}}}
";
        let examples = Examples { document: yaml_serde::from_str(text).unwrap() };
        examples.curl(id, &[("thingId", "$THING")], TARGET)
    }

    #[test]
    fn examples_become_commands_for_the_demo_project() {
        assert_eq!(
            curl("update-thing").unwrap(),
            r#"-X PATCH http://host/v0/projects/demo/things/$THING \
    -H 'x-api-key: k' -H 'content-type: application/json' \
    -d '{"project":"demo","name":"It'\''s shop"}'"#
        );
    }

    #[test]
    fn operations_without_a_body_have_no_example() {
        for id in ["get-thing", "delete-thing"] {
            let error = curl(id).unwrap_err().to_string();
            assert_eq!(error, format!("openapi.yaml has no example of a request to {id}"));
        }
    }
}
