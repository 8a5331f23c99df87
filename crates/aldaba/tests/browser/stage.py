"""A real server, a receiver that answers as a test says, and Debian's Chromium."""

import http.server
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

BINARY = os.environ["ALDABA_BINARY"]
CHROMIUM = os.environ.get("ALDABA_CHROMIUM", "/usr/bin/chromium")
HERE = Path(__file__).parent
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# A page that does not show something by then fails its test.
TIMEOUT_MS = 20_000


class Receiver:
    """Answers every request with a status, which a test may change, by path too."""

    def __init__(self):
        self.status = 200
        self.paths = {}
        self.received = []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                status = receiver.paths.get(self.path, receiver.status)
                receiver.received.append((self.path, body))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(b"an answer of the receiver")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def url(self, path):
        return f"http://127.0.0.1:{self.server.server_port}{path}"


class Server:
    """`aldaba serve` in a folder of its own."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="aldaba-browser-")
        self.data = Path(self.folder.name) / "data"
        self.listen = "127.0.0.1:0"
        self.start()

    def start(self):
        environment = {**os.environ, "ALDABA_ALLOW_NETWORKS": "127.0.0.0/8", "ALDABA_LOG": "error"}
        command = [BINARY, "serve", "--listen", self.listen, "--data", str(self.data)]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        # Another start is at the same address.
        self.listen = self.url.removeprefix("http://")
        self.hello = self.process.stdout.readline()

    def stop(self):
        self.process.terminate()
        self.process.communicate(timeout=30)

    def command(self, *words):
        run = subprocess.run([BINARY, *words, "--data", str(self.data)], capture_output=True, text=True, check=True)
        return run.stdout.strip()

    def link(self):
        """A link that logs in once."""
        return self.command("dashboard")


class Api:
    def __init__(self, server):
        self.server = server
        self.token = server.command("token", "create")

    def call(self, method, path, body=None):
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.server.url}/api/v1{path}", data, headers, method=method)
        with urllib.request.urlopen(request) as response:
            text = response.read()
        return json.loads(text) if text else None

    def application(self, name):
        return self.call("POST", "/app", {"name": name})["id"]

    def endpoint(self, app, url, **more):
        return self.call("POST", f"/app/{app}/endpoint", {"url": url, **more})["id"]

    def message(self, app, event_type="invoice.paid", payload=None, **more):
        body = {"eventType": event_type, "payload": payload or {"invoice": 42}, **more}
        return self.call("POST", f"/app/{app}/msg", body)["id"]

    def wait(self, path, condition):
        """Polls until the answer is as wanted."""
        for _ in range(2000):
            answer = self.call("GET", path)
            if condition(answer):
                return answer
            time.sleep(0.01)
        raise AssertionError(f"{path}: still {answer}")


def short_policy(api):
    """As `public-api`, which fails an endpoint after its last attempt, but within seconds. Returns its name."""
    policy = api.call("GET", "/policy/public-api")
    schedule = {"type": "list", "delays": ["1s", "1s"]}
    new = {"schedule": schedule, "jitter": {"type": "none"}, "endpointFails": policy["endpointFails"], "probe": None}
    api.call("PUT", "/policy/short", new)
    return "short"


class Stage(unittest.TestCase):
    """What the tests of one class share: a server, a receiver, a browser."""

    @classmethod
    def setUpClass(cls):
        cls.server = Server()
        cls.receiver = Receiver()
        cls.api = Api(cls.server)
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.server.stop()
        cls.server.folder.cleanup()

    def setUp(self):
        self.receiver.status = 200
        self.receiver.paths = {}

    def page(self, logged_in=True, **options):
        """A page of a browser without a past. What its content policy refuses fails the test."""
        context = self.browser.new_context(base_url=self.server.url, **options)
        self.addCleanup(context.close)
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        self.violations = []
        page.on("console", lambda message: self.violations.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.violations.append(str(error)))
        if logged_in:
            self.log_in(page)
        return page

    def log_in(self, page):
        page.goto(self.server.link())
        if not self.has_script(page):
            page.get_by_role("button", name=re.compile("^(Open|Abrir)$")).click()
        page.wait_for_url("**/dashboard")

    @staticmethod
    def has_script(page):
        return page.locator("html[data-script]").count() > 0

    def tearDown(self):
        self.assertEqual(getattr(self, "violations", []), [], "the console of the page")
