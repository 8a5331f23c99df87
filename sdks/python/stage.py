"""What every test here works with: the SDK as a client, a receiver of webhooks, and names that differ
between the first and the second generation of the SDK.

`ALDABA_URL` and `ALDABA_TOKEN` say which server, and as whom.
"""

import json
import os
import queue
import threading
import time
import unittest
import urllib.request
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import svix
from svix.api import ApplicationIn, EndpointIn, MessageIn, Svix, SvixOptions
from svix import models

URL = os.environ["ALDABA_URL"]
TOKEN = os.environ["ALDABA_TOKEN"]
FIRST_GENERATION = svix.__version__.startswith("1.")

# How long anything may take that the server does by itself.
WAIT_TIMEOUT = 15.0

# No retries: a 5xx must fail a test, not be hidden by the next try.
OPTIONS = SvixOptions(server_url=URL, retry_schedule=[])

# The second generation calls a PUT by its name.
EndpointUpsert = models.EndpointUpdate if FIRST_GENERATION else models.EndpointUpsertIn
EventTypeUpsert = models.EventTypeUpdate if FIRST_GENERATION else models.EventTypeUpsertIn
OperationalUpsert = (
    models.OperationalWebhookEndpointUpdate if FIRST_GENERATION else models.OperationalWebhookEndpointUpsertIn
)
EVENT_TYPES = "filter_types" if FIRST_GENERATION else "event_types"


def put(resource):
    return resource.update if FIRST_GENERATION else resource.upsert


def put_headers(resource):
    return resource.update_headers if FIRST_GENERATION else resource.set_headers


def client(token=TOKEN):
    return Svix(token, OPTIONS)


def unique(prefix):
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def aldaba(method, path, body=None):
    """A request without the SDK, for what only Aldaba has."""
    request = urllib.request.Request(
        f"{URL}/api/v1{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
        return json.loads(text) if text else None


def eventually(look, what):
    """What `look` finds, as soon as it finds something."""
    until = time.monotonic() + WAIT_TIMEOUT
    while True:
        if found := look():
            return found
        if time.monotonic() > until:
            raise AssertionError(f"never seen: {what}")
        time.sleep(0.02)


class Received:
    """A webhook as it came."""

    def __init__(self, headers, body):
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)


class Hook:
    """A path of the receiver. It answers with each of `answers` once, then always with the last one."""

    def __init__(self, url, answers):
        self.url = url
        self.answers = list(answers)
        self.requests = queue.Queue()

    def next(self):
        try:
            return self.requests.get(timeout=WAIT_TIMEOUT)
        except queue.Empty:
            raise AssertionError(f"no webhook came to {self.url}") from None

    def stays_silent(self, seconds=0.5):
        try:
            extra = self.requests.get(timeout=seconds)
        except queue.Empty:
            return
        raise AssertionError(f"a webhook came to {self.url}: {extra.body!r}")

    def answer(self, headers, body):
        self.requests.put(Received(headers, body))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Receiver:
    """An HTTP server with a path for each test."""

    def __init__(self):
        self.hooks = {}
        hooks = self.hooks

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                hook = hooks.get(self.path)
                status = hook.answer(dict(self.headers.items()), body) if hook else 404
                answer = b"" if status == 204 else b'{"seen": true}'
                self.send_response(status)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def hook(self, *answers):
        path = f"/{uuid.uuid4().hex}"
        hook = Hook(f"http://127.0.0.1:{self.server.server_port}{path}", answers or (204,))
        self.hooks[path] = hook
        return hook


RECEIVER = Receiver()


CLIENT = client()


class Test(unittest.TestCase):
    """A test with an application of its own."""

    def setUp(self):
        self.svix = CLIENT
        self.app = self.svix.application.create(ApplicationIn(name=self.id())).id

    def endpoint(self, hook=None, **more):
        return self.svix.endpoint.create(self.app, EndpointIn(url=hook.url if hook else "https://example.com/", **more))

    def quick_endpoint(self, hook):
        """Under this policy a 4xx ends a delivery at once."""
        endpoint = self.endpoint(hook)
        aldaba("PATCH", f"/app/{self.app}/endpoint/{endpoint.id}", {"policy": "quick"})
        return endpoint

    def secret(self, endpoint):
        return self.svix.endpoint.get_secret(self.app, endpoint.id).key

    def send(self, payload=None, event_type="invoice.paid", **more):
        message = MessageIn(event_type=event_type, payload=payload or {"invoice": 42}, **more)
        return self.svix.message.create(self.app, message)

    def event_type(self, **more):
        name = unique("invoice")
        self.svix.event_type.create(models.EventTypeIn(name=name, description="An invoice", **more))
        return name

    def delivered(self, message, status=0):
        """Waits until an attempt of the message has ended so, and returns it."""

        def look():
            found = self.svix.message_attempt.list_by_msg(self.app, message.id).data
            return next((attempt for attempt in found if attempt.status == status), None)

        return eventually(look, f"an attempt of {message.id} with status {status}")


def pages(ask, start=None):
    """Every page from `start` on, as a list of lists."""
    iterator, found = start, []
    while True:
        page = ask(iterator)
        found.append(page)
        if page.done:
            return found
        iterator = page.iterator


def backwards(ask, last):
    """The pages before `last`, nearest first."""
    found, page = [], last
    while page.prev_iterator:
        page = ask(page.prev_iterator)
        if page.data:
            found.append(page)
        if page.done or not page.data:
            return found
    return found


def ids(page_list):
    return [item.id for page in page_list for item in page.data]
