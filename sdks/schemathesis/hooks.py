"""Real things for schemathesis to talk about, so that not every path ends in a 404.

Most generated ids are replaced by ids that exist; one in eight stays what it was. What is deleted was made
for that. URLs of endpoints are led to a closed port of this machine: nothing leaves it.
"""

import ast
import itertools
import json
import os
import threading
import time
import urllib.parse
import urllib.request
import zlib

import schemathesis

URL = os.environ["ALDABA_URL"] + "/api/v1"
TOKEN = os.environ["ALDABA_TOKEN"]
NOWHERE = "http://127.0.0.1:9/"
WAIT_TIMEOUT = 10


def one_at_a_time(parse):
    """Before 3.13, CPython counts the depth of the trees it builds for all threads together (its issue 106905): of
    two workers that parse at once, one may end in a SystemError."""
    turn = threading.RLock()

    def parse_in_turn(*arguments, **options):
        with turn:
            return parse(*arguments, **options)

    return parse_in_turn


ast.parse = one_at_a_time(ast.parse)


def ask(method, path, body=None):
    request = urllib.request.Request(
        URL + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"authorization": f"Bearer {TOKEN}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        text = answer.read()
        return json.loads(text) if text else {}


def until(look):
    end = time.monotonic() + WAIT_TIMEOUT
    while not (found := look()):
        if time.monotonic() > end:
            raise RuntimeError("the scene for schemathesis could not be set")
        time.sleep(0.05)
    return found


class Scene:
    """One thing of every kind."""

    def __init__(self):
        self.numbers = itertools.count(1)
        self.ids = {}
        self.ids["app_id"] = self.app()
        self.ids["event_type_name"] = self.event_type()
        self.ids["endpoint_id"] = self.endpoint()
        # A replay gives a delivery another id; this one has an endpoint to itself that nobody hears of.
        quiet = self.endpoint()
        self.ids["msg_id"] = self.message()
        app, endpoint, message = (self.ids[name] for name in ("app_id", "endpoint_id", "msg_id"))
        attempts = until(lambda: ask("GET", f"/app/{app}/attempt/msg/{message}")["data"])
        self.ids["attempt_id"] = attempts[0]["id"]
        self.ids["delivery_id"] = ask("GET", f"/app/{app}/delivery?endpoint={quiet}")["data"][0]["id"]
        since = {"since": "2026-01-31T00:00:00Z"}
        self.ids["task_id"] = ask("POST", f"/app/{app}/endpoint/{endpoint}/recover", since)["id"]
        self.ids["policy_name"] = self.policy()
        self.ids["profile_name"] = self.profile()
        self.ids["key_id"] = self.key()
        self.ids["job_id"] = self.job()
        self.ids["operational"] = self.operational()
        self.ids["source_id"] = self.source()
        self.ids["behind"] = self.behind()
        self.ids["event_id"], self.ids["token"] = self.event()
        self.ids["origin"] = urllib.parse.quote(NOWHERE.rstrip("/"), safe="")

    def name(self, kind):
        # In one step: there are two workers.
        return f"{kind}-{next(self.numbers)}"

    def app(self):
        return ask("POST", "/app", {"name": "For schemathesis"})["id"]

    def endpoint(self):
        # Deliveries fail at once and are given up at once.
        body = {"url": NOWHERE, "policy": "job-status"}
        return ask("POST", f"/app/{self.ids['app_id']}/endpoint", body)["id"]

    def job(self):
        name = self.name("job")
        body = {"jobId": name, "jobType": "export", "status": "completed", "webhookUrl": NOWHERE}
        ask("POST", f"/app/{self.ids['app_id']}/job", body)
        return name

    def message(self):
        body = {"eventType": "invoice.paid", "payload": {"invoice": 42}}
        return ask("POST", f"/app/{self.ids['app_id']}/msg", body)["id"]

    def event_type(self):
        body = {"name": self.name("invoice"), "description": "An invoice"}
        return ask("POST", "/event-type", body)["name"]

    def policy(self):
        body = ask("GET", "/policy/quick")
        return ask("POST", "/policy", {**body, "name": self.name("policy")})["name"]

    def profile(self):
        body = ask("GET", "/profile/standard")
        return ask("POST", "/profile", {**body, "name": self.name("profile")})["name"]

    def key(self):
        return ask("POST", "/api-key", {"name": "For schemathesis", "scope": "read"})["id"]

    def operational(self):
        return ask("POST", "/operational-webhook/endpoint", {"url": NOWHERE})["id"]

    def source(self):
        return ask("POST", "/ingest/source", {"name": "For schemathesis", "type": "generic-webhook"})["id"]

    def behind(self):
        return ask("POST", f"/ingest/source/{self.ids['source_id']}/endpoint", {"url": NOWHERE})["id"]

    def event(self):
        url = ask("GET", f"/ingest/source/{self.ids['source_id']}")["ingestUrl"]
        name = self.name("event")
        with urllib.request.urlopen(urllib.request.Request(url, b"{}", {"webhook-id": name})) as answer:
            answer.read()
        return name, url.rsplit("/", 1)[1]

    def portal_token(self):
        return ask("POST", f"/auth/app-portal-access/{self.ids['app_id']}", {})["token"]

    def fresh(self, name):
        """A new one, where it is about to be deleted."""
        kinds = {
            "app_id": self.app,
            "endpoint_id": self.endpoint,
            "msg_id": self.message,
            "event_type_name": self.event_type,
            "policy_name": self.policy,
            "profile_name": self.profile,
            "key_id": self.key,
            "operational": self.operational,
            "source_id": self.source,
            "behind": self.behind,
        }
        return kinds[name]() if name in kinds else self.ids[name]


SCENE = Scene()
# What only an answer has; it may come back in a request, where the document does not name it.
READ_ONLY = ("name", "builtIn")
# Bodies that are hardly ever made up right: a good one with one made-up field is sent now and then.
GOOD = {
    start: {field: value for field, value in ask("GET", path).items() if field not in READ_ONLY}
    for start, path in (("/policy", "/policy/quick"), ("/profile", "/profile/standard"))
}


@schemathesis.auth(refresh_interval=None)
class Token:
    def get(self, case, context):
        # Logging out ends the token that is sent, which must not be ours.
        return SCENE.portal_token() if case.operation.path.endswith("/auth/logout") else TOKEN

    def set(self, case, data, context):
        case.headers = {**(case.headers or {}), "Authorization": f"Bearer {data}"}


@schemathesis.hook
def before_call(context, case, **_):
    chance = zlib.crc32(repr((case.path_parameters, case.query, case.body)).encode())
    linked = case.meta is not None and case.meta.phase.name == "stateful"
    wrong = case.meta is not None and case.meta.generation.mode.is_negative
    path = case.operation.path.removeprefix("/api/v1")
    parameters = case.path_parameters or {}
    for name, value in parameters.items():
        deleted = case.method.upper() == "DELETE" and path.removesuffix("/content").endswith("{" + name + "}")
        deleted = deleted or path.endswith("/erase")
        known = value in SCENE.ids.values() or came_from_an_answer(name, value)
        kind = endpoint_kind(path) if name == "endpoint_id" else name
        if kind in SCENE.ids and (deleted and known or chance % 8 and not (linked and known)):
            parameters[name] = SCENE.fresh(kind) if deleted else SCENE.ids[kind]
    if isinstance(case.body, dict):
        good = next((body for start, body in GOOD.items() if path.startswith(start)), None)
        # A body that is wrong on purpose stays wrong.
        if good and chance % 2 and not wrong:
            case.body = {**good, **dict(list(case.body.items())[: chance % 3])}
            if not parameters:
                case.body["name"] = SCENE.name("made-up")
        for field in ("url", "webhookUrl"):
            if ":" in str(case.body.get(field)):
                case.body[field] = NOWHERE


def endpoint_kind(path):
    """Some resources have endpoints of their own."""
    kinds = {"/operational-webhook": "operational", "/ingest": "behind"}
    return next((kind for start, kind in kinds.items() if path.startswith(start)), "endpoint_id")


def came_from_an_answer(name, value):
    """An id of the right kind, which schemathesis has seen before and goes on with."""
    prefixes = {"app_id": "app_", "endpoint_id": "ep_", "msg_id": "msg_", "attempt_id": "atmpt_"}
    return str(value).startswith(prefixes.get(name, "\0"))
