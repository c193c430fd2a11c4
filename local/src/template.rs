//! Reads the tables, schedules and timeouts in `template.yaml`.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value as Json, json};
use yaml_serde::Value as Yaml;

/// Name of the local stack. The template derives table names from it.
pub const STACK_NAME: &str = "waymark";

/// Properties of a table that the embedded engine supports. The others configure protection and
/// billing in AWS.
const ENGINE_PROPERTIES: [&str; 6] = [
    "TableName",
    "AttributeDefinitions",
    "KeySchema",
    "BillingMode",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
];

/// Property of an index that limits its throughput in AWS. It depends on parameters.
const THROUGHPUT_LIMIT: &str = "OnDemandThroughput";

/// The reason why `template.yaml` cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TemplateError {
    /// The file could not be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not YAML.
    #[error("template.yaml is not YAML: {0}")]
    NotYaml(#[from] yaml_serde::Error),
    /// The local stack does not support a declaration.
    #[error("template.yaml: {0}")]
    Unsupported(String),
}

/// A table in the form of the engine's API.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The table's name.
    pub name: String,
    /// The body of a `CreateTable` request.
    pub create: Json,
    /// The attribute with the items' expiry, in seconds since the epoch.
    pub time_to_live_attribute: Option<String>,
}

/// Reads the tables of a template.
pub fn read_tables(path: &Path) -> Result<Vec<Table>, TemplateError> {
    tables(&read(path)?)
}

pub(crate) fn read(path: &Path) -> Result<String, TemplateError> {
    std::fs::read_to_string(path)
        .map_err(|source| TemplateError::Unreadable { path: path.display().to_string(), source })
}

/// A scheduled function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    /// The function.
    pub function: String,
    /// The interval.
    pub every: Duration,
    /// The timeout of a run.
    pub timeout: Duration,
}

/// Lambda's default timeout.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(3);

/// Function that sends emails, and its interval in the local stack.
const SENDER: &str = "send-notifications";
const SENDER_INTERVAL: Duration = Duration::from_secs(5);

/// Reads the schedules of a template for a local stack, in which emails are sent sooner.
pub fn read_local_schedules(path: &Path) -> Result<Vec<Schedule>, TemplateError> {
    let mut schedules = read_schedules(path)?;
    if let Some(sender) = schedules.iter_mut().find(|schedule| schedule.function == SENDER) {
        sender.every = SENDER_INTERVAL;
    }
    Ok(schedules)
}

/// Reads the schedules of a template.
pub fn read_schedules(path: &Path) -> Result<Vec<Schedule>, TemplateError> {
    schedules(&read(path)?)
}

fn schedules(text: &str) -> Result<Vec<Schedule>, TemplateError> {
    let template: Yaml = yaml_serde::from_str(text)?;
    let resources = template.get("Resources").and_then(Yaml::as_mapping);
    let mut schedules = Vec::new();
    for (name, resource) in resources.into_iter().flatten() {
        let properties = resource.get("Properties");
        let events = properties.and_then(|properties| properties.get("Events"));
        let events = events.and_then(Yaml::as_mapping).into_iter().flat_map(|it| it.values());
        for event in events.filter(|it| it.get("Type").and_then(Yaml::as_str) == Some("ScheduleV2"))
        {
            let expression = event.get("Properties").and_then(|it| it.get("ScheduleExpression"));
            let every = expression.and_then(Yaml::as_str).and_then(parse_rate);
            let code = properties.and_then(|it| it.get("CodeUri")).and_then(Yaml::as_str);
            let function = code.map(function_of_code);
            let (Some(every), Some(function)) = (every, function) else {
                let name = name.as_str().unwrap_or("a function");
                let reason = format!("{name}: its schedule is not like rate(N minutes)");
                return Err(TemplateError::Unsupported(reason));
            };
            let timeout = timeout(&template, resource);
            schedules.push(Schedule { function: function.to_owned(), every, timeout });
        }
    }
    Ok(schedules)
}

/// Reads the timeouts of all functions, by function, from the text of a template.
///
/// # Errors
/// The template is not YAML.
pub fn timeouts(text: &str) -> Result<HashMap<String, Duration>, TemplateError> {
    let template: Yaml = yaml_serde::from_str(text)?;
    let resources = template.get("Resources").and_then(Yaml::as_mapping);
    let functions = resources.into_iter().flat_map(|it| it.values()).filter_map(|resource| {
        let code = resource.get("Properties")?.get("CodeUri")?.as_str()?;
        Some((function_of_code(code).to_owned(), timeout(&template, resource)))
    });
    Ok(functions.collect())
}

/// Returns a function's timeout: its own, the default of the template, or that of Lambda.
fn timeout(template: &Yaml, function: &Yaml) -> Duration {
    let own = function.get("Properties").and_then(|it| it.get("Timeout"));
    let global = || template.get("Globals")?.get("Function")?.get("Timeout");
    let seconds = own.or_else(global).and_then(Yaml::as_u64);
    seconds.map_or(DEFAULT_TIMEOUT, Duration::from_secs)
}

/// Returns the function of an archive of `make package`, by the archive's path.
pub fn function_of_code(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".zip").unwrap_or(name)
}

/// Parses a rate such as `rate(1 minute)`.
fn parse_rate(expression: &str) -> Option<Duration> {
    let rate = expression.strip_prefix("rate(")?.strip_suffix(')')?;
    let (count, unit) = rate.split_once(' ')?;
    let count: u64 = count.parse().ok()?;
    match unit {
        "minute" | "minutes" => Some(Duration::from_mins(count)),
        "hour" | "hours" => Some(Duration::from_hours(count)),
        _ => None,
    }
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
    let Some(properties) = resource.get("Properties").and_then(Yaml::as_mapping) else {
        return Err("it has no Properties".to_owned());
    };
    let mut create = Map::new();
    let mut time_to_live = Json::Null;
    for (property, value) in properties {
        match property.as_str() {
            Some(property) if ENGINE_PROPERTIES.contains(&property) => {
                create.insert(property.to_owned(), plain(value)?);
            }
            Some("TimeToLiveSpecification") => time_to_live = plain(value)?,
            // Protection and billing are irrelevant here and can depend on parameters.
            _ => {}
        }
    }
    let name = create.get("TableName").and_then(Json::as_str);
    let name = name.ok_or("it has no TableName")?.to_owned();
    let time_to_live_attribute =
        time_to_live.get("AttributeName").and_then(Json::as_str).map(str::to_owned);
    Ok(Table { name, create: Json::Object(create), time_to_live_attribute })
}

/// Returns the local value of an expression: `!Sub` with the stack's name, or a reference to a
/// parameter. Table keys do not depend on parameters.
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
        Yaml::Mapping(properties) => {
            let mut object = Map::new();
            for (name, value) in properties {
                let name = name.as_str().ok_or("a name is not text")?;
                if name == THROUGHPUT_LIMIT {
                    continue;
                }
                object.insert(name.to_owned(), plain(value)?);
            }
            Json::Object(object)
        }
        Yaml::Tagged(tagged) => match (tagged.tag.to_string().as_str(), &tagged.value) {
            ("!Sub", Yaml::String(text)) => {
                let text = text.replace("${AWS::StackName}", STACK_NAME);
                if text.contains("${") {
                    return Err(format!("`{text}` has a variable that the local stack lacks"));
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
      GlobalSecondaryIndexes:
        - IndexName: byId
          OnDemandThroughput: !If [IsBounded, {MaxReadRequestUnits: !Ref Most}, !Ref AWS::NoValue]
          KeySchema: [{AttributeName: id, KeyType: HASH}]
"#;
        let expected = Table {
            name: "waymark-things".to_owned(),
            create: json!({
                "TableName": "waymark-things",
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "GlobalSecondaryIndexes": [{
                    "IndexName": "byId",
                    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                }],
            }),
            time_to_live_attribute: Some("expiresAt".to_owned()),
        };
        assert_eq!(tables(text).unwrap(), [expected]);
    }

    #[test]
    fn reads_schedules() {
        let text = "
Globals: {Function: {Timeout: 10}}
Resources:
  Api: {Type: AWS::Serverless::HttpApi}
  Sweep:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: target/package/sweep.zip
      Events:
        Often: {Type: ScheduleV2, Properties: {ScheduleExpression: RATE}}
        Post: {Type: Api, Properties: {Path: /}}
";
        let every = |rate: &str| schedules(&text.replace("RATE", rate));
        let timeout = Duration::from_secs(10);
        let sweep = |every| Schedule { function: "sweep".to_owned(), every, timeout };
        assert_eq!(every("rate(1 minute)").unwrap(), [sweep(Duration::from_mins(1))]);
        assert_eq!(every("rate(5 minutes)").unwrap(), [sweep(Duration::from_mins(5))]);
        assert_eq!(every("rate(2 hours)").unwrap(), [sweep(Duration::from_hours(2))]);
        let error = every("cron(0 0 * * ? *)").unwrap_err().to_string();
        assert!(error.contains("Sweep: its schedule"), "{error}");
    }

    #[test]
    fn reads_timeouts() {
        let text = "
Globals: {Function: {Timeout: 10}}
Resources:
  Api: {Type: AWS::Serverless::HttpApi, Properties: {Timeout: 1}}
  Short: {Properties: {CodeUri: target/package/short.zip}}
  Long: {Properties: {CodeUri: target/package/long.zip, Timeout: 300}}
";
        let of = |seconds| Duration::from_secs(seconds);
        let expected = [("short".to_owned(), of(10)), ("long".to_owned(), of(300))];
        assert_eq!(timeouts(text).unwrap(), HashMap::from(expected));
        let without_globals = timeouts(&text.replace("Globals", "Others")).unwrap();
        assert_eq!(without_globals["short"], DEFAULT_TIMEOUT);
    }

    #[test]
    fn unsupported_tables_are_named() {
        let text = "Resources: {Things: {Type: AWS::DynamoDB::Table, Properties: {TableName: !ImportValue x}}}";
        let error = tables(text).unwrap_err().to_string();
        assert_eq!(
            error,
            "template.yaml: Things: !ImportValue is not supported by the local stack"
        );
    }
}
