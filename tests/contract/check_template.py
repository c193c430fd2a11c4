"""Transforms template.yaml like CloudFormation, and checks the result.

`make test` runs this script and cfn-lint. cfn-lint checks CloudFormation's rules, this script the project's.
"""

import json
import logging
import os
import re
import sys
from collections import Counter
from pathlib import Path

from cfnlint.decode import cfn_yaml
from samtranslator.translator.managed_policy_translator import ManagedPolicyLoader
from samtranslator.translator.transform import transform

# The transform requires a region, but connects to none.
os.environ.setdefault("AWS_DEFAULT_REGION", "eu-central-1")

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import costs
from tables_to_import import TABLE, VAULT

TEMPLATE = ROOT / "template.yaml"
GUIDE = ROOT / "docs/operations.md"

# Managed policies that SAM adds to each function's role. The boundary limits them to the stack's
# resources.
MANAGED_POLICIES = {"AWSLambdaBasicExecutionRole", "AWSXrayWriteOnlyAccess"}
LOGS = "/waymark/${AWS::StackName}/"
# Log group of all functions.
FUNCTION_LOGS = "FunctionLogs"
NO_VALUE = {"Ref": "AWS::NoValue"}
# Maximum characters of a search in CloudWatch, maximum metrics of an alarm, maximum characters of its description,
# and maximum resources of a stack.
MAX_SEARCH_CHARACTERS = 1024
MAX_METRICS_OF_ALARM = 10
MAX_DESCRIPTION_CHARACTERS = 1024
MAX_URL_CHARACTERS = 256
MAX_RESOURCES = 500
# Maximum characters of a role's policies without blanks, and the longest ARN of an alias, except for its name.
MAX_POLICY_CHARACTERS = 10_240
ARN_OF_ALIAS = "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function::live"
# Targets of this project: the resources of the stack and of one operation, and the operations that fit in addition.
TARGET_RESOURCES = 260
RESOURCES_PER_OPERATION = 2
ROOM_FOR_OPERATIONS = 40
# The number of a deployment, and the operations with gradual traffic shifting.
RELEASE = "1795234560"
SHIFTED = {"EvaluateFeatureFlag", "EvaluateFeatureFlags", "GetFlagdConfiguration", "IngestErrorEvents"}
# Operations that a public flag key can call.
EVALUATING = SHIFTED - {"IngestErrorEvents"}
# Topics of alarms that need a person now, and of those that can wait.
TOPICS = ("PageTopic", "TicketTopic")
# The alarm that rolls a traffic shift back, without a notification.
OF_DEPLOYMENTS = "FailedRequestsAlarm"
# Metrics that jobs send at every run. If they stop, the job does not run.
HEARTBEATS = {"OldestPurgeJobAge", "ErasureDelay", "OldestUnpackedRowAge", "OldestWaitingNotificationAge"}
MAX_NAME_CHARACTERS = 64
# Responses, daily counters and source maps, which can be uploaded again, are not copied to another region.
NOT_COPIED = {"IdempotencyTable", "QuotasTable", "SourceMapsTable"}
# Maximum entries of an AWS Backup selection with wildcards.
MAX_WITH_WILDCARDS = 30
# Valid secrets as in the guide, and invalid ones.
SECRET = "0123456789abcdef" * 4
SECRETS = [SECRET, f"{SECRET},{SECRET[::-1]}", ""]
NO_SECRETS = ["x" * 31, f"{SECRET},", f",{SECRET}", f"{SECRET},x", f"{SECRET},{SECRET},{SECRET}", f"{SECRET} "]
# Policies that AWS manages: CachingDisabled, CachingOptimized, AllViewerExceptHostHeader and CORS-S3Origin.
NO_CACHING, OPTIMIZED_CACHING = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad", "658327ea-f89d-4fab-a63d-7e88639e58f6"
ALL_BUT_HOST, PREFLIGHTS = "b689b0a8-53d0-40ab-baf2-68738e2966ac", "88a5eaf4-2fd4-4709-b370-b4c650ea3fcf"
# The cached paths of the distribution, with the cache policy and the policy of origin requests.
CACHED = {
    "/v0/project/*/flagd.json": ({"Ref": "EdgeFlagsCache"}, PREFLIGHTS),
    "/console*": (OPTIMIZED_CACHING, None),
}
# The longest time that flagd.json stays at the edge after its key is revoked.
MAX_SECONDS_AT_EDGE = 5
MAX_DYNAMIC_REFERENCES = 60
FLAGD = ROOT / "functions/get-flagd-configuration/src/lib.rs"
# Statuses of errors that CloudFront caches by default.
CACHED_ERRORS = {400, 403, 404, 405, 414, 416, 500, 501, 502, 503, 504}
# The aim for a month of a stack without requests, at list prices.
MAX_DOLLARS_WHEN_IDLE = 5
# Encryption with the key of a parameter.
OWN_KEY = {"SSEEnabled": True, "SSEType": "KMS", "KMSMasterKeyId": {"Ref": "KmsKeyArn"}}


class NoManagedPolicies(ManagedPolicyLoader):
    """Skips the download of AWS's managed policies, because the template names none."""

    def __init__(self):
        super().__init__(None)

    def load(self):
        return {}


def check_code(template):
    """Code must be an archive of `make package`, which `make reproduce` compares. SAM would archive a folder
    with the times of its files."""
    for name, resource in template["Resources"].items():
        code = resource.get("Properties", {}).get("CodeUri")
        if code is not None and not re.fullmatch(r"target/package/[a-z-]+\.zip", code):
            yield f"{name}: {code} is not an archive of make package"


def transformed(parameters):
    template = cfn_yaml.load(str(TEMPLATE))
    for resource in template["Resources"].values():
        # `sam deploy` uploads the code first and inserts its address.
        if "CodeUri" in resource.get("Properties", {}):
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    return transform(template, parameters, NoManagedPolicies())


def allowed_resources(tables, functions):
    """Yields the resources that statements can name: tables and indexes, also restored ones, functions,
    and their aliases."""
    for name in functions:
        yield {"Fn::GetAtt": [name, "Arn"]}
        yield {"Ref": f"{name}Aliaslive"}
    for name, table in tables.items():
        yield {"Fn::GetAtt": [name, "Arn"]}
        yield {"Fn::Sub": f"${{{name}.Arn}}-restored-*"}
        indexes = table.get("GlobalSecondaryIndexes", []) + table.get("LocalSecondaryIndexes", [])
        for index in indexes:
            for tables in ("", "-restored-*"):
                yield {"Fn::Sub": f"${{{name}.Arn}}{tables}/index/{index['IndexName']}"}


def is_for_named_model(resource, statement):
    """`True` if a statement covers only the model of a parameter, or the models of the inference profile
    with that name."""
    conditions = statement.get("Condition", {}).get("StringEquals", {})
    through = conditions.get("bedrock:InferenceProfileArn", {})
    named = [part.get("Fn::Sub", "") for part in (resource, through) if isinstance(part, dict)]
    return any(":bedrock:" in arn and arn.endswith("/${BedrockModelId}") for arn in named)


def is_for_sender(resource, statement):
    """`True` if a statement covers only email from the address of a parameter."""
    conditions = statement.get("Condition", {}).get("StringEquals", {})
    arn = resource.get("Fn::Sub", "") if isinstance(resource, dict) else ""
    is_identity = arn.endswith((":identity/*", ":configuration-set/*")) and ":ses:" in arn
    return is_identity and conditions.get("ses:FromAddress") == {"Ref": "MailFrom"}


# The operators that AWS documents for condition keys with several values.
ONLY_OWN_EVENTS = {
    "ForAllValues:StringEquals": {"events:source": "waymark"},
    "Null": {"events:source": "false"},
}


def is_for_event_bus(resource, statement):
    """`True` if a statement covers only own events on the event bus of a parameter."""
    arn = resource.get("Fn::Sub", "") if isinstance(resource, dict) else ""
    if statement.get("Condition") != ONLY_OWN_EVENTS:
        return False
    return ":events:" in arn and arn.endswith(":event-bus/${EventBusName}")


# Permissions of roles in addition to tables: the condition under which they apply, the check of the
# statement, and the action.
OUTSIDE = {
    "HasBedrockModel": (is_for_named_model, "bedrock:InvokeModel"),
    "HasMailFrom": (is_for_sender, "ses:SendEmail"),
    "HasEventBus": (is_for_event_bus, "events:PutEvents"),
}


def policies_of(role):
    """Yields each policy with the condition under which the role has it, or `None`."""
    for policy in role.get("Policies", []):
        if "Fn::If" in policy:
            condition, policy, otherwise = policy["Fn::If"]
            if otherwise != NO_VALUE:
                raise ValueError(f"a policy has an alternative: {otherwise}")
            yield policy, condition
        else:
            yield policy, None


def properties_by_type(resources):
    by_type = {}
    for name, resource in resources.items():
        by_type.setdefault(resource["Type"], {})[name] = resource["Properties"]
    return by_type


def many(value):
    """Returns a list, or a list with the single item."""
    return value if isinstance(value, list) else [value]


def check_throughput_limits(name, table):
    """A table and its global indexes must have the limits of the parameters. Index queries do not count
    toward the table's limit."""
    kind = "Errors" if name == "ErrorsTable" else "Table"
    limits = {
        f"Max{which}RequestUnits": {
            "Fn::If": [f"Has{kind}Max{which}Units", {"Ref": f"{kind}Max{which}Units"}, NO_VALUE]
        }
        for which in ("Write", "Read")
    }
    limit = {"Fn::If": [f"Has{kind}MaxUnits", limits, NO_VALUE]}
    limited = {name: table}
    for index in table.get("GlobalSecondaryIndexes", []):
        limited[f"{name}, {index['IndexName']}"] = index
    for what, it in limited.items():
        if it.get("OnDemandThroughput") != limit:
            yield f"{what}: {kind}MaxWriteUnits and {kind}MaxReadUnits must be its limits"


def check_backups(resources):
    """All tables except those with daily data must be copied, and the guide's recovery steps must list them."""
    by_type = properties_by_type(resources)
    tables = {
        name: table
        for name, table in by_type["AWS::DynamoDB::Table"].items()
        if name not in NOT_COPIED
    }
    (selection,) = by_type["AWS::Backup::BackupSelection"].values()
    copied = selection["BackupSelection"]["Resources"]
    wanted = [{"Fn::GetAtt": [name, "Arn"]} for name in tables]
    # Also the tables restored from them.
    wanted += [{"Fn::Sub": f"${{{name}.Arn}}-restored-*"} for name in tables]
    if sorted(map(json.dumps, copied)) != sorted(map(json.dumps, wanted)):
        yield f"BackupSelection: it must name {sorted(tables)} and the tables restored from them"
    if len(copied) > MAX_WITH_WILDCARDS:
        yield f"BackupSelection: AWS Backup accepts at most {MAX_WITH_WILDCARDS} names with wildcards"
    guide = GUIDE.read_text(encoding="utf-8")
    expiring = {name: it for name, it in tables.items() if "TimeToLiveSpecification" in it}
    for variable, wanted in (("tables", tables), ("expiring", expiring)):
        names = {table_name(table) for table in wanted.values()}
        listed = re.findall(f'^{variable}="([^"]*)"', guide, re.MULTILINE)
        if [set(names_of.split()) for names_of in listed] != [names]:
            yield f'docs/operations.md: there must be one {variable}="{" ".join(sorted(names))}"'


def table_name(table):
    """Returns the name of a table without the stack's prefix."""
    return table["TableName"]["Fn::Sub"].removeprefix("${AWS::StackName}-")


def check_retained_resources(template):
    """Resources that outlive the stack must be importable into the next one. A failed creation must not leave
    them, because their names would conflict with the next attempt."""
    for name, resource in template["Resources"].items():
        policy = resource.get("DeletionPolicy", "Delete")
        if policy == "Retain":
            yield f"{name}: a failed creation would leave it; use RetainExceptOnCreate"
        if policy != "Delete" and resource["Type"] not in (TABLE, VAULT):
            yield f"{name}: packaging/tables_to_import.py cannot import {resource['Type']}"


def check_resources(resources):
    by_type = properties_by_type(resources)

    for name, table in by_type["AWS::DynamoDB::Table"].items():
        if resources[name].get("DeletionPolicy") != "RetainExceptOnCreate":
            yield f"{name}: it must outlive the stack, but not a failed creation"
        required = {
            "BillingMode": "PAY_PER_REQUEST",
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            "SSESpecification": {"Fn::If": ["HasKmsKey", OWN_KEY, {"SSEEnabled": False}]},
            "DeletionProtectionEnabled": {"Ref": "DeletionProtection"},
        }
        for key, value in required.items():
            if table.get(key) != value:
                yield f"{name}: {key} must be {value}"
        yield from check_throughput_limits(name, table)

    functions = by_type["AWS::Lambda::Function"]
    roles = by_type["AWS::IAM::Role"]
    for name, function in functions.items():
        if function.get("LoggingConfig", {}).get("LogGroup") != {"Ref": FUNCTION_LOGS}:
            yield f"{name}: its log group must be {FUNCTION_LOGS}"
        if function["Role"]["Fn::GetAtt"][0] != f"{name}Role" or f"{name}Role" not in roles:
            yield f"{name}: it must have its own role"

    logs = by_type["AWS::Logs::LogGroup"][FUNCTION_LOGS]
    if "RetentionInDays" not in logs or LOGS not in json.dumps(logs["LogGroupName"]):
        yield f"{FUNCTION_LOGS}: it must have a retention, and be below {LOGS}"
    known = list(allowed_resources(by_type["AWS::DynamoDB::Table"], functions))
    for name, role in roles.items():
        for policy, condition in policies_of(role):
            for statement in policy["PolicyDocument"]["Statement"]:
                for action in many(statement["Action"]):
                    if "*" in action:
                        yield f"{name}: {action} is wider than one action"
                for resource in many(statement["Resource"]):
                    if condition is not None:
                        is_theirs, action = OUTSIDE[condition]
                        if not is_theirs(resource, statement) or statement["Action"] != action:
                            yield f"{name}: {resource} does not fit {condition}"
                    elif resource not in known:
                        yield f"{name}: {resource} is not in this template"


def integrations(resources):
    """Yields each route of the API with its integration."""
    for path, methods in resources["Api"]["Properties"]["Body"]["paths"].items():
        for method, operation in methods.items():
            if integration := operation.get("x-amazon-apigateway-integration"):
                yield f"{method.upper()} {path}", integration


def routes(resources):
    """Yields each route of the API with its function."""
    for route, integration in integrations(resources):
        uri = json.dumps(integration.get("uri"))
        function = re.search(r"functions/\$\{(\w+?)(Aliaslive|\.Arn)\}", uri)
        if function:
            yield route, function[1]
            if (function[2] == "Aliaslive") != (function[1] in SHIFTED):
                raise ValueError(f"{route}: only functions with traffic shifting have an alias")
        elif "functions/" in uri:
            raise ValueError(f"{route} has an unknown function: {uri}")


def check_callers(resources):
    """The API and the scheduler must call functions with roles that name them, and only these."""
    roles = properties_by_type(resources)["AWS::IAM::Role"]
    needed = {}
    for _, integration in integrations(resources):
        (target,) = re.findall(r"functions/\$\{([\w.]+)\}", integration["uri"]["Fn::Sub"])
        name, _, attribute = target.partition(".")
        target = {"Fn::GetAtt": [name, attribute]} if attribute else {"Ref": name}
        needed.setdefault(("apigateway", integration["credentials"]["Fn::GetAtt"][0]), []).append(target)
    for schedule in properties_by_type(resources)["AWS::Scheduler::Schedule"].values():
        target = schedule["Target"]
        needed.setdefault(("scheduler", target["RoleArn"]["Fn::GetAtt"][0]), []).append(target["Arn"])
    for (service, name), targets in needed.items():
        (trusted,) = roles[name]["AssumeRolePolicyDocument"]["Statement"]
        if trusted["Principal"] != {"Service": f"{service}.amazonaws.com"}:
            yield f"{name}: {service} cannot use it"
        (policy,) = roles[name]["Policies"]
        (statement,) = policy["PolicyDocument"]["Statement"]
        if statement["Action"] != "lambda:InvokeFunction":
            yield f"{name}: it allows {statement['Action']}"
        allowed = set(map(json.dumps, statement["Resource"]))
        for target in sorted(allowed ^ set(map(json.dumps, targets))):
            yield f"{name}: it must allow exactly the functions that {service} calls with it, see {target}"
        longest = len(json.dumps(["x" * (len(ARN_OF_ALIAS) + MAX_NAME_CHARACTERS)] * len(allowed)))
        if longest + 300 > MAX_POLICY_CHARACTERS:
            yield f"{name}: its policy can become too long; lower FUNCTIONS_OF_A_ROLE in xtask/src/template.rs"


def check_bulkheads(resources):
    """Functions with bursts or long invocations must leave capacity for others: parameters limit their
    concurrency and the rate of each of their routes."""
    functions = properties_by_type(resources)["AWS::Lambda::Function"]
    bulkheads = {}
    for name, function in functions.items():
        if function.get("MemorySize") == {"Ref": "PackingMemorySize"}:
            bulkheads[name] = ("CountingConcurrency", "QueryThrottlingRateLimit")
    bulkheads["IngestErrorEvents"] = ("IngestionConcurrency", "IngestThrottlingRateLimit")

    for name in EVALUATING:
        reserved = {"Fn::If": ["HasEvaluationConcurrency", {"Ref": "EvaluationConcurrency"}, NO_VALUE]}
        if functions[name].get("ReservedConcurrentExecutions") != reserved:
            yield f"{name}: EvaluationConcurrency must limit its concurrent executions"

    (stage,) = properties_by_type(resources)["AWS::ApiGatewayV2::Stage"].values()
    settings = dict(stage["RouteSettings"])
    with_routes = set()
    for route, function in routes(resources):
        setting = settings.pop(route, None)
        if function not in bulkheads:
            if setting is not None:
                yield f"Api: {route} has its own rate, but no bulkhead"
            continue
        with_routes.add(function)
        concurrency, rate = bulkheads[function]
        limits = {"ThrottlingRateLimit": {"Ref": rate}, "ThrottlingBurstLimit": {"Ref": rate}}
        if setting != limits:
            yield f"Api: the rate of {route} must be {rate}"
        reserved = {"Fn::If": [f"Has{concurrency}", {"Ref": concurrency}, NO_VALUE]}
        if functions[function].get("ReservedConcurrentExecutions") != reserved:
            yield f"{function}: {concurrency} must limit its concurrency"
    for route in settings:
        yield f"Api: {route} has a rate, but is not a route"
    if len(with_routes) < 5:
        yield f"Api: only {sorted(with_routes)} have bulkheads"


def check_releases(resources):
    """Only functions with traffic shifting have versions. Each deployment must publish one, and the alarm of
    failed requests must roll the shift back."""
    by_type = properties_by_type(resources)
    groups = by_type["AWS::CodeDeploy::DeploymentGroup"]
    wanted = {
        "AWS::Lambda::Version": {f"{function}Version{RELEASE}" for function in SHIFTED},
        "AWS::Lambda::Alias": {f"{function}Aliaslive" for function in SHIFTED},
        "AWS::CodeDeploy::DeploymentGroup": {f"{function}DeploymentGroup" for function in SHIFTED},
    }
    for kind, names in wanted.items():
        for name in sorted(names ^ set(by_type[kind])):
            yield f"{name}: exactly the functions with traffic shifting have a {kind}"
    for name, group in groups.items():
        condition, no_alarms, watched = group["AlarmConfiguration"]["Fn::If"]
        if watched["Alarms"] != [{"Name": by_type["AWS::CloudWatch::Alarm"][OF_DEPLOYMENTS]["AlarmName"]}]:
            yield f"{name}: {OF_DEPLOYMENTS} must roll traffic back, not {watched['Alarms']}"
        if condition != "ShiftsAtOnce" or no_alarms:
            yield f"{name}: an active alarm would block a rollback"
    environment = [it["Environment"]["Variables"] for it in by_type["AWS::Lambda::Function"].values()]
    if any(variables.get("WAYMARK_RELEASE") != {"Ref": "Release"} for variables in environment):
        yield "a function can be unchanged after a deployment, which Lambda does not publish"


def resources_of(function, resources):
    """Returns the resources that are of one function: itself, and those that name no other resource in their id."""
    longer = [name for name in resources if name != function and name.startswith(function) and
              resources[name]["Type"] == "AWS::Lambda::Function"]
    return [
        name
        for name in resources
        if name.startswith(function) and not any(name.startswith(other) for other in longer)
    ]


def references(value):
    """Yields the names in the references of a value."""
    if isinstance(value, list):
        for it in value:
            yield from references(it)
    elif isinstance(value, dict):
        for key, it in value.items():
            if key in ("Ref", "DependsOn"):
                yield from many(it)
            elif key == "Fn::GetAtt":
                yield many(it)[0].split(".")[0]
            else:
                if key == "Fn::Sub":
                    yield from re.findall(r"\$\{(\w+)[.\w]*\}", many(it)[0])
                yield from references(it)


def check_cycles(resources):
    """CloudFormation rejects circular references, also in update policies. cfn-lint ignores those of SAM resources."""
    left = {name: set(references(it)) & set(resources) for name, it in resources.items()}
    while free := [name for name, named in left.items() if not named & set(left)]:
        for name in free:
            del left[name]
    if left:
        yield f"circular references between {sorted(left)}"


def check_room(resources):
    """The stack must stay small, and have room for further operations."""
    operations = Counter(function for _, function in routes(resources) if function not in SHIFTED)
    for function, count in operations.items():
        own = resources_of(function, resources)
        if len(own) > RESOURCES_PER_OPERATION * count:
            yield f"{function}: {len(own)} resources for {count} operations: {own}"
    if len(resources) > TARGET_RESOURCES:
        yield (f"{len(resources)} resources instead of {TARGET_RESOURCES}. If each has a purpose, set TARGET_RESOURCES "
               "in tests/contract/check_template.py")
    if len(resources) + ROOM_FOR_OPERATIONS * RESOURCES_PER_OPERATION > MAX_RESOURCES:
        yield f"{len(resources)} resources leave no room for {ROOM_FOR_OPERATIONS} operations"


def check_names(resources):
    """Two stacks in one account must not use the same physical name."""
    for name, resource in resources.items():
        if resource["Type"] in ("AWS::ApiGatewayV2::Stage", "AWS::Lambda::Alias"):
            continue  # Their names need to be unique only in an API or function.
        kind = resource["Type"].rsplit("::", 1)[1]
        for field in ("Name", "FilterName", f"{kind}Name"):
            given = resource["Properties"].get(field)
            if given is not None and "AWS::StackName" not in json.dumps(given):
                yield f"{name}: its {field} must contain the stack's name"


def check_cors(resources):
    """The CORS configuration must survive the transform."""
    cors = resources["Api"]["Properties"]["Body"].get("x-amazon-apigateway-cors", {})
    condition, cors, otherwise = cors.get("Fn::If", [None, cors, NO_VALUE])
    if condition != "HasCors" or otherwise != NO_VALUE:
        yield f"Api: CORS must depend only on HasCors, not {condition}, else {otherwise}"
    for field in ("allowOrigins", "allowMethods", "allowHeaders", "exposeHeaders", "maxAge"):
        if not cors.get(field):
            yield f"Api: the transform drops {field}"


def check_boundary(resources):
    """The boundary must allow exactly what the roles need."""
    by_type = properties_by_type(resources)
    boundary = by_type["AWS::IAM::ManagedPolicy"]["FunctionBoundary"]["PolicyDocument"]
    allowed = {}
    for statement in boundary["Statement"]:
        condition, statement, _ = statement.get("Fn::If", [None, statement, NO_VALUE])
        for action in many(statement["Action"]):
            allowed[action] = many(statement["Resource"])
        if "*" in many(statement["Resource"]) and statement["Sid"] != "SendTraces":
            yield f"FunctionBoundary: {statement['Sid']} covers all resources"
        if statement["Sid"] == "WriteOwnLogs":
            if not statement["Resource"]["Fn::Sub"].endswith(f":log-group:{LOGS}*"):
                yield "FunctionBoundary: it must allow only the stack's own log groups"
        if statement["Sid"] == "UseTableKey":
            through = statement["Condition"]["StringEquals"]["kms:ViaService"]["Fn::Sub"]
            if (condition, statement["Resource"]) != ("HasKmsKey", {"Ref": "KmsKeyArn"}) or "dynamodb." not in through:
                yield "FunctionBoundary: only DynamoDB can use the key of KmsKeyArn"
            continue
        outside = {action: condition for condition, (_, action) in OUTSIDE.items()}
        if outside.get(str(statement["Action"])) != condition:
            yield f"FunctionBoundary: {statement['Sid']} lacks its condition"

    used = set()
    for function in by_type["AWS::Lambda::Function"]:
        role = by_type["AWS::IAM::Role"][f"{function}Role"]
        if role.get("PermissionsBoundary") != {"Ref": "FunctionBoundary"}:
            yield f"{function}: its role must have the boundary"
        managed = {str(arn).rsplit("/", 1)[1] for arn in role.get("ManagedPolicyArns", [])}
        if not managed <= MANAGED_POLICIES:
            yield f"{function}: its role has {sorted(managed - MANAGED_POLICIES)} from AWS"
        for policy, condition in policies_of(role):
            for statement in policy["PolicyDocument"]["Statement"]:
                used.update(many(statement["Action"]))
                if condition is not None:
                    continue  # Not for tables; `check_resources` checks it.
                for resource in many(statement["Resource"]):
                    # Restored tables are allowed with their indexes.
                    wider = lambda found: found[1] or "/index/*"
                    index = re.sub("(-restored-[*])?/index/.*", wider, str(resource.get("Fn::Sub")))
                    for action in many(statement["Action"]):
                        if not {str(resource), str({"Fn::Sub": index})} & set(
                            map(str, allowed.get(action, []))
                        ):
                            yield f"{function}: the boundary does not allow {action} on {resource}"
    of_functions = {action for action in allowed if not action.startswith(("logs:", "xray:", "kms:"))}
    for action in sorted(of_functions - used):
        yield f"FunctionBoundary: no function needs {action}"


def check_restored_tables(template):
    """The parameter must accept all tables of the stack, and no others."""
    pattern = template["Parameters"]["RestoredTables"]["AllowedPattern"]
    of_stack = {
        table_name(table["Properties"])
        for table in template["Resources"].values()
        if table["Type"] == "AWS::DynamoDB::Table"
    }
    for names in re.findall(r"\(([a-z|-]+)\):", pattern):
        if set(names.split("|")) != of_stack:
            yield f"RestoredTables: its pattern has {names}, not {'|'.join(sorted(of_stack))}"
    for table in of_stack:
        one = f"{table}:restored-20261121T041600Z"
        if not re.fullmatch(pattern, one) or not re.fullmatch(pattern, f"{one},{one}"):
            yield f"RestoredTables: its pattern rejects {one}"


def check_origin_secret(template):
    """The parameter must accept a new secret next to the old one, and reject weak secrets."""
    parameter = template["Parameters"]["OriginSecret"]
    is_accepted = lambda value: (
        len(value) <= parameter["MaxLength"] and re.fullmatch(parameter["AllowedPattern"], value)
    )
    for value in SECRETS:
        if not is_accepted(value):
            yield f"OriginSecret: it rejects {value!r}"
    for value in NO_SECRETS:
        if is_accepted(value):
            yield f"OriginSecret: it accepts {value!r}"


def check_costs(_resources):
    """An idle stack must be cheap, and the guide must state the costs that the template causes."""
    template = costs.ROOT.joinpath("template.yaml").read_text(encoding="utf-8")
    idle = sum(costs.month(costs.LOADS[0], template).values())
    if idle >= MAX_DOLLARS_WHEN_IDLE:
        yield f"an idle stack costs {idle:.2f} dollars a month"
    if costs.tables(template) not in GUIDE.read_text(encoding="utf-8"):
        yield "docs/operations.md, Costs: the tables are outdated; run make costs"


def check_schedules(resources):
    """A job must run once per schedule, and always log its metrics."""
    by_type = properties_by_type(resources)
    invocations = by_type.get("AWS::Lambda::EventInvokeConfig", {}).values()
    without_retries = [
        config["FunctionName"] for config in invocations if config["MaximumRetryAttempts"] == 0
    ]
    for name, schedule in by_type["AWS::Scheduler::Schedule"].items():
        function = schedule["Target"]["Arn"]["Fn::GetAtt"][0]
        if {"Ref": function} not in without_retries:
            yield f"{name}: Lambda would retry {function}"
        logging = by_type["AWS::Lambda::Function"][function]["LoggingConfig"]
        if logging["ApplicationLogLevel"] != "INFO":
            yield f"{function}: alarms need its metrics, which are logged at INFO"


def searches(widgets):
    """Yields each search of the dashboard with the title of its widget."""
    for widget in widgets:
        for metric in widget["properties"].get("metrics", []):
            expression = metric[-1].get("expression", "") if isinstance(metric[-1], dict) else ""
            if expression.startswith("SEARCH("):
                yield widget["properties"]["title"], expression


def check_dashboard(resources):
    """Widgets must fit the dashboard, and searches must cover exactly the stack."""
    dashboard = resources["StackDashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    # Values that CloudFormation inserts have no quotes and backslashes.
    widgets = json.loads(re.sub(r"\$\{!?([^}]*)\}", r"<\1>", dashboard))["widgets"]
    for one in widgets:
        if one["x"] + one["width"] > 24:
            yield f"Dashboard: {one['properties']['title']} exceeds the width"

    by_type = properties_by_type(resources)
    named = {}
    for title, expression in searches(widgets):
        longest = re.sub("<[^>]*>", "x" * MAX_NAME_CHARACTERS, expression)
        if len(longest) > MAX_SEARCH_CHARACTERS:
            yield f"Dashboard: a search of {title} can become too long"
        if re.search('[^"]<|>[^"]', expression):
            yield f"Dashboard: a search of {title} matches more than its names"
        if 'stack="<AWS::StackName>"' in expression:
            continue  # It matches everything in the stack.
        kind = re.search(r"(FunctionName|TableName)=", expression)[1]
        named.setdefault((title, kind), set()).update(re.findall('"<([^>]*)>"', expression))
    kinds = {"FunctionName": "AWS::Lambda::Function", "TableName": "AWS::DynamoDB::Table"}
    for (title, kind), names in named.items():
        for missing in sorted(set(by_type[kinds[kind]]) - names):
            yield f"Dashboard: {title} lacks {missing}"


def anchor(heading):
    """Returns the link target of a heading in the guide."""
    return heading.lower().replace(" ", "-")


def check_alarms(resources):
    """Every alarm must have a notification, a place on the dashboard, and a section in the guide, which its
    description names first."""
    dashboard = resources["StackDashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    guide = GUIDE.read_text(encoding="utf-8")
    heartbeats = set()
    for name, alarm in properties_by_type(resources)["AWS::CloudWatch::Alarm"].items():
        section = alarm["AlarmName"]["Fn::Sub"].partition(": ")[2]
        description = alarm["AlarmDescription"]["Fn::Sub"]
        if not description.startswith(f"{section}: ${{RunbookUrl}}#{anchor(section)}\n"):
            yield f"{name}: its description must start with its heading in the guide, and the URL"
        if len(description) + MAX_URL_CHARACTERS > MAX_DESCRIPTION_CHARACTERS:
            yield f"{name}: its description can become too long"
        if f"### {section}\n" not in guide:
            yield f"{name}: docs/operations.md has no section {section}"
        if f"${{{name}.Arn}}" not in dashboard:
            yield f"{name}: the dashboard lacks it"
        if sum("MetricStat" in it for it in alarm.get("Metrics", [])) > MAX_METRICS_OF_ALARM:
            yield f"{name}: an alarm has at most {MAX_METRICS_OF_ALARM} metrics"
        yield from check_notifications(name, alarm)
        if alarm.get("MetricName") in HEARTBEATS:
            heartbeats.add(alarm["MetricName"])
            if f'"{alarm["MetricName"]}"' not in dashboard:
                yield f"{name}: the dashboard has no chart of its metric"
    for metric in sorted(HEARTBEATS - heartbeats):
        yield f"{metric}: no alarm reports that its job does not run"


def check_notifications(name, alarm):
    """An alarm must report to one topic when it starts and ends. A job's alarm must also report that its metric
    stops, but not before the first value: a new alarm is in the state INSUFFICIENT_DATA."""
    topics = [[{"Ref": topic}] for topic in TOPICS]
    actions = alarm.get("AlarmActions")
    if name == OF_DEPLOYMENTS:
        topics = [None]
    if actions not in topics or alarm.get("OKActions") != actions:
        yield f"{name}: its AlarmActions and OKActions must be one of {TOPICS}"
    is_heartbeat = alarm.get("MetricName") in HEARTBEATS
    if alarm["TreatMissingData"] != ("missing" if is_heartbeat else "notBreaching"):
        yield f"{name}: without data it must not be active"
    if alarm.get("InsufficientDataActions") != (actions if is_heartbeat else None):
        yield f"{name}: exactly the alarms of jobs report that the metric stops"


def check_edge(resources):
    """The distribution must cache only flagd.json, by credential, and the console's files. All else must reach the
    API with everything that the client sent, except the host."""
    distribution = resources["Distribution"]["Properties"]["DistributionConfig"]
    behavior = distribution["DefaultCacheBehavior"]
    if (behavior["CachePolicyId"], behavior["OriginRequestPolicyId"]) != (NO_CACHING, ALL_BUT_HOST):
        yield "Distribution: by default it must cache nothing, and forward all but the host"
    if {it["EventType"] for it in behavior["FunctionAssociations"]} != {"viewer-request"}:
        yield "Distribution: EdgeFunction must report the address of each client"
    cached = {
        it["PathPattern"]: (it["CachePolicyId"], it.get("OriginRequestPolicyId"))
        for it in distribution["CacheBehaviors"]
    }
    if cached != CACHED:
        yield f"Distribution: it must cache {CACHED}, not {cached}"
    for one in [behavior, *distribution["CacheBehaviors"]]:
        if one["ViewerProtocolPolicy"] == "allow-all":
            yield "Distribution: credentials must be encrypted"
    errors = {it["ErrorCode"]: it["ErrorCachingMinTTL"] for it in distribution["CustomErrorResponses"]}
    if errors != dict.fromkeys(CACHED_ERRORS, 0):
        yield "Distribution: it must cache no error, which would reach other callers"
    policy = resources["EdgeFlagsCache"]["Properties"]["CachePolicyConfig"]
    key = policy["ParametersInCacheKeyAndForwardedToOrigin"]
    if not {"authorization", "x-api-key", "origin"} <= set(key["HeadersConfig"]["Headers"]):
        yield "EdgeFlagsCache: its key must have the credentials and the origin"
    if key["CookiesConfig"] != {"CookieBehavior": "none"} or key["QueryStringsConfig"] != {"QueryStringBehavior": "all"}:
        yield "EdgeFlagsCache: its key must have the query and no cookies"
    # With another minimum or default, CloudFront would also cache responses that forbid it.
    if (policy["MinTTL"], policy["DefaultTTL"]) != (0, 0) or policy["MaxTTL"] > MAX_SECONDS_AT_EDGE:
        yield "EdgeFlagsCache: get-flagd-configuration must decide what is cached"
    seconds = re.search(r'"max-age=(\d+), stale-while-revalidate=(\d+)"', FLAGD.read_text(encoding="utf-8"))
    if sum(map(int, seconds.groups())) > MAX_SECONDS_AT_EDGE:
        yield f"get-flagd-configuration: revoked keys must not work longer than {MAX_SECONDS_AT_EDGE} seconds at the edge"
    variables = [it["Environment"]["Variables"] for it in properties_by_type(resources)["AWS::Lambda::Function"].values()]
    (sent,) = distribution["Origins"][0]["OriginCustomHeaders"]
    secret = ["HasEdge", sent["HeaderValue"], {"Ref": "OriginSecret"}]
    if any(it["WAYMARK_ORIGIN_SECRET"]["Fn::If"] != secret or it["WAYMARK_EDGE"] != {"Ref": "Edge"} for it in variables):
        yield "Distribution: it must send the secret that all functions expect"
    for name, resource in resources.items():
        of_edge = name.startswith("Edge") or name == "Distribution"
        if of_edge and resource.get("Condition") not in ("HasEdge", "HasEdgeRateLimit"):
            yield f"{name}: it must exist only with Edge"


def check_dynamic_references(resources):
    """CloudFormation allows 60 dynamic references in a template, each function's environment included."""
    count = json.dumps(resources).count("{{resolve:")
    if count > MAX_DYNAMIC_REFERENCES:
        yield f"{count} dynamic references; CloudFormation allows {MAX_DYNAMIC_REFERENCES}"


def check_queries(resources):
    """Metrics Insights documents `AND` as the only operator between conditions of a query."""
    for name, alarm in properties_by_type(resources)["AWS::CloudWatch::Alarm"].items():
        for metric in alarm.get("Metrics", []):
            expression = json.dumps(metric.get("Expression", ""))
            if "SELECT" in expression and re.search(r"\b(OR|NOT|IN|LIKE)\b", expression):
                yield f"{name}: Metrics Insights documents only `WHERE key OPERATOR value [AND ...]`"
            if "GROUP BY" in expression and "ORDER BY" not in expression:
                yield f"{name}: an alarm on several time series needs ORDER BY"


def main():
    # Disables the translator's warnings about features that AWS enables itself.
    logging.disable(logging.WARNING)
    template = transformed({"Release": RELEASE})
    resources = template["Resources"]
    checks = (
        check_resources,
        check_callers,
        check_bulkheads,
        check_names,
        check_backups,
        check_costs,
        check_cors,
        check_boundary,
        check_schedules,
        check_dashboard,
        check_edge,
        check_alarms,
        check_releases,
        check_cycles,
        check_room,
        check_dynamic_references,
        check_queries,
    )
    found = [fault for check in checks for fault in check(resources)]
    found += check_restored_tables(template)
    found += check_origin_secret(template)
    # The unprocessed template: SAM adds versions, which are deleted with their functions.
    found += check_code(cfn_yaml.load(str(TEMPLATE)))
    found += check_retained_resources(cfn_yaml.load(str(TEMPLATE)))
    for fault in found:
        print(f"template.yaml: {fault}", file=sys.stderr)
    if found:
        sys.exit(1)
    room = (MAX_RESOURCES - len(resources)) // RESOURCES_PER_OPERATION
    print(f"template.yaml transforms into {len(resources)} resources, with room for {room} operations")


if __name__ == "__main__":
    main()
