"""Transforms template.yaml as CloudFormation would, and checks what it becomes.

Run by `make test`, with cfn-lint beside it: cfn-lint knows the rules of CloudFormation, this script
those of the house.
"""

import json
import logging
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
sys.path.insert(0, str(ROOT / "packaging"))
from tables_to_import import TABLE, VAULT

TEMPLATE = ROOT / "template.yaml"
GUIDE = ROOT / "docs/operations.md"

# What SAM gives every function's role, and the boundary keeps to what is the stack's own.
MANAGED_POLICIES = {"AWSLambdaBasicExecutionRole", "AWSXrayWriteOnlyAccess"}
LOGS = "/waymark/${AWS::StackName}/"
NO_VALUE = {"Ref": "AWS::NoValue"}
# CloudWatch takes no longer search; the names of functions have at most 64 characters.
LONGEST_SEARCH = 1024
MOST_RESOURCES = 500
# A deployment's number, and the operations that have traffic shifted to them by default.
RELEASE = "1795234560"
SHIFTED = {"EvaluateFeatureFlag", "EvaluateFeatureFlags", "GetFlagdConfiguration", "IngestErrorEvents"}
# Operations that a public flag key can call.
EVALUATING = SHIFTED - {"IngestErrorEvents"}
# Alarms that every operation may have: the section of the guide that is about all of a kind.
OF_OPERATIONS = {
    "ServerErrorsAlarm": "Server errors of one operation",
    "LatencyAlarm": "Latency of one operation",
}
LONGEST_NAME = 64
# Answers and counts of a day are worth no copy in another region.
NOT_COPIED = {"IdempotencyTable", "QuotasTable"}
# What a selection of AWS Backup takes as soon as one has a wildcard.
MOST_WITH_WILDCARDS = 30
# Two secrets as the guide has them made, and halves that are none.
SECRET = "0123456789abcdef" * 4
SECRETS = [SECRET, f"{SECRET},{SECRET[::-1]}", ""]
NO_SECRETS = ["x" * 31, f"{SECRET},", f",{SECRET}", f"{SECRET},x", f"{SECRET},{SECRET},{SECRET}", f"{SECRET} "]
# What the guide's estimate of KMS counts with: each pair asks once in five minutes of a month.
REQUESTS_OF_A_PAIR = 30 * 24 * 12
DOLLARS_OF_A_KMS_REQUEST = 0.03 / 10_000
DOLLARS_OF_A_METRIC_OF_AN_ALARM = 0.10


class NoManagedPolicies(ManagedPolicyLoader):
    """The template names no managed policy, so AWS need not be asked for their list."""

    def __init__(self):
        super().__init__(None)

    def load(self):
        return {}


def faults_of_code(template):
    """What is deployed is what `make package` writes and `make reproduce` compares: a folder SAM would pack
    anew, with the times of its files."""
    for name, resource in template["Resources"].items():
        code = resource.get("Properties", {}).get("CodeUri")
        if code is not None and not re.fullmatch(r"target/package/[a-z-]+\.zip", code):
            yield f"{name}: {code} is no archive of make package"


def transformed(parameters):
    template = cfn_yaml.load(str(TEMPLATE))
    for resource in template["Resources"].values():
        # `sam deploy` uploads the code first and puts the address of the upload here.
        if "CodeUri" in resource.get("Properties", {}):
            resource["Properties"]["CodeUri"] = "s3://bucket/key"
    return transform(template, parameters, NoManagedPolicies())


def resources_of_statements(tables, functions):
    """What a statement may be about: a table or an index of one, of the stack's own or restored from them,
    or the function of a schedule."""
    for name in functions:
        yield {"Fn::GetAtt": [name, "Arn"]}
    for name, table in tables.items():
        yield {"Fn::GetAtt": [name, "Arn"]}
        yield {"Fn::Sub": f"${{{name}.Arn}}-restored-*"}
        indexes = table.get("GlobalSecondaryIndexes", []) + table.get("LocalSecondaryIndexes", [])
        for index in indexes:
            for tables in ("", "-restored-*"):
                yield {"Fn::Sub": f"${{{name}.Arn}}{tables}/index/{index['IndexName']}"}


def is_of_the_named_model(resource, statement):
    """Whether a statement is about the model that a parameter names, or about what only the
    inference profile of that name leads to."""
    conditions = statement.get("Condition", {}).get("StringEquals", {})
    through = conditions.get("bedrock:InferenceProfileArn", {})
    named = [part.get("Fn::Sub", "") for part in (resource, through) if isinstance(part, dict)]
    return any(":bedrock:" in arn and arn.endswith("/${BedrockModelId}") for arn in named)


def is_of_the_sender(resource, statement):
    """Whether a statement is about mails from the address that a parameter names alone."""
    conditions = statement.get("Condition", {}).get("StringEquals", {})
    arn = resource.get("Fn::Sub", "") if isinstance(resource, dict) else ""
    is_identity = arn.endswith((":identity/*", ":configuration-set/*")) and ":ses:" in arn
    return is_identity and conditions.get("ses:FromAddress") == {"Ref": "MailFrom"}


# The operators that AWS documents for a condition key with several values.
ONLY_OWN_EVENTS = {
    "ForAllValues:StringEquals": {"events:source": "waymark"},
    "Null": {"events:source": "false"},
}


def is_of_the_bus(resource, statement):
    """Checks that a statement is about own events on the bus that a parameter names."""
    arn = resource.get("Fn::Sub", "") if isinstance(resource, dict) else ""
    if statement.get("Condition") != ONLY_OWN_EVENTS:
        return False
    return ":events:" in arn and arn.endswith(":event-bus/${EventBusName}")


# What roles may do besides using tables: by the condition under which they may, what the statement must
# be about, and the action.
OUTSIDE = {
    "HasBedrockModel": (is_of_the_named_model, "bedrock:InvokeModel"),
    "HasMailFrom": (is_of_the_sender, "ses:SendEmail"),
    "HasEventBus": (is_of_the_bus, "events:PutEvents"),
}


def policies_of(role):
    """Each policy with the condition under which the role has it, or none."""
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
    """A list, or the only item in its place."""
    return value if isinstance(value, list) else [value]


def faults_of_ceilings(name, table):
    """A table takes no more than the parameters say, and so does each of its global indexes, which have
    ceilings of their own: a query of an index alone is not bounded by the table's."""
    kind = "Errors" if name == "ErrorsTable" else "Table"
    limits = {
        f"Max{which}RequestUnits": {
            "Fn::If": [f"Has{kind}Max{which}Units", {"Ref": f"{kind}Max{which}Units"}, NO_VALUE]
        }
        for which in ("Write", "Read")
    }
    ceiling = {"Fn::If": [f"Has{kind}MaxUnits", limits, NO_VALUE]}
    bounded = {name: table}
    for index in table.get("GlobalSecondaryIndexes", []):
        bounded[f"{name}, {index['IndexName']}"] = index
    for what, it in bounded.items():
        if it.get("OnDemandThroughput") != ceiling:
            yield f"{what}: {kind}MaxWriteUnits and {kind}MaxReadUnits must be its ceiling"


def faults_of_copies(resources):
    """All tables but those of a day are copied, and the guide's way back knows the same ones."""
    by_type = properties_by_type(resources)
    tables = {
        name: table
        for name, table in by_type["AWS::DynamoDB::Table"].items()
        if name not in NOT_COPIED
    }
    (selection,) = by_type["AWS::Backup::BackupSelection"].values()
    copied = selection["BackupSelection"]["Resources"]
    wanted = [{"Fn::GetAtt": [name, "Arn"]} for name in tables]
    # Those that stand in for them, too.
    wanted += [{"Fn::Sub": f"${{{name}.Arn}}-restored-*"} for name in tables]
    if sorted(map(json.dumps, copied)) != sorted(map(json.dumps, wanted)):
        yield f"BackupSelection: it must name {sorted(tables)}, and what is restored from each"
    if len(copied) > MOST_WITH_WILDCARDS:
        yield f"BackupSelection: AWS Backup takes {MOST_WITH_WILDCARDS} names with wildcards"
    guide = GUIDE.read_text(encoding="utf-8")
    expiring = {name: it for name, it in tables.items() if "TimeToLiveSpecification" in it}
    for variable, wanted in (("tables", tables), ("expiring", expiring)):
        names = {table_name(table) for table in wanted.values()}
        listed = re.findall(f'^{variable}="([^"]*)"', guide, re.MULTILINE)
        if [set(names_of.split()) for names_of in listed] != [names]:
            yield f'docs/operations.md: there must be one {variable}="{" ".join(sorted(names))}"'


def table_name(table):
    """The name of a table without the stack's."""
    return table["TableName"]["Fn::Sub"].removeprefix("${AWS::StackName}-")


def faults_of_what_stays(template):
    """What outlives the stack can be imported into the next one, and no failed creation leaves it there, where its
    name would be in the way of the next."""
    for name, resource in template["Resources"].items():
        policy = resource.get("DeletionPolicy", "Delete")
        if policy == "Retain":
            yield f"{name}: what a failed creation leaves of it would be in the way: RetainExceptOnCreate"
        if policy != "Delete" and resource["Type"] not in (TABLE, VAULT):
            yield f"{name}: packaging/tables_to_import.py imports no {resource['Type']}"


def faults(resources):
    by_type = properties_by_type(resources)

    for name, table in by_type["AWS::DynamoDB::Table"].items():
        if resources[name].get("DeletionPolicy") != "RetainExceptOnCreate":
            yield f"{name}: it must outlive the stack, but no failed creation"
        required = {
            "BillingMode": "PAY_PER_REQUEST",
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            "SSESpecification": {"SSEEnabled": True},
            "DeletionProtectionEnabled": {"Ref": "DeletionProtection"},
        }
        for key, value in required.items():
            if table.get(key) != value:
                yield f"{name}: {key} must be {value}"
        yield from faults_of_ceilings(name, table)

    functions = by_type["AWS::Lambda::Function"]
    roles = by_type["AWS::IAM::Role"]
    for name, function in functions.items():
        log_group = function.get("LoggingConfig", {}).get("LogGroup", {}).get("Ref")
        if "RetentionInDays" not in by_type["AWS::Logs::LogGroup"].get(log_group, {}):
            yield f"{name}: its log group must be declared with a retention"
        elif LOGS not in json.dumps(by_type["AWS::Logs::LogGroup"][log_group]):
            yield f"{name}: its log group must be below {LOGS}"
        if function["Role"]["Fn::GetAtt"][0] != f"{name}Role" or f"{name}Role" not in roles:
            yield f"{name}: it must have a role of its own"

    known = list(resources_of_statements(by_type["AWS::DynamoDB::Table"], functions))
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
                            yield f"{name}: {resource} is not what {condition} is about"
                    elif resource not in known:
                        yield f"{name}: {resource} is not of this template"


def routes(resources):
    """Each route of the API, with the function that answers it."""
    for path, methods in resources["Api"]["Properties"]["Body"]["paths"].items():
        for method, route in methods.items():
            uri = json.dumps(route.get("x-amazon-apigateway-integration", {}).get("uri"))
            function = re.search(r"\$\{(\w+)Aliaslive\}", uri)
            if function:
                yield f"{method.upper()} {path}", function[1]
            elif "functions/" in uri:
                raise ValueError(f"{method.upper()} {path} goes round the alias: {uri}")


def faults_of_bulkheads(resources):
    """What may come in floods, or run for long, must leave room for all else: its functions run so many
    at once, if the parameter says how many, and each of its routes has a rate of its own."""
    functions = properties_by_type(resources)["AWS::Lambda::Function"]
    bulkheads = {}
    for name, function in functions.items():
        if function.get("MemorySize") == {"Ref": "PackingMemorySize"}:
            bulkheads[name] = ("CountingConcurrency", "QueryThrottlingRateLimit")
    bulkheads["IngestErrorEvents"] = ("IngestionConcurrency", "IngestThrottlingRateLimit")

    for name in EVALUATING:
        reserved = {"Fn::If": ["HasEvaluationConcurrency", {"Ref": "EvaluationConcurrency"}, NO_VALUE]}
        if functions[name].get("ReservedConcurrentExecutions") != reserved:
            yield f"{name}: EvaluationConcurrency must bound its concurrent executions"

    (stage,) = properties_by_type(resources)["AWS::ApiGatewayV2::Stage"].values()
    settings = dict(stage["RouteSettings"])
    with_routes = set()
    for route, function in routes(resources):
        setting = settings.pop(route, None)
        if function not in bulkheads:
            if setting is not None:
                yield f"Api: {route} has a rate of its own, and no bulkhead"
            continue
        with_routes.add(function)
        concurrency, rate = bulkheads[function]
        limits = {"ThrottlingRateLimit": {"Ref": rate}, "ThrottlingBurstLimit": {"Ref": rate}}
        if setting != limits:
            yield f"Api: the rate of {route} must be {rate}"
        reserved = {"Fn::If": [f"Has{concurrency}", {"Ref": concurrency}, NO_VALUE]}
        if functions[function].get("ReservedConcurrentExecutions") != reserved:
            yield f"{function}: {concurrency} must say how many run at once"
    for route in settings:
        yield f"Api: {route} has a rate, and is no route"
    if len(with_routes) < 5:
        yield f"Api: only {sorted(with_routes)} have bulkheads"


def faults_of_releases(resources, is_everything_shifted):
    """Requests reach what the alias names, each deployment publishes a version of each operation, and
    alarms bring traffic back."""
    by_type = properties_by_type(resources)
    versions = by_type["AWS::Lambda::Version"]
    groups = by_type["AWS::CodeDeploy::DeploymentGroup"]
    operations = {function for _, function in routes(resources)}
    for function in sorted(operations):
        if f"{function}Version{RELEASE}" not in versions:
            yield f"{function}: a deployment publishes no version of it"
        group = groups.get(f"{function}DeploymentGroup")
        if group is not None:
            condition, no_alarms, watched = group["AlarmConfiguration"]["Fn::If"]
            alarms = [alarm["Name"] for alarm in watched["Alarms"]]
            if alarms != [{"Ref": f"{function}ServerErrorsAlarm"}]:
                yield f"{function}: its own alarm must bring its traffic back, not {alarms}"
            if condition != "ShiftsAtOnce" or no_alarms:
                yield f"{function}: an alarm that is on would stop a roll-back"
        elif is_everything_shifted or function in SHIFTED:
            yield f"{function}: no traffic is shifted to it"
    if not is_everything_shifted and len(groups) != len(SHIFTED):
        yield f"traffic is shifted to {sorted(groups)} by default"
    environment = [it["Environment"]["Variables"] for it in by_type["AWS::Lambda::Function"].values()]
    if any(variables.get("WAYMARK_RELEASE") != {"Ref": "Release"} for variables in environment):
        yield "a function is the same after a deployment, and Lambda refuses to publish it"
    if len(resources) > MOST_RESOURCES:
        yield f"{len(resources)} resources; CloudFormation takes {MOST_RESOURCES}"


def faults_of_names(resources):
    """Two stacks in one account must not claim the same physical name."""
    for name, resource in resources.items():
        if resource["Type"] in ("AWS::ApiGatewayV2::Stage", "AWS::Lambda::Alias"):
            continue  # Its name is one within its API, or its function.
        kind = resource["Type"].rsplit("::", 1)[1]
        for member in ("Name", "FilterName", f"{kind}Name"):
            given = resource["Properties"].get(member)
            if given is not None and "AWS::StackName" not in json.dumps(given):
                yield f"{name}: its {member} must contain the stack's name"


def faults_of_cors(resources):
    """What a browser is told must still be there after the transform."""
    cors = resources["Api"]["Properties"]["Body"].get("x-amazon-apigateway-cors", {})
    condition, cors, otherwise = cors.get("Fn::If", [None, cors, NO_VALUE])
    if condition != "HasCors" or otherwise != NO_VALUE:
        yield f"Api: there must be CORS exactly if HasCors, not {condition}, else {otherwise}"
    for member in ("allowOrigins", "allowMethods", "allowHeaders", "exposeHeaders", "maxAge"):
        if not cors.get(member):
            yield f"Api: the transform leaves no {member}"


def faults_of_boundary(resources):
    """No role may do more than the boundary says, and the boundary no more than the roles need."""
    by_type = properties_by_type(resources)
    boundary = by_type["AWS::IAM::ManagedPolicy"]["FunctionBoundary"]["PolicyDocument"]
    allowed = {}
    for statement in boundary["Statement"]:
        condition, statement, _ = statement.get("Fn::If", [None, statement, NO_VALUE])
        for action in many(statement["Action"]):
            allowed[action] = many(statement["Resource"])
        if "*" in many(statement["Resource"]) and statement["Sid"] != "SendTraces":
            yield f"FunctionBoundary: {statement['Sid']} is about everything"
        if statement["Sid"] == "WriteOwnLogs":
            if not statement["Resource"]["Fn::Sub"].endswith(f":log-group:{LOGS}*"):
                yield "FunctionBoundary: it must allow the stack's own log groups alone"
        outside = {action: condition for condition, (_, action) in OUTSIDE.items()}
        if outside.get(str(statement["Action"])) != condition:
            yield f"FunctionBoundary: {statement['Sid']} is not under its condition"

    used = set()
    for function in by_type["AWS::Lambda::Function"]:
        role = by_type["AWS::IAM::Role"][f"{function}Role"]
        if role.get("PermissionsBoundary") != {"Ref": "FunctionBoundary"}:
            yield f"{function}: its role must have the boundary"
        managed = {str(arn).rsplit("/", 1)[1] for arn in role.get("ManagedPolicyArns", [])}
        if not managed <= MANAGED_POLICIES:
            yield f"{function}: its role has {sorted(managed - MANAGED_POLICIES)} of AWS"
        for policy, condition in policies_of(role):
            for statement in policy["PolicyDocument"]["Statement"]:
                used.update(many(statement["Action"]))
                if condition is not None:
                    continue  # About no table, which `faults` looks at.
                for resource in many(statement["Resource"]):
                    # What is restored is allowed with its indexes.
                    wider = lambda found: found[1] or "/index/*"
                    index = re.sub("(-restored-[*])?/index/.*", wider, str(resource.get("Fn::Sub")))
                    for action in many(statement["Action"]):
                        if not {str(resource), str({"Fn::Sub": index})} & set(
                            map(str, allowed.get(action, []))
                        ):
                            yield f"{function}: the boundary stops {action} on {resource}"
    of_functions = {action for action in allowed if not action.startswith(("logs:", "xray:"))}
    for action in sorted(of_functions - used):
        yield f"FunctionBoundary: no function needs {action}"


def faults_of_restored_tables(template):
    """The parameter takes all tables of the stack, and no others."""
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
            yield f"RestoredTables: its pattern refuses {one}"


def faults_of_origin_secret(template):
    """The parameter takes a new secret beside the old one, and no half that is easily guessed."""
    parameter = template["Parameters"]["OriginSecret"]
    takes = lambda value: (
        len(value) <= parameter["MaxLength"] and re.fullmatch(parameter["AllowedPattern"], value)
    )
    for value in SECRETS:
        if not takes(value):
            yield f"OriginSecret: it refuses {value!r}"
    for value in NO_SECRETS:
        if takes(value):
            yield f"OriginSecret: it takes {value!r}"


def metrics_of_alarms(alarms):
    """The metrics that alarms watch, each of which is billed."""
    for alarm in alarms.values():
        yield sum("MetricStat" in it for it in alarm["Metrics"]) if "Metrics" in alarm else 1


def pairs_of_roles_and_tables(by_type):
    """Each role with each table that it may use."""
    for role, properties in by_type["AWS::IAM::Role"].items():
        policies = [policy for policy, _ in policies_of(properties)]
        statements = json.dumps([policy["PolicyDocument"] for policy in policies])
        for table in by_type["AWS::DynamoDB::Table"]:
            if f'["{table}", "Arn"]' in statements or f"${{{table}.Arn}}" in statements:
                yield role, table


def faults_of_costs(resources):
    """What the stack costs without any request is what the guide says."""
    by_type = properties_by_type(resources)
    alarms = by_type["AWS::CloudWatch::Alarm"]
    of_operations = {name: it for name, it in alarms.items() if is_of_operation(name)}
    metrics, own = (sum(metrics_of_alarms(some)) for some in (alarms, of_operations))
    pairs = len(list(pairs_of_roles_and_tables(by_type)))
    kms = pairs * REQUESTS_OF_A_PAIR * DOLLARS_OF_A_KMS_REQUEST
    all_of_them, theirs = (count * DOLLARS_OF_A_METRIC_OF_AN_ALARM for count in (metrics, own))
    guide = " ".join(GUIDE.read_text(encoding="utf-8").split())
    for wanted in (
        f"alarms on {metrics} metrics ({all_of_them:.2f}, of which {theirs:.2f} are those of single operations)",
        f"KMS ({kms:.2f} at most, by estimate: each of the {pairs} pairs of a role and a table",
    ):
        if wanted not in guide:
            yield f"docs/operations.md, What it costs: it must say: {wanted}"
    yield from faults_of_sums()


def faults_of_sums():
    """What the guide adds up is the sum of what it names, but for what is rounded away."""
    guide = GUIDE.read_text(encoding="utf-8")
    (parts,) = re.findall(r"^\*Fixed\* is(.*?)^An operation with server errors", guide, re.MULTILINE | re.DOTALL)
    fixed = sum(float(dollars) for dollars in re.findall(r"\((\d+\.\d\d)", parts))
    (table,) = re.findall(r"^\| DynamoDB writes \|.*?^\| \*\*a month\*\*[^\n]*", guide, re.MULTILINE | re.DOTALL)
    rows = [line.replace("*", "").replace(",", "").strip("| ").split(" | ") for line in table.splitlines()]
    if {float(dollars) for dollars in rows[-2][1:]} != {round(fixed, 2)}:
        yield f"docs/operations.md, What it costs: {rows[-2][0]} must be {fixed:.2f}"
    for column, rounded in ((1, 0.005), (2, 0.5), (3, 2)):
        *summands, total = (float(row[column]) for row in rows)
        if abs(sum(summands) - total) > rounded:
            yield f"docs/operations.md, What it costs: {total} is not the sum, {sum(summands):.2f}"


def faults_of_schedules(resources):
    """A run of a job comes once per schedule, and its metrics always."""
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
            yield f"{function}: alarms need its metrics, which are lines of INFO"


def searches(widgets):
    """Each search of the dashboard, with the widget that it is in."""
    for widget in widgets:
        for metric in widget["properties"].get("metrics", []):
            expression = metric[-1].get("expression", "") if isinstance(metric[-1], dict) else ""
            if expression.startswith("SEARCH("):
                yield widget["properties"]["title"], expression


def faults_of_dashboard(resources):
    """Its charts are within it, and of this stack alone and all of it."""
    dashboard = resources["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    # What CloudFormation puts in has no quotes and no backslashes.
    widgets = json.loads(re.sub(r"\$\{!?([^}]*)\}", r"<\1>", dashboard))["widgets"]
    for one in widgets:
        if one["x"] + one["width"] > 24:
            yield f"Dashboard: {one['properties']['title']} is beyond its edge"

    by_type = properties_by_type(resources)
    named = {}
    for title, expression in searches(widgets):
        longest = re.sub("<[^>]*>", "x" * LONGEST_NAME, expression)
        if len(longest) > LONGEST_SEARCH:
            yield f"Dashboard: a search of {title} may get too long"
        if re.search('[^"]<|>[^"]', expression):
            yield f"Dashboard: a search of {title} finds more than the names in it"
        if 'stack="<AWS::StackName>"' in expression:
            continue  # It finds what the stack has, whatever that is.
        kind = re.search(r"(FunctionName|TableName)=", expression)[1]
        named.setdefault((title, kind), set()).update(re.findall('"<([^>]*)>"', expression))
    kinds = {"FunctionName": "AWS::Lambda::Function", "TableName": "AWS::DynamoDB::Table"}
    for (title, kind), names in named.items():
        for missing in sorted(set(by_type[kinds[kind]]) - names):
            yield f"Dashboard: {title} leaves out {missing}"


def is_of_operation(alarm):
    """The operation that an alarm is of, and the kind of alarm, if it is of one."""
    return re.fullmatch(f"(\\w+)({'|'.join(OF_OPERATIONS)})", alarm)


def faults_of_alarms(resources):
    """Every alarm tells somebody, is on the dashboard, and has its place in the guide."""
    dashboard = resources["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    guide = GUIDE.read_text(encoding="utf-8")
    for name, resource in resources.items():
        if resource["Type"] != "AWS::CloudWatch::Alarm":
            continue
        of_operation = is_of_operation(name)
        if of_operation:
            # The dashboard has a chart of what they watch.
            section = OF_OPERATIONS[of_operation[2]]
            if of_operation[1] not in resources:
                yield f"{name}: there is no function {of_operation[1]}"
        else:
            section = name
            if f"${{{name}.Arn}}" not in dashboard:
                yield f"{name}: it is not on the dashboard"
            if resource["Properties"]["TreatMissingData"] == "breaching":
                # What a job is behind with: to be seen before the alarm is on, and its alarm on a new stack.
                if f'"{resource["Properties"]["MetricName"]}"' not in dashboard:
                    yield f"{name}: the dashboard has no chart of what it watches"
                if name not in guide.partition("take missing metrics for a job")[0]:
                    yield f"{name}: docs/operations.md, Deploy, must say that it is on at first"
        if "AlarmActions" not in resource["Properties"]:
            yield f"{name}: it tells nobody"
        if f"### {section}\n" not in guide:
            yield f"{name}: docs/operations.md has no section {section}"


def faults_of_queries(resources):
    """Metrics Insights documents `AND` as the only word between the conditions of a query."""
    for name, alarm in properties_by_type(resources)["AWS::CloudWatch::Alarm"].items():
        for metric in alarm.get("Metrics", []):
            expression = json.dumps(metric.get("Expression", ""))
            if "SELECT" in expression and re.search(r"\b(OR|NOT|IN|LIKE)\b", expression):
                yield f"{name}: Metrics Insights documents only `WHERE key OPERATOR value [AND ...]`"


def main():
    # What the translator has to say of features that AWS turns on for itself.
    logging.disable(logging.WARNING)
    everything_shifted = transformed({"Release": RELEASE, "ShiftAllTraffic": "true"})["Resources"]
    template = transformed({"Release": RELEASE})
    resources = template["Resources"]
    checks = (
        faults,
        faults_of_bulkheads,
        faults_of_names,
        faults_of_copies,
        faults_of_costs,
        faults_of_cors,
        faults_of_boundary,
        faults_of_schedules,
        faults_of_dashboard,
        faults_of_alarms,
        faults_of_queries,
    )
    found = [fault for check in checks for fault in check(resources)]
    found += faults_of_restored_tables(template)
    found += faults_of_origin_secret(template)
    # As it is written: SAM adds versions, which go with their functions.
    found += faults_of_code(cfn_yaml.load(str(TEMPLATE)))
    found += faults_of_what_stays(cfn_yaml.load(str(TEMPLATE)))
    found += faults_of_releases(resources, is_everything_shifted=False)
    found += faults_of_releases(everything_shifted, is_everything_shifted=True)
    for fault in found:
        print(f"template.yaml: {fault}", file=sys.stderr)
    if found:
        sys.exit(1)
    print(
        f"template.yaml transforms into {len(resources)} resources, "
        f"{len(everything_shifted)} with ShiftAllTraffic"
    )


if __name__ == "__main__":
    main()
