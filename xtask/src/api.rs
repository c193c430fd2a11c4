//! The API in `template.yaml`: its paths, and the roles with which AWS calls functions.

use std::collections::BTreeMap;

use crate::function::Function;
use crate::routes::routes;
use crate::template::{indented, line};

/// Functions that one role of the API can call. AWS limits the policies of a role to 10,240
/// characters, and the ARN of an alias has up to 127.
const FUNCTIONS_OF_A_ROLE: usize = 64;

/// Returns the functions that the API calls, each with the role for it.
fn called(functions: &[Function]) -> impl Iterator<Item = (&Function, String)> {
    let called = functions.iter().filter(|function| !function.operations.is_empty());
    called
        .enumerate()
        .map(|(place, function)| (function, format!("ApiRole{}", place / FUNCTIONS_OF_A_ROLE + 1)))
}

/// Returns the paths of the API with their methods, in the form of OpenAPI.
pub(crate) fn paths(functions: &[Function]) -> String {
    let mut paths: BTreeMap<String, String> = BTreeMap::new();
    for (function, role) in called(functions) {
        let target = match alias(function) {
            Some(alias) => alias,
            None => format!("{}.Arn", function.resource()),
        };
        let uri = format!(
            "arn:${{AWS::Partition}}:apigateway:${{AWS::Region}}:lambda:path/2015-03-31/functions/\
             ${{{target}}}/invocations"
        );
        for route in routes(&function.operations) {
            let variables: Vec<String> = route
                .variables()
                .map(|name| format!("{{name: {name}, in: path, required: true}}"))
                .collect();
            let text = paths.entry(route.path.clone()).or_default();
            if route.is_greedy() && text.is_empty() {
                line(text, 0, "# Only a greedy variable matches paths with a trailing slash.");
            }
            line(text, 0, &format!("{}:", route.method.to_lowercase()));
            if !variables.is_empty() {
                line(text, 2, &format!("parameters: [{}]", variables.join(", ")));
            }
            line(
                text,
                2,
                &format!(
                    "responses: {{}}\nx-amazon-apigateway-integration:\n  type: aws_proxy\n  \
                     httpMethod: POST\n  payloadFormatVersion: \"2.0\"\n  \
                     credentials: !GetAtt {role}.Arn\n  uri: !Sub \"{uri}\""
                ),
            );
        }
    }
    let paths =
        paths.into_iter().map(|(path, methods)| format!("{path}:\n{}", indented(&methods, 2)));
    paths.collect()
}

/// Returns the roles with which the API and the scheduler call functions. A permission of each
/// function would be one more resource for each route.
pub(crate) fn callers(functions: &[Function]) -> String {
    let mut roles: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (function, role) in called(functions) {
        let alias = alias(function).map(|alias| format!("!Ref {alias}"));
        roles.entry(role).or_default().push(alias.unwrap_or_else(|| arn(function)));
    }
    let jobs: Vec<String> = functions.iter().filter(|it| it.is_job()).map(arn).collect();
    let of_api = roles.iter().map(|(role, functions)| caller(role, "apigateway", functions));
    let roles = of_api.chain([caller("SchedulerRole", "scheduler", &jobs)]);
    roles.collect::<Vec<_>>().join("\n")
}

/// Returns the alias that SAM creates for a canary function.
fn alias(function: &Function) -> Option<String> {
    function.metadata.canary.then(|| format!("{}Aliaslive", function.resource()))
}

fn arn(function: &Function) -> String {
    format!("!GetAtt {}.Arn", function.resource())
}

/// Returns a role with which a service of AWS calls functions.
fn caller(role: &str, service: &str, functions: &[String]) -> String {
    let mut text = format!(
        "{role}:
  Type: AWS::IAM::Role
  Properties:
    AssumeRolePolicyDocument:
      Version: \"2012-10-17\"
      Statement:
        - Effect: Allow
          Principal: {{Service: {service}.amazonaws.com}}
          Action: sts:AssumeRole
    Policies:
      - PolicyName: CallFunctions
        PolicyDocument:
          Version: \"2012-10-17\"
          Statement:
            - Sid: CallFunctions
              Effect: Allow
              Action: lambda:InvokeFunction
              Resource:
"
    );
    for function in functions {
        line(&mut text, 16, &format!("- {function}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::tests::{LIST, function_of};

    #[test]
    fn routes_have_roles_that_can_call_their_functions() {
        let of = |metadata: &str| function_of("list-things", metadata, LIST).unwrap();
        let mut functions: Vec<Function> = (0..FUNCTIONS_OF_A_ROLE).map(|_| of("")).collect();
        functions.push(of("canary = true"));
        functions.push(function_of("sweep", "schedule = \"rate(1 minute)\"", LIST).unwrap());
        let (paths, roles) = (paths(&functions), callers(&functions));
        let lines: Vec<&str> = paths.lines().map(str::trim).collect();
        for (role, target) in [(1, "ListThings.Arn"), (2, "ListThingsAliaslive")] {
            let role = format!("credentials: !GetAtt ApiRole{role}.Arn");
            let place = lines.iter().position(|line| *line == role).unwrap();
            let uri = format!("functions/${{{target}}}/invocations\"");
            assert!(lines[place + 1].ends_with(&uri), "{paths}");
        }
        let resources = |role| {
            let (_, text) = roles.split_once(&format!("{role}:\n")).unwrap();
            let (_, list) = text.split_once("Resource:\n").unwrap();
            let list = list.lines().map_while(|line| line.trim_start().strip_prefix("- "));
            list.collect::<Vec<_>>()
        };
        assert_eq!(resources("ApiRole1"), ["!GetAtt ListThings.Arn"; FUNCTIONS_OF_A_ROLE]);
        assert_eq!(resources("ApiRole2"), ["!Ref ListThingsAliaslive"]);
        assert_eq!(resources("SchedulerRole"), ["!GetAtt Sweep.Arn"]);
    }
}
