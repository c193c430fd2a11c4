//! The tables that `template.yaml` declares.

use std::path::Path;

use serde_json::{Map, Value as Json, json};
use yaml_serde::Value as Yaml;

/// The name of the stack on a laptop. The template derives the names of its tables from it.
pub const STACK_NAME: &str = "waymark";

/// The members of a table's declaration that the embedded engine knows; the others say how AWS
/// protects and bills the table.
const ENGINE_MEMBERS: [&str; 6] = [
    "TableName",
    "AttributeDefinitions",
    "KeySchema",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
];

/// Why `template.yaml` could not be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The file could not be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The file is not YAML.
    #[error("template.yaml is not YAML: {0}")]
    NotYaml(#[from] yaml_serde::Error),
    /// A table is declared in a way that the local stack cannot follow.
    #[error("template.yaml: {0}")]
    Unsupported(String),
}

/// A table, as the engine's own API takes it.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The body of a `CreateTable` request.
    pub create: Json,
    /// The attribute that holds its items' expiry, in seconds since the epoch.
    pub time_to_live_attribute: Option<String>,
}

/// Reads the tables of a template.
pub fn read_tables(path: &Path) -> Result<Vec<Table>, TemplateError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| TemplateError::Unreadable { path: path.display().to_string(), source })?;
    tables(&text)
}

fn tables(text: &str) -> Result<Vec<Table>, TemplateError> {
    let template: Yaml = yaml_serde::from_str(text)?;
    let resources = template.get("Resources").and_then(Yaml::as_mapping);
    let resources =
        resources.ok_or_else(|| TemplateError::Unsupported("there are no Resources".to_owned()))?;
    let is_table = |resource: &Yaml| {
        resource.get("Type").and_then(Yaml::as_str) == Some("AWS::DynamoDB::Table")
    };
    let declarations = resources.iter().filter(|(_, resource)| is_table(resource));
    declarations
        .map(|(name, resource)| {
            table(resource).map_err(|reason| {
                let name = name.as_str().unwrap_or("a table");
                TemplateError::Unsupported(format!("{name}: {reason}"))
            })
        })
        .collect()
}

fn table(resource: &Yaml) -> Result<Table, String> {
    let Json::Object(properties) = plain(resource.get("Properties").unwrap_or(&Yaml::Null))? else {
        return Err("it has no Properties".to_owned());
    };
    let name = properties.get("TableName").and_then(Json::as_str);
    let name = name.ok_or("it has no TableName")?.to_owned();
    let time_to_live = properties.get("TimeToLiveSpecification");
    let time_to_live_attribute = time_to_live
        .and_then(|specification| specification.get("AttributeName"))
        .and_then(Json::as_str)
        .map(str::to_owned);
    let create: Map<String, Json> = properties
        .into_iter()
        .filter(|(member, _)| ENGINE_MEMBERS.contains(&member.as_str()))
        .collect();
    Ok(Table { name, create: Json::Object(create), time_to_live_attribute })
}

/// The value of an expression on a laptop: `!Sub` with the stack's name and references to
/// parameters, which nothing of a table's keys depends on.
fn plain(value: &Yaml) -> Result<Json, String> {
    Ok(match value {
        Yaml::Null => Json::Null,
        Yaml::Bool(value) => json!(value),
        Yaml::Number(number) => {
            let integer = number.as_i64().ok_or("a number is not an integer")?;
            json!(integer)
        }
        Yaml::String(text) => json!(text),
        Yaml::Sequence(items) => Json::Array(items.iter().map(plain).collect::<Result<_, _>>()?),
        Yaml::Mapping(members) => {
            let mut object = Map::new();
            for (name, value) in members {
                let name = name.as_str().ok_or("a name is not text")?;
                object.insert(name.to_owned(), plain(value)?);
            }
            Json::Object(object)
        }
        Yaml::Tagged(tagged) => match (tagged.tag.to_string().as_str(), &tagged.value) {
            ("!Sub", Yaml::String(text)) => {
                let text = text.replace("${AWS::StackName}", STACK_NAME);
                if text.contains("${") {
                    return Err(format!("`{text}` names something that a laptop does not have"));
                }
                json!(text)
            }
            ("!Ref", Yaml::String(name)) => json!({ "Ref": name }),
            (tag, _) => return Err(format!("{tag} is not supported by the local stack")),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_keys_and_time_to_live() {
        let text = r#"
Resources:
  Api: {Type: AWS::Serverless::HttpApi, Properties: {Name: !GetAtt A.B}}
  Things:
    Type: AWS::DynamoDB::Table
    DeletionPolicy: Retain
    Properties:
      TableName: !Sub "${AWS::StackName}-things"
      DeletionProtectionEnabled: !Ref DeletionProtection
      TimeToLiveSpecification: {AttributeName: expiresAt, Enabled: true}
      AttributeDefinitions: [{AttributeName: id, AttributeType: S}]
      KeySchema: [{AttributeName: id, KeyType: HASH}]
"#;
        let expected = Table {
            name: "waymark-things".to_owned(),
            create: json!({
                "TableName": "waymark-things",
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
            }),
            time_to_live_attribute: Some("expiresAt".to_owned()),
        };
        assert_eq!(tables(text).unwrap(), [expected]);
    }

    #[test]
    fn names_the_table_that_it_cannot_follow() {
        let text = "Resources: {Things: {Type: AWS::DynamoDB::Table, Properties: {TableName: !ImportValue x}}}";
        let error = tables(text).unwrap_err().to_string();
        assert_eq!(
            error,
            "template.yaml: Things: !ImportValue is not supported by the local stack"
        );
    }
}
