"""Checks the SAM commands of `make deploy` and `make roll-back`. Run by `make test`."""

import shlex
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def sam_commands(target: str) -> list[list[str]]:
    """Returns the words of each SAM command that `make TARGET` would run."""
    printed = subprocess.run(
        ["make", "--dry-run", "--directory", ROOT, target, "SAM=/sam"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.replace("\\\n", " ")
    words = [shlex.split(line.lstrip("@")) for line in printed.splitlines() if " /sam " in line]
    return [line[line.index("/sam") :] for line in words]


class DeployCommands(unittest.TestCase):
    def test_each_sam_command_names_the_configuration(self) -> None:
        """By default, SAM CLI looks next to the template in target/package, and finds no stack name."""
        for target, subcommands in [("deploy", ["package", "deploy"]), ("roll-back", ["deploy"])]:
            commands = sam_commands(target)
            self.assertEqual([command[1] for command in commands], subcommands)
            for command in commands:
                named = command[command.index("--config-file") + 1] if "--config-file" in command else None
                self.assertEqual(named, str(ROOT / "samconfig.toml"), command)


if __name__ == "__main__":
    unittest.main()
