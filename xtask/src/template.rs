//! Generates parts of `template.yaml`: the functions, and lists of all functions or tables.

use std::fmt::Write;

use crate::api::{callers, paths};
use crate::function::Function;
use crate::names::camel_case;
use crate::openapi::Access;
use crate::region;
use crate::tables::{self, Table};

/// Names of the generated regions.
const ROUTES: &str = "routes";
const CALLERS: &str = "roles that call functions";
const FUNCTIONS: &str = "functions";
const BOUNDARY: &str = "tables of the boundary";
const FAILED_RUNS: &str = "metrics of scheduled functions";
const REGIONS: [&str; 5] = [ROUTES, CALLERS, FUNCTIONS, BOUNDARY, FAILED_RUNS];

/// Event ages in seconds that Lambda accepts.
const EVENT_AGE: std::ops::RangeInclusive<u32> = 60..=21_600;

/// Names per search. AWS limits a search to 1,024 characters, and a name to 64;
/// `tests/contract/check_template.py` checks the sum.
const NAMES_OF_A_SEARCH: usize = 8;

/// Returns the template with all generated parts.
pub(crate) fn generated(text: &str, functions: &[Function]) -> Result<String, String> {
    let tables = tables::tables(&region::by_hand(text, &REGIONS)?)?;
    let resources = functions.iter().map(|function| {
        resource(function, &tables).map_err(|error| format!("functions/{}: {error}", function.name))
    });
    let resources: Vec<String> = resources.collect::<Result<_, _>>()?;
    let text = region::replace(text, ROUTES, &paths(functions))?;
    let text = region::replace(&text, CALLERS, &callers(functions))?;
    let text = region::replace(&text, FUNCTIONS, &resources.join("\n"))?;
    let text = region::replace(&text, BOUNDARY, &boundary(&tables))?;
    let text = region::replace(&text, FAILED_RUNS, &failed_runs(functions))?;

    let names: Vec<String> = functions.iter().map(Function::resource).collect();
    let text = searches(&text, "FunctionName", &names)?;
    let names: Vec<String> = tables.into_iter().map(|table| table.resource).collect();
    searches(&text, "TableName", &names)
}

/// Returns a function.
fn resource(function: &Function, tables: &[Table]) -> Result<String, String> {
    let name = &function.name;
    let resource = function.resource();
    let mut properties = String::new();
    let text = &mut properties;
    match function.operations.first() {
        Some(operation) => {
            line(text, 0, &format!("Description: {} {}", operation.method, operation.path));
        }
        None => line(text, 0, &format!("Description: >-\n  {}", function.description)),
    }
    line(text, 0, &format!("CodeUri: target/package/{name}.zip"));
    if function.metadata.canary {
        released(text);
    }
    logging(text, function);
    if let Some(memory) = &function.metadata.memory {
        line(text, 0, &format!("MemorySize: !Ref {memory}"));
    }
    if let Some(limit) = &function.metadata.concurrency {
        let limit = format!("!If [Has{limit}, !Ref {limit}, !Ref AWS::NoValue]");
        line(text, 0, &format!("ReservedConcurrentExecutions: {limit}"));
    }
    if let Some(timeout) = function.metadata.timeout {
        line(text, 0, &format!("Timeout: {timeout}"));
    }
    environment(text, function);
    events(text, function);
    policies(text, function, tables)?;
    Ok(format!(
        "{resource}:\n  Type: AWS::Serverless::Function\n  Properties:\n{}",
        indented(&properties, 4)
    ))
}

/// Writes the deployment settings of a canary function. Other functions have no versions.
///
/// The alarm is given by name. A reference would be circular: the API depends on the alias, the alias
/// on the deployment group, and the alarm on the API.
fn released(text: &mut String) {
    line(text, 0, "AutoPublishAlias: live\nAutoPublishCodeSha256: !Ref Release");
    line(text, 0, "DeploymentPreference:");
    line(
        text,
        2,
        "Type: !If [ShiftsAtOnce, AllAtOnce, !Ref TrafficShifting]\n\
         Alarms: !If [ShiftsAtOnce, [!Ref AWS::NoValue], [!Sub \"${Stage} ${AWS::StackName}: failed requests\"]]",
    );
}

fn logging(text: &mut String, function: &Function) {
    line(text, 0, "LoggingConfig:");
    line(text, 2, "LogFormat: JSON");
    if function.is_job() {
        line(text, 2, "# Independent of LogLevel: alarms watch the metrics in these lines.");
        line(text, 2, "ApplicationLogLevel: INFO");
    } else {
        line(text, 2, "ApplicationLogLevel: !Ref LogLevel");
    }
    let system = function.metadata.system_log_level.as_deref().unwrap_or("WARN");
    line(text, 2, &format!("SystemLogLevel: {system}"));
    line(text, 2, "LogGroup: !Ref FunctionLogs");
}

fn environment(text: &mut String, function: &Function) {
    let variables = &function.metadata.environment;
    if !function.takes_cursor() && variables.is_empty() {
        return;
    }
    line(text, 0, "Environment:\n  Variables:");
    if function.takes_cursor() {
        line(
            text,
            4,
            "# Secret from API clients, and stable for the life of the stack.\n\
             WAYMARK_CURSOR_KEY: !Select [2, !Split [\"/\", !Ref \"AWS::StackId\"]]",
        );
    }
    for (variable, parameter) in variables {
        line(text, 4, &format!("{variable}: !Ref {parameter}"));
    }
}

fn events(text: &mut String, function: &Function) {
    let Some(schedule) = &function.schedule else { return };
    line(text, 0, &format!("Events:\n  {}:\n    Type: ScheduleV2", schedule.name()));
    line(
        text,
        4,
        &format!(
            "Properties:\n  ScheduleExpression: {}\n  \
             # A fixed name would conflict with other stacks.\n  \
             OmitName: true\n  \
             RoleArn: !GetAtt SchedulerRole.Arn\n  \
             # Retries of the delivery to Lambda.\n  \
             RetryPolicy: {{MaximumRetryAttempts: 0}}",
            schedule.expression
        ),
    );
    let age = schedule.seconds().clamp(*EVENT_AGE.start(), *EVENT_AGE.end());
    line(
        text,
        0,
        &format!(
            "# No retry after a failure or throttling: the next run comes soon enough.\n\
             EventInvokeConfig: {{MaximumRetryAttempts: 0, MaximumEventAgeInSeconds: {age}}}"
        ),
    );
}

fn policies(text: &mut String, function: &Function, tables: &[Table]) -> Result<(), String> {
    let statements = statements(function, tables)?;
    if statements.is_empty() && function.policies.is_none() {
        return Ok(());
    }
    line(text, 0, "Policies:");
    if !statements.is_empty() {
        line(text, 2, "- Version: \"2012-10-17\"\n  Statement:");
        line(text, 6, &statements);
    }
    if let Some(policies) = &function.policies {
        line(text, 2, policies.trim_end());
    }
    Ok(())
}

/// Returns the policy statements for tables.
fn statements(function: &Function, tables: &[Table]) -> Result<String, String> {
    let mut text = String::new();
    if let Some(Access::Key(_) | Access::AnyKey) = function.access() {
        let arns = |table| tables::find(tables, table).map(|(_, target)| target.arns);
        let mut read = arns("api-keys")?.to_vec();
        read.extend(arns("people")?);
        read.extend(arns("projects")?);
        statement(&mut text, "CountRequests", &["UpdateItem"], &arns("quotas")?);
        leading_keys(&mut text, &["requests#*".to_owned()]);
        statement(&mut text, "Authenticate", &["BatchGetItem"], &read);
        statement(&mut text, "RecordUse", &["PutItem"], &arns("people")?);
        leading_keys(&mut text, &["use#*".to_owned()]);
    }
    let mut used = Vec::new();
    for (wanted, actions) in &function.metadata.tables {
        let (place, target) = tables::find(tables, wanted)?;
        if actions.is_empty() {
            return Err(format!("the table `{wanted}` has no actions; name some, or remove it"));
        }
        used.push((place, target, actions));
    }
    // The stable sort keeps tables before their indexes, as in the map.
    used.sort_by_key(|(place, ..)| *place);
    for (_, target, actions) in used {
        let keys = function.metadata.writes.get(&target.table);
        let (writes, others): (Vec<&str>, Vec<&str>) = actions
            .iter()
            .map(String::as_str)
            .partition(|action| keys.is_some() && WRITES.contains(action));
        if !others.is_empty() {
            statement(&mut text, &format!("Use{}", target.name), &others, &target.arns);
        }
        if let (Some(keys), false) = (keys, writes.is_empty()) {
            statement(&mut text, &format!("Write{}", target.name), &writes, &target.arns);
            leading_keys(&mut text, keys);
        }
    }
    Ok(text)
}

/// Actions that write items.
const WRITES: [&str; 4] = ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem"];

/// Limits a statement to items with these partition keys. A request without keys would satisfy `ForAllValues`.
fn leading_keys(text: &mut String, patterns: &[String]) {
    let patterns: Vec<String> = patterns.iter().map(|it| format!("\"{it}\"")).collect();
    let patterns = patterns.join(", ");
    line(text, 2, "Condition:\n  \"Null\": {\"dynamodb:LeadingKeys\": \"false\"}");
    line(text, 4, &format!("ForAllValues:StringLike: {{\"dynamodb:LeadingKeys\": [{patterns}]}}"));
}

fn statement(text: &mut String, sid: &str, actions: &[&str], resources: &[String]) {
    let actions: Vec<String> = actions.iter().map(|it| format!("dynamodb:{it}")).collect();
    let actions = match &actions[..] {
        [only] => only.clone(),
        many => format!("[{}]", many.join(", ")),
    };
    line(text, 0, &format!("- Sid: {sid}"));
    line(text, 2, &format!("Effect: Allow\nAction: {actions}\nResource:"));
    for resource in resources {
        line(text, 4, &format!("- {resource}"));
    }
}

/// Lists all tables, tables restored from them, and their indexes.
fn boundary(tables: &[Table]) -> String {
    let mut text = String::new();
    for table in tables {
        line(&mut text, 0, &format!("- {}\n- {}", table.arn(), table.restored_arn()));
    }
    for table in tables.iter().filter(|table| !table.indexes.is_empty()) {
        line(&mut text, 0, &format!("- !Sub \"${{{}.Arn}}/index/*\"", table.resource));
    }
    text
}

/// Sums the failed runs of all jobs.
fn failed_runs(functions: &[Function]) -> String {
    let jobs: Vec<&Function> = functions.iter().filter(|function| function.is_job()).collect();
    let sum: Vec<String> =
        jobs.iter().map(|job| format!("FILL({}, 0)", camel_case(&job.name))).collect();
    let mut text = String::new();
    line(
        &mut text,
        0,
        &format!("- Id: failures\n  Label: Failed runs\n  Expression: {}", sum.join(" + ")),
    );
    for job in jobs {
        line(&mut text, 0, &format!("- Id: {}\n  ReturnData: false", camel_case(&job.name)));
        line(
            &mut text,
            2,
            "MetricStat:\n  Metric:\n    Namespace: AWS/Lambda\n    MetricName: Errors",
        );
        let name = job.resource();
        line(&mut text, 6, &format!("Dimensions: [{{Name: FunctionName, Value: !Ref {name}}}]"));
        line(&mut text, 4, "Period: 600\nStat: Sum");
    }
    text
}

/// Returns the text with the names in every search for the dimension. Adjacent lines that differ
/// only in names are one search, which is split into as many lines as needed. The dashboard is JSON
/// without comments, so it has no region markers.
fn searches(text: &str, dimension: &str, names: &[String]) -> Result<String, String> {
    let mut written = String::new();
    let mut lines = text.lines().peekable();
    let mut found = false;
    while let Some(line) = lines.next() {
        let Some(mut search) = Search::parse(line, dimension) else {
            let _ = writeln!(written, "{line}");
            continue;
        };
        found = true;
        while let Some(next) = lines
            .peek()
            .and_then(|line| Search::parse(line, dimension))
            .filter(|it| it.continues(&search))
        {
            search = next;
            lines.next();
        }
        search.write(&mut written, names);
    }
    if found {
        return Ok(written);
    }
    Err(format!("the dashboard has no line with a SEARCH for a {dimension}; add one to each chart"))
}

/// A dashboard line that searches for metrics.
struct Search<'l> {
    /// Text before the names.
    before: &'l str,
    /// Text from the names to the end of the search.
    after: &'l str,
    /// End of the line: a comma, or the closing brackets of the chart.
    end: &'l str,
}

impl<'l> Search<'l> {
    fn parse(line: &'l str, dimension: &str) -> Option<Self> {
        let names = line.find("\"SEARCH(").and_then(|_| line.find(&format!(" {dimension}=(")))?;
        let (before, rest) = line.split_at(names + dimension.len() + 3);
        let (after, end) = rest.split_at(rest.find(")'")?).1.split_once("\"}]")?;
        Some(Self { before, after, end })
    }

    fn continues(&self, previous: &Search<'_>) -> bool {
        (self.before, self.after) == (previous.before, previous.after) && previous.end == ","
    }

    fn write(&self, text: &mut String, names: &[String]) {
        let mut rows = names.chunks(NAMES_OF_A_SEARCH).peekable();
        while let Some(row) = rows.next() {
            let row: Vec<String> = row.iter().map(|name| format!("\\\"${{{name}}}\\\"")).collect();
            let end = if rows.peek().is_some() { "," } else { self.end };
            let _ = writeln!(text, "{}{}{}\"}}]{end}", self.before, row.join(" OR "), self.after);
        }
    }
}

/// Appends indented lines.
pub(crate) fn line(text: &mut String, indent: usize, lines: &str) {
    text.push_str(&indented(lines, indent));
}

/// Returns the text with each line indented, except for empty ones.
pub(crate) fn indented(text: &str, indent: usize) -> String {
    let mut indented = String::new();
    for line in text.lines() {
        // Writing to a string cannot fail.
        let _ = match line {
            "" => writeln!(indented),
            line => writeln!(indented, "{:indent$}{line}", ""),
        };
    }
    indented
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::tests::{LIST, function_of};
    use crate::tables::tests::TEMPLATE;

    fn list_things(metadata: &str, paths: &str) -> Result<String, String> {
        let function = function_of("list-things", metadata, paths).unwrap();
        statements(&function, &tables::tables(TEMPLATE).unwrap())
    }

    #[test]
    fn functions_with_keys_can_read_projects_and_limits() {
        let text = list_things("", LIST).unwrap();
        let statement = text.split_once("Sid: Authenticate").unwrap().1;
        let statement = statement.split("- Sid").next().unwrap();
        assert!(statement.contains("!GetAtt ProjectsTable.Arn"), "{statement}");
        let public = LIST.replace("x-required-scope: 'things:read'", "security: []");
        assert_eq!(list_things("", &public).unwrap(), "");
    }

    #[test]
    fn actions_are_limited_to_their_table_or_index() {
        let metadata = "[package.metadata.waymark.tables]\n\
            \"all-things/index/byAge\" = [\"Query\"]\nall-things = [\"GetItem\", \"Query\"]\n";
        let text = list_things(metadata, LIST).unwrap();
        assert!(text.ends_with(
            "- Sid: UseAllThings\n  Effect: Allow\n  Action: [dynamodb:GetItem, dynamodb:Query]\n  \
             Resource:\n    - !GetAtt ThingsTable.Arn\n    \
             - !Sub \"${ThingsTable.Arn}-restored-*\"\n\
             - Sid: UseAllThingsByAge\n  Effect: Allow\n  Action: dynamodb:Query\n  \
             Resource:\n    - !Sub \"${ThingsTable.Arn}/index/byAge\"\n    \
             - !Sub \"${ThingsTable.Arn}-restored-*/index/byAge\"\n"
        ), "{text}");
        let none = list_things("[package.metadata.waymark.tables]\nprojects = []\n", LIST);
        assert!(none.unwrap_err().contains("`projects` has no actions"));
    }

    #[test]
    fn writes_are_limited_to_the_listed_partition_keys() {
        let metadata = "[package.metadata.waymark.tables]\nall-things = [\"GetItem\", \"PutItem\"]\n\
            [package.metadata.waymark.writes]\nall-things = [\"big#*\", \"only\"]\n";
        let text = list_things(metadata, LIST).unwrap();
        let resources = "  Resource:\n    - !GetAtt ThingsTable.Arn\n    \
             - !Sub \"${ThingsTable.Arn}-restored-*\"\n";
        let statements = format!(
            "- Sid: UseAllThings\n  Effect: Allow\n  Action: dynamodb:GetItem\n{resources}\
             - Sid: WriteAllThings\n  Effect: Allow\n  Action: dynamodb:PutItem\n{resources}  \
             Condition:\n    \"Null\": {{\"dynamodb:LeadingKeys\": \"false\"}}\n    \
             ForAllValues:StringLike: {{\"dynamodb:LeadingKeys\": [\"big#*\", \"only\"]}}\n"
        );
        assert!(text.ends_with(&statements), "{text}");
    }

    #[test]
    fn jobs_have_a_schedule_and_log_info() {
        let job =
            function_of("sweep", "schedule = \"rate(1 minute)\"\ntimeout = 60", LIST).unwrap();
        let text = resource(&job, &tables::tables(TEMPLATE).unwrap()).unwrap();
        for part in [
            "    Description: >-\n      Does things.\n",
            "ApplicationLogLevel: INFO\n",
            "    Timeout: 60\n",
            "EveryMinute:\n        Type: ScheduleV2\n",
            "MaximumEventAgeInSeconds: 60}",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("Policies"), "{text}");
        assert!(!text.contains("AutoPublishAlias"), "{text}");
    }

    #[test]
    fn only_canary_functions_have_versions() {
        let text = |metadata: &str| {
            let function = function_of("list-things", metadata, LIST).unwrap();
            resource(&function, &tables::tables(TEMPLATE).unwrap()).unwrap()
        };
        let preference = "    AutoPublishAlias: live\n    AutoPublishCodeSha256: !Ref Release\n    \
             DeploymentPreference:\n      \
             Type: !If [ShiftsAtOnce, AllAtOnce, !Ref TrafficShifting]\n      \
             Alarms: !If [ShiftsAtOnce, [!Ref AWS::NoValue], [!Sub \"${Stage} ${AWS::StackName}: failed requests\"]]\n";
        let (canary, other) = (text("canary = true"), text(""));
        assert!(canary.contains(preference), "{canary}");
        assert!(!other.contains("AutoPublish") && !other.contains("Deployment"), "{other}");
        for text in [canary, other] {
            assert!(text.contains("CodeUri: target/package/list-things.zip\n"), "{text}");
            assert!(text.contains("LogGroup: !Ref FunctionLogs\n"), "{text}");
        }
    }

    #[test]
    fn operations_with_cursors_get_the_key() {
        let cursor = LIST.replace("get: {", "get: {parameters: [{name: cursor, in: query}], ");
        let key = |paths: &str| {
            let function = function_of("list-things", "", paths).unwrap();
            resource(&function, &tables::tables(TEMPLATE).unwrap())
                .unwrap()
                .contains("WAYMARK_CURSOR_KEY")
        };
        assert!(key(&cursor));
        assert!(!key(LIST));
    }

    const CHART: &str = r#"
      ["fixed"],
      [{"label": "l", "expression": "SEARCH('{AWS/Lambda,FunctionName} M=\"E\" FunctionName=(\"${Old}\")', 'Sum', 300)"}],
      [{"label": "l", "expression": "SEARCH('{AWS/Lambda,FunctionName} M=\"E\" FunctionName=(\"${Older}\")', 'Sum', 300)"}]]}},
      ["fixed too"]
"#;

    #[test]
    fn searches_are_split_into_rows_of_eight() {
        let names: Vec<String> = (1..=9).map(|number| format!("N{number}")).collect();
        let text = searches(CHART, "FunctionName", &names).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), CHART.lines().count());
        assert!(lines[2].contains(r#"(\"${N1}\" OR \"${N2}\""#), "{}", lines[2]);
        assert!(lines[2].ends_with(r#"\"${N8}\")', 'Sum', 300)"}],"#), "{}", lines[2]);
        assert!(lines[3].ends_with(r#"=(\"${N9}\")', 'Sum', 300)"}]]}},"#), "{}", lines[3]);
        assert_eq!(searches(&text, "FunctionName", &names).unwrap(), text);
        let fewer = searches(&text, "FunctionName", &names[..1]).unwrap();
        assert_eq!(fewer.lines().count(), CHART.lines().count() - 1);
    }

    #[test]
    fn searches_of_two_charts_are_not_merged() {
        let charts = CHART.replace("Sum', 300)\"}],", "Sum', 300)\"}]]}},");
        let text = searches(&charts, "FunctionName", &["N".to_owned()]).unwrap();
        assert_eq!(text.matches("${N}").count(), 2, "{text}");
    }

    #[test]
    fn dashboards_without_searches_are_rejected() {
        let error = searches("nothing\n", "TableName", &[]).unwrap_err();
        assert!(error.contains("no line with a SEARCH for a TableName"), "{error}");
    }
}
