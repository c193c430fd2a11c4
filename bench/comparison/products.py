"""The compared products: each starts on this machine as its documentation describes for production."""

import json
import os
import re
import secrets
import signal
import subprocess
import time
import urllib.request
from http.client import HTTPConnection
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARIES = ROOT / "target" / "debug"
WORK = ROOT / "target" / "comparison"
POSTGRES = Path("/usr/lib/postgresql/15/bin")
UNLEASH = ["node@22.23.3", "unleash-server@8.2.0", "unleash-client@6.12.1"]
BUGSINK = "bugsink==2.6.2"
FLAGS = [f"flag-{number:02}" for number in range(20)]

def run(*command, cwd=WORK, **options) -> str:
    done = subprocess.run([str(word) for word in command], cwd=cwd, text=True, capture_output=True, **options)
    if done.returncode:
        raise SystemExit(f"error: {' '.join(map(str, command))}:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def wait(what: str, condition, seconds: float = 120, pause: float = 0.02):
    until = time.monotonic() + seconds
    while not (result := condition()):
        if time.monotonic() > until:
            raise SystemExit(f"error: not within {seconds} s: {what}")
        time.sleep(pause)
    return result


def proportional_memory(process: int) -> int:
    """Returns the proportional memory (PSS) of a process in bytes, or 0 if it ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text()
    except OSError:
        return 0
    return int(re.search(r"^Pss: +(\d+)", lines, re.MULTILINE)[1]) * 1024


def descendants(ancestors: set[int]) -> set[int]:
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(status.parent.name)] = int(status.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = set(ancestors)
    while more := {it for it, parent in parents.items() if parent in found} - found:
        found |= more
    return found


class Product:
    headers: dict[str, str] = {}

    def __init__(self, port: int):
        self.port = port
        self.processes: list[subprocess.Popen] = []

    def start(self, *command, cwd: Path, env: dict[str, str] | None = None, **options):
        name = f"{type(self).__name__.lower()}-{len(self.processes)}.log"
        with (WORK / name).open("w") as log:
            self.processes.append(subprocess.Popen(
                [str(word) for word in command], cwd=cwd, env=os.environ | (env or {}), stdin=subprocess.DEVNULL,
                stdout=log, stderr=subprocess.STDOUT, start_new_session=True, **options))

    def stop(self):
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            process.wait()

    def memory(self) -> dict[str, float]:
        """Returns the memory of all processes in MB."""
        all_processes = descendants({it.pid for it in self.processes})
        return {"all": sum(map(proportional_memory, all_processes)) / 1e6}

    def connect(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self.port, timeout=600)

    def call(self, method: str, path: str, body=None, headers=None, connection: HTTPConnection | None = None):
        """Returns status and parsed body of the response."""
        connection = connection or self.connect()
        data = body if body is None or isinstance(body, bytes) else json.dumps(body)
        connection.request(method, path, data, {"content-type": "application/json"} | (headers or self.headers))
        response = connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text[:1] in (b"{", b"[") else text

    def expect(self, method: str, path: str, body=None, headers=None):
        status, response = self.call(method, path, body, headers)
        if status >= 400:
            raise SystemExit(f"error: {type(self).__name__}: {method} {path} returned {status}: {response}")
        return response

    def responds(self, path: str) -> bool:
        try:
            return self.call("GET", path)[0] < 500
        except OSError:
            return False


class Waymark(Product):
    """The local stack as `make run` starts it: unoptimized functions on an embedded DynamoDB."""

    name = "Waymark"

    def install(self):
        subprocess.run(["cargo", "build", "--quiet", "--workspace", "--bins", "--locked"], cwd=ROOT, check=True)

    def begin(self):
        self.start(BINARIES / "waymark-local", "--port", self.port, "--dynamodb-port", self.port + 1, cwd=ROOT)
        wait("Waymark responds", lambda: "Waymark runs at" in (WORK / "waymark-0.log").read_text(), 600)
        self.slug = f"comparison-{int(time.time())}"
        create = ["--local", "--json", "project", "create", "--name", "Comparison", "--slug", self.slug]
        self.dsn = json.loads(run(BINARIES / "waymark", *create, cwd=ROOT))["dsn"]
        self.headers = {"x-api-key": (ROOT / ".local" / "demo-key").read_text().strip()}
        for flag in FLAGS:
            halves = {"rollout": [{"variant": "on", "weight": 50}, {"variant": "off", "weight": 50}]}
            self.expect("POST", f"/v0/project/{self.slug}/feature-flags", {
                "key": flag, "name": flag, "type": "boolean", "enabled": True, "fallthrough": halves})

    def memory(self) -> dict[str, float]:
        functions = {}
        for process in descendants({it.pid for it in self.processes}):
            try:
                program = os.readlink(f"/proc/{process}/exe")
            except OSError:
                continue
            if (ROOT / "functions" / Path(program).name).exists():
                functions[process] = proportional_memory(process)
        mean = sum(functions.values()) / len(functions) / 1e6 if functions else 0
        return super().memory() | {"functions": sum(functions.values()) / 1e6, "per function process": mean}

    def flags_request(self, user: str):
        return "POST", f"/v0/project/{self.slug}/ofrep/v1/evaluate/flags", {"context": {"targetingKey": user}}, self.headers

    def flags_on(self, response) -> set[str]:
        return {it["key"] for it in response["flags"] if it["value"] is True}

    def set_flag(self, flag: str, enabled: bool):
        self.expect("PATCH", f"/v0/project/{self.slug}/feature-flags/{flag}", {"enabled": enabled})

    def sdk_source(self) -> dict:
        return {"document": self.expect("GET", f"/v0/project/{self.slug}/flagd.json")}

    def counts(self) -> dict[str, int]:
        """Returns the events of each error, by its type."""
        found, cursor = {}, None
        while True:
            page = self.expect("POST", f"/v0/projects/{self.slug}/errors/query", {"limit": 100, "cursor": cursor})
            found |= {it["title"].split(":")[0]: it["count"] for it in page["items"]}
            if not (cursor := page.get("nextCursor")):
                return found

    def upload_environment(self) -> dict[str, str]:
        return {"SENTRY_ORG": "default", "SENTRY_PROJECT": self.slug, "SENTRY_AUTH_TOKEN": self.headers["x-api-key"]}

    def newest_event(self, kind: str) -> str:
        page = self.expect("POST", f"/v0/projects/{self.slug}/errors/query", {})
        for error in page["items"]:
            if error["title"].startswith(kind):
                return json.dumps(self.expect("GET", f"/v0/projects/{self.slug}/errors/{error['errorId']}/events"))
        return ""


class Unleash(Product):
    name = "Unleash"
    headers = {"authorization": "*:*.comparison-admin"}
    backend, frontend = "default:development.comparison-backend", "default:development.comparison-frontend"

    def install(self):
        folder = WORK / "unleash"
        folder.mkdir(exist_ok=True)
        run("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", folder, *UNLEASH)

    def begin(self):
        # PostgreSQL does not run as root.
        account = {"user": "nobody", "group": "nogroup"} if os.geteuid() == 0 else {}
        data = Path(run("mktemp", "--directory", **account).strip())
        run(POSTGRES / "initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "--username=postgres", data,
            cwd="/", **account)
        database = self.port + 1
        self.start(POSTGRES / "postgres", "-D", data, "-k", data, "-h", "127.0.0.1", "-p", database, cwd=Path("/"),
                   **account)
        create = [POSTGRES / "createdb", "-h", "127.0.0.1", "-p", str(database), "-U", "postgres", "unleash"]
        wait("PostgreSQL responds", lambda: subprocess.run(create, stderr=subprocess.DEVNULL).returncode == 0, 30, 0.2)
        folder = WORK / "unleash" / "node_modules"
        self.start(folder / ".bin" / "node", folder / "unleash-server" / "dist" / "server.js", cwd=folder, env={
            "NODE_ENV": "production", "HTTP_HOST": "127.0.0.1", "PORT": str(self.port), "DATABASE_SSL": "false",
            "DATABASE_URL": f"postgres://postgres:none@127.0.0.1:{database}/unleash",
            "CHECK_VERSION": "false", "SEND_TELEMETRY": "false", "INIT_ADMIN_API_TOKENS": self.headers["authorization"],
            "INIT_BACKEND_API_TOKENS": self.backend, "INIT_FRONTEND_API_TOKENS": self.frontend})
        wait("Unleash responds", lambda: self.responds("/health"))
        for flag in FLAGS:
            features = "/api/admin/projects/default/features"
            self.expect("POST", features, {"name": flag, "type": "release"})
            half = {"rollout": "50", "stickiness": "userId", "groupId": flag}
            environment = f"{features}/{flag}/environments/development"
            self.expect("POST", f"{environment}/strategies", {"name": "flexibleRollout", "parameters": half})
            self.set_flag(flag, True)

    def flags_request(self, user: str):
        return "GET", f"/api/frontend?appName=comparison&userId={user}", None, {"authorization": self.frontend}

    def flags_on(self, response) -> set[str]:
        return {it["name"] for it in response["toggles"]}

    def set_flag(self, flag: str, enabled: bool):
        self.expect("POST", f"/api/admin/projects/default/features/{flag}/environments/development/"
                            f"{'on' if enabled else 'off'}")

    def sdk_source(self) -> dict:
        return {"url": f"http://127.0.0.1:{self.port}/api/", "token": self.backend}


class Bugsink(Product):
    name = "Bugsink"

    def install(self):
        if not (WORK / "bugsink" / "bin").exists():
            run("python3", "-m", "venv", WORK / "bugsink")
        run(WORK / "bugsink" / "bin" / "pip", "install", "--quiet", BUGSINK)

    def begin(self):
        programs, folder = WORK / "bugsink" / "bin", WORK / "bugsink-data"
        run("rm", "-rf", folder)
        folder.mkdir()
        run(programs / "bugsink-create-conf", "--template", "singleserver", "--host", f"127.0.0.1:{self.port}",
            "--base-dir", folder, cwd=folder)
        settings = folder / "bugsink_conf.py"
        # No TLS here. The default quotas reject most of 5,000 events within minutes.
        settings.write_text(settings.read_text().replace("https://127", "http://127") + """
for _period in ("5_MINUTES", "HOUR", "MONTH"):
    for _scope in ("", "PER_PROJECT_"):
        BUGSINK[f"MAX_EVENTS_{_scope}PER_{_period}"] = 10_000_000
BUGSINK["PHONEHOME"] = False
""")
        manage = programs / "bugsink-manage"
        run(manage, "migrate", cwd=folder)
        run(manage, "migrate", "--database=snappea", cwd=folder)
        self.headers = {"authorization": f"Bearer {run(manage, 'create_auth_token', cwd=folder).strip()}"}
        self.start(programs / "gunicorn", f"--bind=127.0.0.1:{self.port}", "--workers=4", "--timeout=60",
                   "bugsink.wsgi", cwd=folder)
        self.start(programs / "bugsink-runsnappea", cwd=folder)
        wait("Bugsink responds", lambda: self.responds("/api/canonical/0/teams/"))
        team = self.expect("POST", "/api/canonical/0/teams/", {"name": "Shop"})
        self.expect("POST", "/api/canonical/0/projects/", {"name": "Shop", "team": team["id"]})
        self.dsn = self.expect("GET", "/api/canonical/0/projects/1/")["dsn"]

    def counts(self) -> dict[str, int]:
        found, path = {}, "/api/canonical/0/issues/?project=1"
        while path:
            page = self.expect("GET", path)
            found |= {it["calculated_type"]: it["digested_event_count"] for it in page["results"]}
            path = page["next"] and page["next"].split(str(self.port), 1)[1]
        return found

    def upload_environment(self) -> dict[str, str]:
        return {"SENTRY_ORG": "bugsink", "SENTRY_PROJECT": "shop",
                "SENTRY_AUTH_TOKEN": self.headers["authorization"].split()[1]}

    def newest_event(self, kind: str) -> str:
        for issue in self.expect("GET", "/api/canonical/0/issues/?project=1")["results"]:
            if issue["calculated_type"] == kind:
                (event, *_) = self.expect("GET", f"/api/canonical/0/events/?issue={issue['id']}")["results"]
                return json.dumps(self.expect("GET", f"/api/canonical/0/events/{event['id']}/"))
        return ""
