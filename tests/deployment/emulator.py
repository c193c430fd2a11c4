"""Starts the AWS emulator MiniStack with corrections of its faults that stop the template.

Usage: emulator.py AWS_PORT API_PORT. At API_PORT the only API of the stack has its own address, because
names such as ID.execute-api.localhost do not resolve on each machine.

Each correction replaces a function of MiniStack 1.5.33, the pinned version. Each denied request becomes a
line `DENIED` of the output, and each resource without effect a line `WITHOUT EFFECT`.
"""

import json
import os
import sys
from collections.abc import Callable

AWS_PORT, API_PORT = sys.argv[1:]
# MiniStack reads its own options.
del sys.argv[1:]

# Read when MiniStack is imported.
os.environ |= {
    "AUTH": "true",
    "BIND_HOST": "127.0.0.1",
    "GATEWAY_PORT": AWS_PORT,
    "IOT_MTLS_ENABLED": "0",
    "SFTP_ENABLED": "0",
}

from hypercorn.config import Config  # noqa: E402
from ministack import app  # noqa: E402
from ministack.core import iam_actions, iam_evaluator, responses, router  # noqa: E402
from ministack.services import apigateway, dynamodb, iam  # noqa: E402
from ministack.services.cloudformation import changesets, engine, handlers, provisioners, stacks  # noqa: E402
from samtranslator.translator import transform  # noqa: E402

# Types that MiniStack does not know. Their resources are created without effect.
WITHOUT_EFFECT = {
    "AWS::Budgets::Budget": "MiniStack has no budgets in CloudFormation",
    "AWS::Backup::BackupSelection": "MiniStack has no selections of backups in CloudFormation",
    "AWS::Logs::QueryDefinition": "MiniStack has no saved queries in CloudFormation",
    "AWS::CodeDeploy::Application": "MiniStack has no CodeDeploy",
    "AWS::CodeDeploy::DeploymentGroup": "MiniStack has no CodeDeploy",
}
HANDLERS = provisioners._RESOURCE_HANDLERS


def report(what: str) -> None:
    """Prints a line that the test reads."""
    print(what, file=sys.stderr, flush=True)


def after(resource_type: str, do: Callable) -> None:
    """Calls `do` with the physical id, properties and stack after a resource is created or updated."""
    original = dict(HANDLERS[resource_type])

    def create(logical_id, properties, stack_name):
        physical_id, attributes = original["create"](logical_id, properties, stack_name)
        do(physical_id, properties, stack_name)
        return physical_id, attributes

    def update(physical_id, old, new, stack_name, logical_id=None):
        physical_id, attributes = original["update"](physical_id, old, new, stack_name, logical_id)
        do(physical_id, new, stack_name)
        return physical_id, attributes

    HANDLERS[resource_type] |= {"create": create, "update": update}


def without_effect(resource_type: str, reason: str) -> dict:
    """Returns a handler that only reports a resource: MiniStack rejects templates with unknown types."""
    def create(logical_id, properties, stack_name):
        report(f"WITHOUT EFFECT {resource_type} {logical_id}: {reason}")
        physical_id = f"{stack_name}-{logical_id}"
        return physical_id, {"Arn": f"arn:aws:{resource_type}:{physical_id}"}

    def update(physical_id, old, new, stack_name):
        return physical_id, {}

    return {"create": create, "update": update, "delete": lambda physical_id, properties: None}


for name, why in WITHOUT_EFFECT.items():
    assert name not in HANDLERS, f"MiniStack knows {name} now: remove it from WITHOUT_EFFECT"
    HANDLERS[name] = without_effect(name, why)

# Alarms on an expression: MiniStack requires a metric name.
alarms = dict(HANDLERS["AWS::CloudWatch::Alarm"])
no_expression = without_effect("AWS::CloudWatch::Alarm", "MiniStack has no alarms on expressions")


def create_alarm(logical_id, properties, stack_name):
    alarm = no_expression if "Metrics" in properties else alarms
    return alarm["create"](logical_id, properties, stack_name)


def update_alarm(physical_id, old, new, stack_name, logical_id=None):
    if "Metrics" in old or "Metrics" in new:
        return physical_id, {}
    return alarms["update"](physical_id, old, new, stack_name, logical_id)


def delete_alarm(physical_id, properties):
    if "Metrics" not in properties:
        alarms["delete"](physical_id, properties)


HANDLERS["AWS::CloudWatch::Alarm"] |= {"create": create_alarm, "update": update_alarm, "delete": delete_alarm}


# Routes of an API from its Body, as SAM writes it: MiniStack ignores Body.
def import_body(api_id: str, properties: dict, stack_name: str) -> None:
    body = properties["Body"]
    if cors := body.get("x-amazon-apigateway-cors"):
        apigateway._apis[api_id]["corsConfiguration"] = cors
    apigateway._routes[api_id] = {}
    apigateway._integrations[api_id] = {}
    for path, methods in body["paths"].items():
        for method, operation in methods.items():
            of = operation.get("x-amazon-apigateway-integration") if isinstance(operation, dict) else None
            if not of:
                continue
            integration, _ = provisioners._apigw_v2_integration_create("Body", {
                "ApiId": api_id,
                "IntegrationType": of["type"].upper(),
                "IntegrationUri": of["uri"],
                "PayloadFormatVersion": of["payloadFormatVersion"],
            }, stack_name)
            provisioners._apigw_v2_route_create("Body", {
                "ApiId": api_id,
                "RouteKey": f"{method.upper()} {path}",
                "Target": f"integrations/{integration}",
            }, stack_name)


# Permissions boundaries of roles: MiniStack's CloudFormation drops them.
def set_boundary(role: str, properties: dict, stack_name: str) -> None:
    if boundary := properties.get("PermissionsBoundary"):
        iam._roles[role]["PermissionsBoundary"] = boundary


after("AWS::ApiGatewayV2::Api", import_body)
after("AWS::IAM::Role", set_boundary)


# Conditions: MiniStack evaluates Fn::Split and Fn::Sub only in resources.
evaluate_conditions = engine._evaluate_conditions


def conditions_of(template: dict, parameters: dict) -> dict:
    def resolved(node):
        if isinstance(node, list):
            return [resolved(item) for item in node]
        if isinstance(node, dict):
            if node.keys() & {"Fn::Select", "Fn::Split", "Fn::Sub", "Fn::Join"}:
                return engine._resolve_refs(node, {}, parameters, {}, {}, "", "")
            return {key: resolved(value) for key, value in node.items()}
        return node

    return evaluate_conditions(template | {"Conditions": resolved(template.get("Conditions", {}))}, parameters)


for module in (changesets, engine, handlers, stacks):
    if hasattr(module, "_evaluate_conditions"):
        module._evaluate_conditions = conditions_of


# Parameters of the SAM transform: MiniStack passes none, so a second deployment publishes no version.
apply_transforms, sam_transform = engine._apply_transforms, transform.transform


def with_parameters(template, provided_params=None, previous_params=None):
    values = engine._transform_parameters(template, provided_params, previous_params)
    transform.transform = lambda of, _, policies: sam_transform(of, values, policies)
    return apply_transforms(template, provided_params, previous_params)


for module in (changesets, engine, handlers, stacks):
    if hasattr(module, "_apply_transforms"):
        module._apply_transforms = with_parameters


# Condition keys and resources that MiniStack does not derive from requests.
LEADING_KEYS = "dynamodb:LeadingKeys"
tag_context, dynamodb_context = iam_actions.request_tag_context, iam_actions.dynamodb_service_context
transaction_checks = iam_actions.dynamodb_transaction_checks
enforce_ses, enforce = app._enforce_ses_v2, iam_evaluator.enforce


class ArnOfItem(str):
    """ARN of a table, with the partition key of one item of a transaction."""

    partition_key: str


def partition_key(table: str, attributes: dict) -> str:
    """Returns the partition key among the attributes of an item or key."""
    return next(iter(attributes[dynamodb._tables[table]["pk_name"]].values()))


def context_of_dynamodb(body):
    request = json.loads(body)
    keys = []
    if attributes := request.get("Key") or request.get("Item"):
        keys = [partition_key(request["TableName"], attributes)]
    for table, requests in request.get("RequestItems", {}).items():
        batch = requests["Keys"] if "Keys" in requests else [next(iter(write.values())) for write in requests]
        keys += [partition_key(table, it.get("Item") or it.get("Key") or it) for it in batch]
    return dynamodb_context(body) | ({LEADING_KEYS: keys} if keys else {})


def checks_of_transaction(action, body, region, account):
    checks = []
    items = json.loads(body).get("TransactItems", [])
    for (item_action, arn), item in zip(transaction_checks(action, body, region, account), items):
        (request,) = item.values()
        arn = ArnOfItem(arn)
        arn.partition_key = partition_key(request["TableName"], request.get("Item") or request["Key"])
        checks.append((item_action, arn))
    return checks


def context_of(service, action, body, parameters):
    context = tag_context(service, action, body, parameters)
    if action == "events:PutEvents":
        # A list, as the service authorization reference says (ArrayOfString).
        context["events:source"] = sorted({entry["Source"] for entry in json.loads(body)["Entries"]})
    return context


def enforce_ses_with_sender(method, path, headers, body, parameters, request_id):
    if (method, path) != ("POST", "/v2/email/outbound-emails"):
        return enforce_ses(method, path, headers, body, parameters, request_id)
    sender = json.loads(body)["FromEmailAddress"]
    region = router.extract_region(headers, parameters)
    identity = f"arn:aws:ses:{region}:{responses.get_account_id()}:identity/{sender}"
    return app._enforce_data_plane("sesv2", "ses:SendEmail", headers, parameters, request_id, resource_arn=identity,
                                   service_context={"ses:FromAddress": sender}, named_resource=identity)


def enforce_and_report(access_key_id, iam_action, service, region, resource_arn="*", service_context=None):
    if isinstance(resource_arn, ArnOfItem):
        service_context = (service_context or {}) | {LEADING_KEYS: [resource_arn.partition_key]}
    denied = enforce(access_key_id, iam_action, service, region, resource_arn, service_context)
    if denied:
        report(f"DENIED {iam_action} {resource_arn} to {getattr(denied, 'principal_arn', denied)}")
    return denied


iam_actions.request_tag_context = context_of
iam_actions.dynamodb_service_context = context_of_dynamodb
iam_actions.dynamodb_transaction_checks = checks_of_transaction
iam_evaluator.enforce = enforce_and_report
app._enforce_ses_v2 = enforce_ses_with_sender

# The address of the API.
ministack = app.app


async def with_address(scope, receive, send):
    if scope["type"] == "http" and str(scope["server"][1]) == API_PORT:
        host = next(iter(apigateway._apis.values()))["apiEndpoint"].split("://")[1].encode()
        kept = [(name, value) for name, value in scope["headers"] if name != b"host"]
        scope = scope | {"headers": [(b"host", host), *kept]}
    await ministack(scope, receive, send)


class BothAddresses(Config):
    """Binds the address of the API, in addition to MiniStack's own."""

    @property
    def bind(self):
        return [*self._bind, f"127.0.0.1:{API_PORT}"]

    @bind.setter
    def bind(self, value):
        self._bind = value


app.app = with_address
# `main` imports the class when it runs.
sys.modules["hypercorn.config"].Config = BothAddresses
app.main()
