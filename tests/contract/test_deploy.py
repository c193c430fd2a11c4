"""Tests `make deploy`, `make roll-back` and `make releases` with fakes of SAM CLI and AWS. Run by `make test`."""

import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import yaml
from test_releases import Account

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "packaging"))
import deploy

SCRIPT = ROOT / "packaging" / "deploy.py"


class Cloud(Account):
    """The account of a stack, whose deployments can fail or be rejected by the user."""

    def __init__(self, release=None, status="UPDATE_COMPLETE") -> None:
        super().__init__()
        self.release, self.status = release, status
        self.outcomes = []
        # Subcommands and parameters of SAM, and deleted stacks.
        self.log = []

    def run(self, arguments, env) -> subprocess.CompletedProcess:
        """Acts as SAM CLI."""
        command, *options = arguments[1:]
        if command == "package":
            Path(options[options.index("--output-template-file") + 1]).write_bytes(b"packaged")
            return subprocess.CompletedProcess(arguments, 0)
        given = dict(it.split("=", 1) for it in options[options.index("--parameter-overrides") + 1 :])
        asks = "--confirm-changeset" in options
        self.log.append((given, asks))
        outcome = self.outcomes.pop(0) if self.outcomes else "done"
        if outcome == "done":
            self.status = "CREATE_COMPLETE" if self.release is None else "UPDATE_COMPLETE"
            self.release = given["Release"]
            self.parameters.update(given)
        elif self.release is None:
            self.release, self.status = given["Release"], outcome
        return subprocess.CompletedProcess(arguments, 0 if outcome in ("done", "REVIEW_IN_PROGRESS") else 1)

    def delete_stack(self, StackName):
        self.log.append(f"deleted {StackName}")
        self.release = None

    def get_waiter(self, name):
        return mock.Mock()


class TestDeployments(unittest.TestCase):
    def run_command(self, cloud, *arguments, environment=None):
        """Returns the success and the output."""
        with (
            tempfile.TemporaryDirectory() as folder,
            mock.patch("deploy.PACKAGED", Path(folder) / "package" / "template.yaml"),
            mock.patch("deploy.ROLLED_BACK", Path(folder) / "package" / "rolled-back.yaml"),
            mock.patch("deploy.subprocess.run", cloud.run),
            mock.patch.dict(os.environ, environment or {}),
            redirect_stdout(io.StringIO()) as out,
            redirect_stderr(out),
        ):
            options = deploy.parse(list(arguments))
            is_done = options.run(options, cloud, cloud)
        return is_done, out.getvalue()

    def test_tables_are_protected_after_the_first_creation(self):
        cloud = Cloud()
        self.assertTrue(self.run_command(cloud, "deploy", "LogLevel=WARN")[0])
        (first, asked), (second, asked_again) = cloud.log
        self.assertEqual((first["DeletionProtection"], asked), ("false", True))
        self.assertEqual((second["DeletionProtection"], asked_again), ("true", False))
        self.assertEqual(first | {"DeletionProtection": "true"}, second)
        self.assertEqual(second["LogLevel"], "WARN")

    def test_existing_stacks_are_deployed_once_with_protection(self):
        cloud = Cloud("1700000001")
        self.assertTrue(self.run_command(cloud, "deploy")[0])
        self.assertEqual([it["DeletionProtection"] for it, _ in cloud.log], ["true"])

    def test_protection_can_stay_off(self):
        for cloud in Cloud(), Cloud("1700000001"):
            self.assertTrue(self.run_command(cloud, "deploy", "DeletionProtection=false")[0])
            self.assertEqual([it["DeletionProtection"] for it, _ in cloud.log], ["false"])

    def test_failed_creation_is_deleted_by_the_next_deployment(self):
        cloud = Cloud()
        cloud.outcomes = ["ROLLBACK_COMPLETE"]
        is_done, printed = self.run_command(cloud, "deploy")
        self.assertFalse(is_done)
        self.assertEqual([it["DeletionProtection"] for it, _ in cloud.log], ["false"])
        self.assertIn("left no resources", printed)
        self.assertIn("Nothing was deployed", printed)
        self.assertTrue(self.run_command(cloud, "deploy")[0])
        self.assertEqual(cloud.log[1], "deleted waymark")
        self.assertEqual([it["DeletionProtection"] for it, _ in cloud.log[2:]], ["false", "true"])

    def test_unclean_failure_is_not_called_clean(self):
        cloud = Cloud()
        cloud.outcomes = ["ROLLBACK_FAILED"]
        self.assertNotIn("left no resources", self.run_command(cloud, "deploy")[1])

    def test_rejected_change_set_deploys_nothing(self):
        cloud = Cloud()
        cloud.outcomes = ["REVIEW_IN_PROGRESS"]
        self.assertTrue(self.run_command(cloud, "deploy")[0])
        self.assertEqual(len(cloud.log), 1)

    def test_failed_protection_fails_the_deployment(self):
        cloud = Cloud()
        cloud.outcomes = ["done", "UPDATE_ROLLBACK_COMPLETE"]
        self.assertFalse(self.run_command(cloud, "deploy")[0])

    def test_confirmation_can_be_skipped(self):
        for more, expected in ((), True), (("--yes",), False):
            cloud = Cloud("1700000001")
            self.run_command(cloud, "deploy", *more)
            self.assertEqual([asks for _, asks in cloud.log], [expected])

    def test_alarms_are_ignored_only_on_explicit_request(self):
        for more, expected in ((), "false"), (("--regardless-of-alarms",), "true"):
            cloud = Cloud()
            self.run_command(cloud, "deploy", *more)
            self.assertEqual(cloud.log[0][0]["ShiftRegardlessOfAlarms"], expected)

    def test_parameter_values_are_not_printed(self):
        for command in ("deploy", "roll-back"):
            cloud = Cloud("1700000001")
            self.run_command(cloud, "deploy")
            self.run_command(cloud, "deploy")
            secret = {"ORIGIN_SECRET": "hush"}
            printed = self.run_command(cloud, command, "MailFrom=letmein", environment=secret)[1]
            self.assertEqual(cloud.log[-1][0]["OriginSecret"], "hush")
            self.assertNotIn("hush", printed)
            self.assertNotIn("letmein", printed)

    def test_turning_edge_on_generates_its_secret_once(self):
        cloud = Cloud("1700000001")
        printed = self.run_command(cloud, "deploy", "Edge=true")[1]
        first = cloud.log[-1][0]["EdgeSecret"]
        self.assertRegex(first, "^[0-9a-f]{64}$")
        self.assertNotIn(first, printed)
        self.run_command(cloud, "deploy", "Edge=true")
        self.run_command(cloud, "deploy")
        for given, _ in cloud.log[1:]:
            self.assertNotIn("EdgeSecret", given)

    def test_long_stack_names_are_rejected(self):
        self.assertEqual(deploy.parse(["deploy", "--stack", "a" * 50]).stack, "a" * 50)
        with self.assertRaises(SystemExit), redirect_stderr(io.StringIO()):
            deploy.parse(["deploy", "--stack", "a" * 51])

    def test_empty_values_are_quoted_for_sam(self):
        cloud = Cloud("1700000001")
        self.run_command(cloud, "deploy", "AlarmEmail=", 'MailFrom=""', "--yes", "PublicUrl=https://a?b=c")
        given = cloud.log[0][0]
        self.assertEqual([given[it] for it in ("AlarmEmail", "MailFrom", "PublicUrl")], ['""', '""', "https://a?b=c"])

    def test_roll_back_deploys_the_previous_release_unasked(self):
        cloud = Cloud()
        with mock.patch("deploy.time.time", side_effect=[1700000001, 1700000002, 1700000003]):
            self.run_command(cloud, "deploy", "--architecture", "x86_64")
            self.run_command(cloud, "deploy")
            printed = self.run_command(cloud, "roll-back")[1]
        expected = {"Release": "1700000003-1700000001", "Architecture": "x86_64"}
        self.assertEqual(cloud.log[-1], (expected, False))
        self.assertIn("Rolling waymark back from 1700000002 to 1700000001.\n", printed)
        self.assertIn("1700000001 deployed", self.run_command(cloud, "releases")[1])

    def test_archives_have_a_template_for_each_architecture(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch("deploy.ROOT", Path(folder)):
            self.assertEqual(deploy.template_of("arm64"), Path(folder) / "template.yaml")
            (Path(folder) / "arm64").mkdir()
            (Path(folder) / "arm64" / "template.yaml").touch()
            self.assertEqual(deploy.template_of("arm64"), Path(folder) / "arm64" / "template.yaml")

    def test_missing_region_or_credentials_have_a_remedy(self):
        bare = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true"}
        for command in ("releases", "doctor"):
            for variables, message in [
                ({}, "Set AWS_REGION"),
                ({"AWS_REGION": "eu-central-1"}, "Sign in to the stack's account"),
            ]:
                run = subprocess.run(
                    [sys.executable, SCRIPT, command], env=bare | variables, capture_output=True, text=True, timeout=60
                )
                self.assertEqual(run.returncode, 1)
                self.assertRegex(run.stderr + run.stdout, f"error: [^$]*{message}")

    def test_checks_stop_a_deployment(self):
        for more, calls in ((), 0), (("--unchecked",), 1):
            with (
                mock.patch.object(sys, "argv", ["deploy.py", "deploy", *more]),
                mock.patch("deploy.preflight", return_value=False),
                mock.patch("deploy.boto3"),
                mock.patch.dict(deploy.COMMANDS, deploy=mock.Mock(return_value=True)) as commands,
                mock.patch("deploy.deploy", commands["deploy"]),
            ):
                commands["deploy"].__doc__ = "Deploys."
                self.assertEqual(deploy.main(), 1 - calls)
                self.assertEqual(commands["deploy"].call_count, calls)


class TestRecipes(unittest.TestCase):
    """The commands that make runs."""

    def commands(self, goal: str, *more: str) -> list[str]:
        run = subprocess.run(
            ["make", "--dry-run", "--assume-old=package", "SAM=/sam", goal, *more],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        lines = run.stdout.replace("\\\n", " ").splitlines()
        return [" ".join(line.split()).split("deploy.py ")[1] for line in lines if "deploy.py" in line]

    def test_deployments_are_checked_before_the_build(self):
        checked, deployed = self.commands("deploy", "CONFIG=staging", "PARAMETERS=A=1", "YES=1")
        self.assertEqual(checked, "doctor --stack waymark-staging --stage staging A=1")
        self.assertEqual(
            deployed, "deploy --stack waymark-staging --stage staging A=1 --unchecked --architecture arm64 --yes"
        )
        self.assertEqual(len(self.commands("deploy", "UNCHECKED=1")), 1)

    def test_workflow_of_the_documents_runs_existing_commands(self):
        document = (ROOT / "docs/deployment-from-ci.md").read_text(encoding="utf-8")
        workflow = yaml.safe_load(document.split("```yaml\n")[1].split("```")[0])
        steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
        commands = [step["run"] for step in steps if "run" in step]
        self.assertEqual([it.split()[0] for it in commands], [".ci/run", "make", "make"])
        self.assertTrue(os.access(ROOT / commands[0], os.X_OK))
        for command in commands[1:]:
            dry = command.replace("make ", "make --dry-run SAM=/sam ")
            subprocess.run(dry, shell=True, cwd=ROOT, check=True, capture_output=True, timeout=60)
        self.assertEqual(workflow["jobs"]["deploy"]["permissions"]["id-token"], "write")

    def test_role_of_the_documents_has_valid_policies(self):
        document = (ROOT / "docs/deployment-from-ci.md").read_text(encoding="utf-8")
        script = document.split("```sh\n")[1].split("```")[0]
        fake = """aws() {
            case $* in
                *get-caller-identity*) echo 123456789012 ;;
                *-document*) for last; do :; done; echo $last ;;
            esac
        }
        """
        run = subprocess.run(["bash", "-c", fake + script], check=True, capture_output=True, text=True)
        trust, policy = map(json.loads, run.stdout.splitlines())
        self.assertIn(":oidc-provider/", trust["Statement"][0]["Principal"]["Federated"])
        self.assertIn("arn:aws:iam::123456789012:role/waymark-*", policy["Statement"][1]["Resource"])

    def test_roll_back_accepts_a_release(self):
        self.assertEqual(
            self.commands("roll-back", "TO=1700000001"),
            ["roll-back --stack waymark --stage production --to 1700000001"],
        )


if __name__ == "__main__":
    unittest.main()
