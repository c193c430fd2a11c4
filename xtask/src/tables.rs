//! Reads the tables in `template.yaml`.

use yaml_serde::Value as Yaml;

use crate::names::{capitalized, pascal_case};

/// A DynamoDB table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    /// Name without the stack's prefix: `feature-flags`.
    pub(crate) name: String,
    /// Resource name in the template: `FeatureFlagsTable`.
    pub(crate) resource: String,
    /// Names of its indexes.
    pub(crate) indexes: Vec<String>,
}

/// A table or index in an IAM policy.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// ARN expressions of the table and of tables restored from it: `!GetAtt ErrorsTable.Arn`.
    pub(crate) arns: [String; 2],
    /// Name of the table or index in `Cargo.toml`: `replay-insights/index/byStatus`.
    pub(crate) table: String,
    /// Name in statement ids: `ErrorsByStatus`.
    pub(crate) name: String,
}

impl Table {
    pub(crate) fn arn(&self) -> String {
        format!("!GetAtt {}.Arn", self.resource)
    }

    /// Returns the ARN pattern of restored tables (`TableNames` in `shared`) and their indexes.
    pub(crate) fn restored_arn(&self) -> String {
        format!("!Sub \"${{{}.Arn}}-restored-*\"", self.resource)
    }
}

/// Reads all tables, in template order.
pub(crate) fn tables(template: &str) -> Result<Vec<Table>, String> {
    let template: Yaml = yaml_serde::from_str(template).map_err(|error| error.to_string())?;
    let resources = template.get("Resources").and_then(Yaml::as_mapping);
    let resources = resources.ok_or("it has no `Resources`")?.iter();
    let is_table =
        |it: &Yaml| it.get("Type").and_then(Yaml::as_str) == Some("AWS::DynamoDB::Table");
    let declared = resources.filter(|(_, resource)| is_table(resource));
    declared
        .map(|(resource, table)| {
            let resource = resource.as_str().unwrap_or_default();
            read(resource, table.get("Properties").unwrap_or(&Yaml::Null)).ok_or_else(|| {
                format!("{resource}: its name is not !Sub \"${{AWS::StackName}}-NAME\"")
            })
        })
        .collect()
}

fn read(resource: &str, properties: &Yaml) -> Option<Table> {
    let Yaml::Tagged(name) = properties.get("TableName")? else { return None };
    let name = name.value.as_str()?.strip_prefix("${AWS::StackName}-")?;
    let indexes = ["LocalSecondaryIndexes", "GlobalSecondaryIndexes"].into_iter();
    let indexes = indexes.filter_map(|kind| properties.get(kind)?.as_sequence()).flatten();
    let indexes = indexes.filter_map(|index| index.get("IndexName")?.as_str());
    Some(Table {
        name: name.to_owned(),
        resource: resource.to_owned(),
        indexes: indexes.map(str::to_owned).collect(),
    })
}

/// Finds `errors` or `replay-insights/index/byStatus`. Returns the table's position and the target.
pub(crate) fn find(tables: &[Table], wanted: &str) -> Result<(usize, Target), String> {
    let (name, index) = match wanted.split_once("/index/") {
        Some((name, index)) => (name, Some(index)),
        None => (wanted, None),
    };
    let found = tables.iter().position(|table| table.name == name).ok_or_else(|| {
        let names: Vec<&str> = tables.iter().map(|table| table.name.as_str()).collect();
        format!("template.yaml has no table `{name}`; its tables are {}", names.join(", "))
    })?;
    let table = &tables[found];
    let pascal = pascal_case(name);
    let of = |arns, name| Target { arns, table: wanted.to_owned(), name };
    let Some(index) = index else {
        return Ok((found, of([table.arn(), table.restored_arn()], pascal)));
    };
    if !table.indexes.iter().any(|it| it == index) {
        let indexes = table.indexes.join(", ");
        return Err(format!(
            "the table `{name}` has no index `{index}`; its indexes are {indexes}"
        ));
    }
    let (first, rest) = index.split_at_checked(1).unwrap_or((index, ""));
    let arns = ["", "-restored-*"]
        .map(|of| format!("!Sub \"${{{}.Arn}}{of}/index/{index}\"", table.resource));
    Ok((found, of(arns, format!("{pascal}{}{rest}", capitalized(first)))))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const TEMPLATE: &str = r#"
Resources:
  Api: {Type: AWS::Serverless::HttpApi}
  ApiKeysTable:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: !Sub "${AWS::StackName}-api-keys"}
  ProjectsTable:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: !Sub "${AWS::StackName}-projects"}
  ThingsTable:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !Sub "${AWS::StackName}-all-things"
      GlobalSecondaryIndexes: [{IndexName: byAge}, {IndexName: bySize}]
  QuotasTable:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: !Sub "${AWS::StackName}-quotas"}
  PeopleTable:
    Type: AWS::DynamoDB::Table
    Properties: {TableName: !Sub "${AWS::StackName}-people"}
"#;

    #[test]
    fn finds_tables_and_indexes_by_name() {
        let tables = tables(TEMPLATE).unwrap();
        let target = |arns: [&str; 2], table: &str, name: &str| Target {
            arns: arns.map(str::to_owned),
            table: table.to_owned(),
            name: name.to_owned(),
        };
        let arns = ["!GetAtt ThingsTable.Arn", "!Sub \"${ThingsTable.Arn}-restored-*\""];
        assert_eq!(find(&tables, "all-things"), Ok((2, target(arns, "all-things", "AllThings"))));
        let arns = [
            "!Sub \"${ThingsTable.Arn}/index/bySize\"",
            "!Sub \"${ThingsTable.Arn}-restored-*/index/bySize\"",
        ];
        let found = find(&tables, "all-things/index/bySize");
        assert_eq!(found, Ok((2, target(arns, "all-things/index/bySize", "AllThingsBySize"))));
    }

    #[test]
    fn errors_list_the_declared_names() {
        let tables = tables(TEMPLATE).unwrap();
        let error = find(&tables, "thing").unwrap_err();
        assert_eq!(
            error,
            "template.yaml has no table `thing`; its tables are api-keys, projects, all-things, quotas, people"
        );
        let error = find(&tables, "all-things/index/byWeight").unwrap_err();
        assert!(error.ends_with("no index `byWeight`; its indexes are byAge, bySize"), "{error}");
    }

    #[test]
    fn table_names_without_stack_prefix_are_rejected() {
        let error = super::tables(&TEMPLATE.replace("${AWS::StackName}-projects", "projects"));
        assert!(error.unwrap_err().starts_with("ProjectsTable: its name is not"));
    }
}
