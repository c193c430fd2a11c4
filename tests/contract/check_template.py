"""Transforms template.yaml as CloudFormation would, and checks what it becomes.

Run by `make test`, with cfn-lint beside it: cfn-lint knows the rules of CloudFormation, this script
those of the house.
"""

import json
import os
import re
import sys
from pathlib import Path

from cfnlint.decode import cfn_yaml
from samtranslator.translator.managed_policy_translator import ManagedPolicyLoader
from samtranslator.translator.transform import transform

# The transform asks for a region and contacts none.
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "template.yaml"
GUIDE = ROOT / "docs" / "operations.md"


class NoManagedPolicies(ManagedPolicyLoader):
    """The template names no managed policy, so AWS need not be asked for their list."""

    def __init__(self):
        super().__init__(None)

    def load(self):
        return {}


def transformed():
    template = cfn_yaml.load(str(TEMPLATE))
    for resource in template["Resources"].values():
        # `sam deploy` uploads the code first and puts the address of the upload here.
        if "CodeUri" in resource.get("Properties", {}):
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    return transform(template, {}, NoManagedPolicies())


def resources_of_statements(tables, functions):
    """What a statement may be about: a table, an index of one, or the function of a schedule."""
    for name in functions:
        yield {"Fn::GetAtt": [name, "Arn"]}
    for name, table in tables.items():
        yield {"Fn::GetAtt": [name, "Arn"]}
        indexes = table.get("GlobalSecondaryIndexes", []) + table.get("LocalSecondaryIndexes", [])
        for index in indexes:
            yield {"Fn::Sub": f"${{{name}.Arn}}/index/{index['IndexName']}"}


def is_of_the_named_model(resource, statement):
    """Whether a statement is about the model that a parameter names, or about what only the
    inference profile of that name leads to."""
    conditions = statement.get("Condition", {}).get("StringEquals", {})
    through = conditions.get("bedrock:InferenceProfileArn", {})
    named = [part.get("Fn::Sub", "") for part in (resource, through) if isinstance(part, dict)]
    return any(":bedrock:" in arn and arn.endswith("/${BedrockModelId}") for arn in named)


def policies_of(role):
    """Each policy with the condition under which the role has it, or none."""
    for policy in role.get("Policies", []):
        if "Fn::If" in policy:
            condition, policy, otherwise = policy["Fn::If"]
            if otherwise != {"Ref": "AWS::NoValue"}:
                raise ValueError(f"a policy has an alternative: {otherwise}")
            yield policy, condition
        else:
            yield policy, None


def faults(resources):
    by_type = {}
    for name, resource in resources.items():
        by_type.setdefault(resource["Type"], {})[name] = resource["Properties"]

    for name, table in by_type["AWS::DynamoDB::Table"].items():
        required = {
            "BillingMode": "PAY_PER_REQUEST",
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            "SSESpecification": {"SSEEnabled": True},
            "DeletionProtectionEnabled": {"Ref": "DeletionProtection"},
        }
        for key, value in required.items():
            if table.get(key) != value:
                yield f"{name}: {key} must be {value}"

    functions = by_type["AWS::Lambda::Function"]
    roles = by_type["AWS::IAM::Role"]
    for name, function in functions.items():
        log_group = function.get("LoggingConfig", {}).get("LogGroup", {}).get("Ref")
        if "RetentionInDays" not in by_type["AWS::Logs::LogGroup"].get(log_group, {}):
            yield f"{name}: its log group must be declared with a retention"
        if function["Role"]["Fn::GetAtt"][0] != f"{name}Role" or f"{name}Role" not in roles:
            yield f"{name}: it must have a role of its own"

    known = list(resources_of_statements(by_type["AWS::DynamoDB::Table"], functions))
    for name, role in roles.items():
        for policy, condition in policies_of(role):
            for statement in policy["PolicyDocument"]["Statement"]:
                actions = statement["Action"]
                for action in [actions] if isinstance(actions, str) else actions:
                    if "*" in action:
                        yield f"{name}: {action} is wider than one action"
                resources_named = statement["Resource"]
                named = resources_named if isinstance(resources_named, list) else [resources_named]
                for resource in named:
                    if condition == "HasBedrockModel":
                        if not is_of_the_named_model(resource, statement):
                            yield f"{name}: {resource} is not the model that BedrockModelId names"
                    elif resource not in known:
                        yield f"{name}: {resource} is not of this template"


def faults_of_alarms(resources):
    """Every alarm tells somebody, is on the dashboard, and has its place in the guide."""
    dashboard = resources["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    # What CloudFormation puts in has no quotes and no backslashes.
    widgets = json.loads(re.sub(r"\$\{[^}]*\}", "x", dashboard))["widgets"]
    for one in widgets:
        if one["x"] + one["width"] > 24:
            yield f"Dashboard: {one['properties']['title']} is beyond its edge"
    guide = GUIDE.read_text(encoding="utf-8")
    for name, resource in resources.items():
        if resource["Type"] != "AWS::CloudWatch::Alarm":
            continue
        if f"${{{name}.Arn}}" not in dashboard:
            yield f"{name}: it is not on the dashboard"
        if "AlarmActions" not in resource["Properties"]:
            yield f"{name}: it tells nobody"
        if f"### {name}\n" not in guide:
            yield f"{name}: docs/operations.md has no section of its name"


def main():
    template = transformed()
    resources = template["Resources"]
    found = [*faults(resources), *faults_of_alarms(resources)]
    for fault in found:
        print(f"template.yaml: {fault}", file=sys.stderr)
    if found:
        sys.exit(1)
    print(f"template.yaml transforms into {len(template['Resources'])} resources")


if __name__ == "__main__":
    main()
