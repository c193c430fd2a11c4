"""Tests the checks before a deployment against emulated accounts. Run by `make test`."""

import sys
import tempfile
import unittest
from collections import namedtuple
from pathlib import Path
from unittest import mock

import boto3
from botocore.stub import Stubber

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import preflight
from preflight import Preflight, computer

TEMPLATE = """
Resources:
  Api: {Type: "AWS::Serverless::HttpApi"}
  Evaluate: {Type: "AWS::Serverless::Function"}
  Ingest: {Type: "AWS::Serverless::Function"}
  Logs: {Type: "AWS::Logs::LogGroup", Properties: {LogGroupName: !Sub "/waymark/${AWS::StackName}/all"}}
  ErrorsTable: {Type: "AWS::DynamoDB::Table", Properties: {TableName: !Sub "${AWS::StackName}-errors"}}
"""


def findings(parameters=None, region="eu-central-1", **changed):
    """Returns the findings for a new account, or one with changed responses.

    `Stubber` validates the requests and the responses with AWS's models. `None` is a denied request.
    """
    responses = {
        "describe_stacks": {"Stacks": []},
        "list_tables": {"TableNames": ["other-errors"]},
        "describe_log_groups": {"logGroups": []},
        "get_account_settings": {
            "AccountLimit": {"ConcurrentExecutions": 10, "TotalCodeSize": 80_530_636_800},
            "AccountUsage": {"TotalCodeSize": 0},
        },
        "get_account_summary": {"SummaryMap": {"Roles": 10, "RolesQuota": 1000}},
        "describe_account_limits": {"AccountLimits": [{"Name": "StackLimit", "Value": 2000}]},
        "get_service_quota": {"Quota": {"Value": 2500.0}},
        "get_email_identity": {"VerifiedForSendingStatus": False},
        "get_account": {"SendingEnabled": True, "ProductionAccessEnabled": False},
    } | changed
    calls = {
        "cloudformation": ["describe_stacks", "describe_stacks", "describe_account_limits"],
        "dynamodb": ["list_tables", "list_tables"],
        "logs": ["describe_log_groups"],
        "lambda": ["get_account_settings"],
        "iam": ["get_account_summary"],
        "service-quotas": ["get_service_quota"],
        "sesv2": ["get_email_identity"] * 3 + ["get_account"],
    }
    if responses["get_email_identity"] == {"VerifiedForSendingStatus": True}:
        calls["sesv2"] = ["get_email_identity", "get_account"]
    session = boto3.Session("test", "test", region_name=region)
    clients = {}
    for service, operations in calls.items():
        clients[service] = session.client(service)
        stubber = Stubber(clients[service])
        if service == "cloudformation" and not responses["describe_stacks"]["Stacks"]:
            stubber.add_client_error("describe_stacks", "ValidationError", "Stack with id shop does not exist")
            operations = operations[1:]
        for operation in operations:
            if responses[operation] is None:
                stubber.add_client_error(operation, "AccessDenied", "not authorized")
            else:
                stubber.add_response(operation, responses[operation])
        stubber.activate()
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template.yaml"
        template.write_text(TEMPLATE)
        checks = Preflight("shop", template, parameters or {}, clients.__getitem__)
        return list(checks.findings())


def stack(status, **parameters):
    """Returns a description of the stack."""
    given = [{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()]
    described = {"StackName": "shop", "StackStatus": status, "CreationTime": 0, "Parameters": given}
    return {"Stacks": [described]}


ROOMY = {
    "AccountLimit": {"ConcurrentExecutions": 1000, "TotalCodeSize": 80_530_636_800},
    "AccountUsage": {"TotalCodeSize": 0},
}


class TestPreflight(unittest.TestCase):
    def only(self, found):
        self.assertEqual(len(found), 1, found)
        return found[0]

    def test_new_account_lacks_concurrency(self):
        found = self.only(findings())
        self.assertTrue(found.is_error)
        self.assertIn("at most 10 functions", found.problem)
        self.assertIn("--service-code lambda --quota-code L-B99A9384 --desired-value 1000", found.remedy)

    def test_prepared_account_has_no_findings(self):
        self.assertEqual(findings(get_account_settings=ROOMY), [])

    def test_full_code_storage_is_an_error(self):
        full = ROOMY | {"AccountUsage": {"TotalCodeSize": 80_000_000_000}}
        self.assertIn("0.5 GB", self.only(findings(get_account_settings=full)).problem)

    def test_rate_limits_of_the_edge_need_their_region(self):
        limited = {"Edge": "true", "EdgeRequestsPerAddress": "10000"}
        found = self.only(findings(limited, get_account_settings=ROOMY))
        self.assertTrue(found.is_error)
        self.assertIn("no effect in eu-central-1", found.problem)
        for unlimited in ({"Edge": "false"}, {"EdgeRequestsPerAddress": "0"}, {"EdgeWebAclArn": "arn"}):
            self.assertEqual(findings(limited | unlimited, get_account_settings=ROOMY), [])

    def test_budgets_need_their_region(self):
        budget = {"MonthlyBudget": "50"}
        found = self.only(findings(budget, "eu-north-1", get_account_settings=ROOMY))
        self.assertIn("cannot create a budget in eu-north-1", found.problem)
        self.assertEqual(findings(budget, get_account_settings=ROOMY), [])
        self.assertEqual(findings({"MonthlyBudget": "0"}, "eu-north-1", get_account_settings=ROOMY), [])

    def test_denied_requests_are_warnings(self):
        found = findings(get_account_settings=None, get_account_summary=None)
        self.assertEqual([it.problem for it in found], ["not checked: concurrency", "not checked: roles"])
        self.assertFalse(any(it.is_error for it in found))

    def test_quotas_without_room_have_requests(self):
        full = {
            "get_account_summary": {"SummaryMap": {"Roles": 999, "RolesQuota": 1000}},
            "describe_account_limits": {"AccountLimits": [{"Name": "StackLimit", "Value": 1}]},
            "get_service_quota": {"Quota": {"Value": 1.0}},
        }
        found = findings(get_account_settings=ROOMY, **full)
        codes = ["L-FE177D64", "L-0485CB21", "L-F98FE922"]
        self.assertEqual([next(it for it in codes if it in each.remedy) for each in found], codes)
        self.assertIn("--desired-value 1003 --region us-east-1", found[0].remedy)
        deployed = stack("UPDATE_COMPLETE")
        self.assertEqual(findings(get_account_settings=ROOMY, describe_stacks=deployed, **full), [])

    def test_resources_of_a_deleted_stack_collide(self):
        left = {
            "list_tables": {"TableNames": ["shop-errors", "other-errors"]},
            "describe_log_groups": {"logGroups": [{"logGroupName": "/waymark/shop/all"}]},
        }
        table, group = findings(get_account_settings=ROOMY, **left)
        self.assertIn("the table shop-errors already exists", table.problem)
        self.assertIn("delete-table --table-name shop-errors", table.remedy)
        self.assertIn("delete-log-group --log-group-name /waymark/shop/all", group.remedy)
        deployed = stack("CREATE_COMPLETE")
        self.assertEqual(findings(get_account_settings=ROOMY, describe_stacks=deployed, **left), [])

    def test_stack_states_without_deployments_are_errors(self):
        for status, remedy in [
            ("ROLLBACK_FAILED", "delete-stack --stack-name shop"),
            ("UPDATE_ROLLBACK_FAILED", "continue-update-rollback --stack-name shop"),
            ("UPDATE_IN_PROGRESS", "wait"),
        ]:
            found = self.only(findings(get_account_settings=ROOMY, describe_stacks=stack(status)))
            self.assertTrue(found.is_error and status in found.problem)
            self.assertIn(remedy, found.remedy)
        for status in ("REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE"):
            self.assertEqual(findings(get_account_settings=ROOMY, describe_stacks=stack(status)), [])

    def test_sender_needs_an_identity(self):
        sender = {"MailFrom": "waymark@mail.example.com"}
        identity, sandbox = findings(sender, get_account_settings=ROOMY)
        self.assertTrue(identity.is_error and not sandbox.is_error)
        self.assertIn("--email-identity waymark@mail.example.com", identity.remedy)
        self.assertIn("put-account-details --production-access-enabled", sandbox.remedy)
        kept = stack("UPDATE_COMPLETE", MailFrom="waymark@example.com")
        verified = {
            "get_email_identity": {"VerifiedForSendingStatus": True},
            "get_account": {"SendingEnabled": False, "ProductionAccessEnabled": True},
        }
        paused = self.only(findings(get_account_settings=ROOMY, describe_stacks=kept, **verified))
        self.assertIn("SES paused", paused.problem)

    def test_template_has_the_checked_names(self):
        session = mock.Mock()
        session().describe_stacks.return_value = {"Stacks": [{}]}
        checks = Preflight("shop", ROOT / "template.yaml", {}, session)
        self.assertIn("shop-errors", checks.names("AWS::DynamoDB::Table", "TableName"))
        self.assertTrue(checks.names("AWS::Logs::LogGroup", "LogGroupName"))


class TestComputer(unittest.TestCase):
    def problems(self, free, tools, is_built, has_packages=False):
        usage = namedtuple("usage", "free")(free)
        with (
            mock.patch("preflight.shutil.disk_usage", return_value=usage),
            mock.patch("preflight.shutil.which", side_effect=lambda name: name if name in tools else None),
        ):
            with tempfile.TemporaryDirectory() as folder:
                root = Path(folder)
                if has_packages:
                    (root / "target" / "lambda").mkdir(parents=True)
                return [it.problem.split()[0] + "!" * it.is_error for it in computer(root, is_built)]

    def test_builds_need_tools_and_space(self):
        self.assertEqual(self.problems(20e9, ["cargo", "cc", "npm"], True), [])
        self.assertEqual(self.problems(1e9, [], True), ["1.0!", "cargo!", "the!", "npm"])
        self.assertEqual(self.problems(1e9, ["cargo", "cc", "npm"], True, has_packages=True), [])

    def test_archives_need_neither(self):
        self.assertEqual(self.problems(1e9, [], False), [])
        self.assertEqual(self.problems(1e8, [], False), ["0.1!"])

    def test_errors_stop_a_deployment(self):
        for free, expected in [(1e8, False), (1e9, True)]:
            usage = namedtuple("usage", "free")(free)
            with (
                mock.patch("preflight.shutil.disk_usage", return_value=usage),
                mock.patch("preflight.boto3.Session"),
                mock.patch("preflight.Preflight") as checks,
                mock.patch("builtins.print"),
            ):
                checks().findings.return_value = [preflight.warning("sandbox", "leave it")]
                is_ready = preflight.preflight("shop", ROOT / "template.yaml", {}, ROOT, False)
                self.assertEqual(is_ready, expected)


if __name__ == "__main__":
    unittest.main()
