"""Real things for schemathesis to talk about, so that not every path ends in a 404.

Most generated ids are replaced by ids that exist; one in eight stays what it was. What is deleted was made
for that. URLs of endpoints are led to a closed port of this machine: nothing leaves it.
"""

import json
import os
import time
import urllib.parse
import urllib.request
import zlib

import schemathesis

URL = os.environ["ALDABA_URL"] + "/api/v1"
TOKEN = os.environ["ALDABA_TOKEN"]
NOWHERE = "http://127.0.0.1:9/"
PATIENCE = 10


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
    end = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > end:
            raise RuntimeError("the scene for schemathesis could not be set")
        time.sleep(0.05)
    return found


class Scene:
    """One thing of every kind."""

    def __init__(self):
        self.count = 0
        self.ids = {}
        self.ids["app_id"] = self.app()
        self.ids["event_type_name"] = self.event_type()
        self.ids["endpoint_id"] = self.endpoint()
        self.ids["msg_id"] = self.message()
        app, endpoint, message = (self.ids[name] for name in ("app_id", "endpoint_id", "msg_id"))
        attempts = until(lambda: ask("GET", f"/app/{app}/attempt/msg/{message}")["data"])
        self.ids["attempt_id"] = attempts[0]["id"]
        self.ids["delivery_id"] = ask("GET", f"/app/{app}/delivery")["data"][0]["id"]
        since = {"since": "2026-01-31T00:00:00Z"}
        self.ids["task_id"] = ask("POST", f"/app/{app}/endpoint/{endpoint}/recover", since)["id"]
        self.ids["policy_name"] = self.policy()
        self.ids["profile_name"] = self.profile()
        self.ids["origin"] = urllib.parse.quote(NOWHERE.rstrip("/"), safe="")

    def name(self, kind):
        self.count += 1
        return f"{kind}-{self.count}"

    def app(self):
        return ask("POST", "/app", {"name": "For schemathesis"})["id"]

    def endpoint(self):
        # Deliveries fail at once and are given up at once.
        body = {"url": NOWHERE, "policy": "job-status"}
        return ask("POST", f"/app/{self.ids['app_id']}/endpoint", body)["id"]

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
        body = {"name": self.name("profile"), "headers": {"x-id": "{id}"}, "signature": {"scheme": "none"}}
        return ask("POST", "/profile", body)["name"]

    def fresh(self, name):
        """A new one, where it is about to be deleted."""
        kinds = {
            "app_id": self.app,
            "endpoint_id": self.endpoint,
            "msg_id": self.message,
            "event_type_name": self.event_type,
            "policy_name": self.policy,
            "profile_name": self.profile,
        }
        return kinds[name]() if name in kinds else self.ids[name]


SCENE = Scene()
# What else ends with the path's last thing.
ENDS = ("/content", "/expire", "/logout", "/cancel")


@schemathesis.hook
def before_call(context, case, **_):
    path = case.operation.path
    parameters = case.path_parameters or {}
    last = next((name for name in reversed(list(parameters)) if path.endswith("{" + name + "}")), None)
    deletes = case.method.upper() == "DELETE"
    for name, value in parameters.items():
        if name in SCENE.ids and replaced(value):
            parameters[name] = SCENE.fresh(name) if deletes and name == last else SCENE.ids[name]
    if isinstance(case.body, dict) and str(case.body.get("url")).startswith("http"):
        case.body["url"] = NOWHERE


def replaced(value):
    """Ids that came out of an answer stay, and so does one in eight of those that did not."""
    text = str(value)
    return not text.startswith(("app_", "ep_", "msg_", "atmpt_", "dlv_", "qtask_")) and zlib.crc32(text.encode()) % 8
