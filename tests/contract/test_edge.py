"""Tests the function that the distribution runs on requests. Run by `make test`."""

import json
import subprocess
import unittest
from pathlib import Path

from cfnlint.decode import cfn_yaml

TEMPLATE = Path(__file__).resolve().parents[2] / "template.yaml"


class EdgeFunction(unittest.TestCase):
    def test_headers_of_clients_are_replaced(self):
        function = cfn_yaml.load(str(TEMPLATE))["Resources"]["EdgeFunction"]["Properties"]["FunctionCode"]
        headers = {
            "host": {"value": "d111111abcdef8.cloudfront.net"},
            "x-api-key": {"value": "key"},
            "x-waymark-viewer-address": {"value": "forged"},
            "x-waymark-viewer-host": {"value": "forged"},
        }
        event = {"viewer": {"ip": "2001:db8::7"}, "request": {"method": "GET", "uri": "/", "headers": headers}}
        script = f"{function}\nconsole.log(JSON.stringify(handler({json.dumps(event)})))"
        done = subprocess.run(["node", "--eval", script], capture_output=True, text=True, check=True)
        forwarded = {name: it["value"] for name, it in json.loads(done.stdout)["headers"].items()}
        self.assertEqual(
            forwarded,
            {
                "host": "d111111abcdef8.cloudfront.net",
                "x-api-key": "key",
                "x-waymark-viewer-address": "2001:db8::7",
                "x-waymark-viewer-host": "d111111abcdef8.cloudfront.net",
            },
        )


if __name__ == "__main__":
    unittest.main()
