"""Starts packed functions of this machine's architecture under a Lambda Runtime API.

Usage: start_functions.py [FUNCTION...]; without names, all functions.

Each function gets one event and must respond. There is no DynamoDB. An operation rejects a request
without a key before it calls DynamoDB. A job must report a failure instead of crashing.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_SECONDS = 30

REQUEST = {
    "version": "2.0",
    "routeKey": "$default",
    "rawPath": "/",
    "rawQueryString": "",
    "headers": {"content-type": "application/json"},
    "requestContext": {
        "http": {"method": "POST", "path": "/", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
        "requestId": "start",
        "stage": "$default",
    },
    "body": "{}",
    "isBase64Encoded": False,
}


class Server(ThreadingHTTPServer):
    """A server that ignores connections that functions close early, because they are all killed."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        pass


class Invocation:
    """An event, and a function's response to it."""

    def __init__(self, event: dict) -> None:
        self.event = json.dumps(event).encode()
        self.delivered = False
        self.path = ""
        self.response = b""
        self.responded = threading.Event()


def runtime_api(invocation: Invocation) -> Server:
    """Starts a Runtime API with a single invocation."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if invocation.delivered:
                # Blocks as Lambda does until the next event; the function is killed before.
                threading.Event().wait(TIMEOUT_SECONDS)
                return
            invocation.delivered = True
            self.send_response(200)
            self.send_header("Lambda-Runtime-Aws-Request-Id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
            self.send_header("Lambda-Runtime-Deadline-Ms", "4102444800000")
            self.send_header(
                "Lambda-Runtime-Invoked-Function-Arn",
                "arn:aws:lambda:eu-west-1:123456789012:function:packed",
            )
            self.send_header("Content-Length", str(len(invocation.event)))
            self.end_headers()
            self.wfile.write(invocation.event)

        def do_POST(self) -> None:
            invocation.response = self.rfile.read(int(self.headers["Content-Length"] or 0))
            invocation.path = self.path
            self.send_response(202)
            self.send_header("Content-Length", "0")
            self.end_headers()
            invocation.responded.set()

        def log_message(self, *_: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def is_job(function: str) -> bool:
    """Returns True if a schedule invokes the function instead of requests."""
    manifest = (ROOT / "functions" / function / "Cargo.toml").read_text(encoding="utf-8")
    return re.search("^schedule = ", manifest, re.MULTILINE) is not None


def start(function: str, folder: Path) -> str | None:
    """Starts a function from its archive and returns the fault found, if any."""
    archive = ROOT / "target" / "package" / f"{function}.zip"
    if not archive.exists():
        return "not packed; run make package ARCHITECTURE=x86_64"
    binary = folder / function
    with ZipFile(archive) as packed:
        binary.write_bytes(packed.read("bootstrap"))
    binary.chmod(0o755)
    invocation = Invocation({} if is_job(function) else REQUEST)
    server = runtime_api(invocation)
    environment = {
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1",
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
        "AWS_LAMBDA_FUNCTION_NAME": function,
        "AWS_LAMBDA_FUNCTION_VERSION": "1",
        "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_port}",
        "AWS_REGION": "eu-west-1",
        "AWS_SECRET_ACCESS_KEY": "none",
        "WAYMARK_CURSOR_KEY": "none",
        "PATH": os.environ["PATH"],
        "WAYMARK_TABLE_PREFIX": "waymark-",
    }
    process = subprocess.Popen([binary], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        if not invocation.responded.wait(TIMEOUT_SECONDS):
            process.kill()
            printed = process.communicate()[0].decode(errors="replace")
            return f"no response within {TIMEOUT_SECONDS} seconds; output:\n{printed}"
        if "/invocation/" not in invocation.path:
            return f"startup failed: {invocation.response.decode(errors='replace')}"
        if is_job(function):
            return None
        if not invocation.path.endswith("/response"):
            return f"invocation failed: {invocation.response.decode(errors='replace')}"
        response = json.loads(invocation.response)
        if not 400 <= response["statusCode"] < 500:
            return f"returned {response}"
        return None
    finally:
        process.kill()
        process.wait()
        server.shutdown()


def main() -> int:
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for function in sys.argv[1:] or sorted(path.name for path in (ROOT / "functions").iterdir()):
            fault = start(function, Path(folder))
            print(f"{function:34}{'starts' if fault is None else fault}", flush=True)
            failed |= fault is not None
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
