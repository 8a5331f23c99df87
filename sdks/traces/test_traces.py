"""Decodes what the server exports with the official schema of OTLP.

`ALDABA_BINARY` is the program. The test starts it with a collector of its own.
"""

import json
import os
import queue
import subprocess
import tempfile
import threading
import unittest
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

BINARY = os.environ["ALDABA_BINARY"]
WAIT_TIMEOUT = 20.0
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER = f"00-{TRACE}-00f067aa0ba902b7-01"


class Server(ThreadingHTTPServer):
    """Keeps the requests; answers with `status`."""

    daemon_threads = True

    def __init__(self, status):
        self.status = status
        self.requests = queue.Queue()
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.put((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Aldaba:
    """The program, with everything traced."""

    def __init__(self, collector):
        self.folder = tempfile.TemporaryDirectory()
        environment = {
            "ALDABA_ALLOW_NETWORKS": "127.0.0.0/8",
            "ALDABA_OTLP_URL": collector.url,
            "ALDABA_OTLP_HEADERS": "x-team=tests,authorization=Basic abc=",
            "ALDABA_TRACE_SAMPLE": "1",
            "ALDABA_TRACE_SERVICE": "hooks",
        }
        self.program = subprocess.Popen(
            [BINARY, "serve", "--listen", "127.0.0.1:0"],
            cwd=self.folder.name,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for line in self.program.stdout:
            if line.startswith("Aldaba listens on "):
                self.url = line.split()[-1]
            if line.startswith("For an API token"):
                break
        created = subprocess.run([BINARY, "token", "create"], cwd=self.folder.name, env={}, capture_output=True)
        self.token = created.stdout.decode().strip()

    def post(self, path, body, **headers):
        headers |= {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read())

    def stop(self):
        self.program.terminate()
        self.program.wait(WAIT_TIMEOUT)
        self.program.stdout.close()
        self.folder.cleanup()


def without_unknown_fields(message):
    """Whether the schema knows every field."""
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return known.SerializeToString(deterministic=True) == message.SerializeToString(deterministic=True)


class Traces(unittest.TestCase):
    def setUp(self):
        self.all = []
        self.collector = Server(200)
        self.receiver = Server(500)
        self.aldaba = Aldaba(self.collector)
        self.addCleanup(self.aldaba.stop)
        for server in (self.collector, self.receiver):
            self.addCleanup(server.server_close)
            self.addCleanup(server.shutdown)
        self.app = self.aldaba.post("/app", {"name": "traced"})["id"]
        endpoint = {"url": f"{self.receiver.url}/path?query", "policy": "job-status"}
        self.endpoint = self.aldaba.post(f"/app/{self.app}/endpoint", endpoint)["id"]

    def spans(self, count):
        """Those of messages. The requests that made the application and the endpoint have spans too."""
        found = []
        while len(found) < count:
            path, headers, body = self.collector.requests.get(timeout=WAIT_TIMEOUT)
            self.assertEqual(path, "/v1/traces")
            self.assertEqual(headers["content-type"], "application/x-protobuf")
            self.assertEqual((headers["x-team"], headers["authorization"]), ("tests", "Basic abc="))
            request = ExportTraceServiceRequest.FromString(body)
            self.assertTrue(without_unknown_fields(request), request)
            [resource] = request.resource_spans
            attributes = {one.key: one.value.string_value for one in resource.resource.attributes}
            self.assertEqual(attributes["service.name"], "hooks")
            self.assertTrue(attributes["service.version"])
            [scope] = resource.scope_spans
            self.assertEqual(scope.scope.name, "aldaba")
            self.all += scope.spans
            found += (span for span in scope.spans if any(one.key == "aldaba.message.id" for one in span.attributes))
        self.assertEqual(len(found), count)
        return sorted(found, key=lambda span: span.start_time_unix_nano)

    def test_a_message_is_a_trace_from_its_request_to_its_last_attempt(self):
        event = {"eventType": "a", "payload": {"secret": "payload"}}
        message = self.aldaba.post(f"/app/{self.app}/msg", event)["id"]
        request, commit, *attempts = spans = self.spans(5)
        kinds = [span.kind for span in spans]
        client = Span.SpanKind.SPAN_KIND_CLIENT
        expected = [Span.SpanKind.SPAN_KIND_SERVER, Span.SpanKind.SPAN_KIND_INTERNAL, client, client, client]
        self.assertEqual(kinds, expected)
        self.assertEqual(request.name, "POST /api/v1/app/{app_id}/msg")
        self.assertEqual(request.parent_span_id, b"")
        self.assertEqual(request.status.code, Status.StatusCode.STATUS_CODE_UNSET)
        for span in spans:
            self.assertEqual(span.trace_id, request.trace_id)
            self.assertEqual((len(span.trace_id), len(span.span_id)), (16, 8))
            self.assertLessEqual(span.start_time_unix_nano, span.end_time_unix_nano)
            [found] = [one.value.string_value for one in span.attributes if one.key == "aldaba.message.id"]
            self.assertEqual(found, message)
        for number, attempt in enumerate(attempts, 1):
            self.assertEqual(attempt.parent_span_id, request.span_id)
            self.assertEqual(attempt.status.code, Status.StatusCode.STATUS_CODE_ERROR)
            values = {one.key: one.value for one in attempt.attributes}
            self.assertEqual(values["aldaba.attempt"].int_value, number)
            self.assertEqual(values["http.response.status_code"].int_value, 500)
            self.assertEqual(values["aldaba.endpoint.id"].string_value, self.endpoint)
            self.assertEqual(values["server.port"].int_value, self.receiver.server_port)
        self.assertEqual(len({span.span_id for span in spans}), 5)
        for secret in (b"payload", b"path", b"query"):
            self.assertNotIn(secret, b"".join(span.SerializeToString() for span in spans).replace(b"{app_id}", b""))

    def test_a_batch_is_a_span_that_is_linked_with_the_first_spans_of_its_messages(self):
        event = {"eventType": "a", "payload": {}}
        self.aldaba.post(f"/app/{self.app}/msg/batch", {"messages": [event, event]})
        commits = [span for span in self.spans(8) if span.name == "accept commit"]
        [request] = [span for span in self.all if span.name == "POST /api/v1/app/{app_id}/msg/batch"]
        self.assertEqual(request.kind, Span.SpanKind.SPAN_KIND_SERVER)
        links = {(link.trace_id, link.span_id) for link in request.links}
        self.assertEqual(links, {(span.trace_id, span.span_id) for span in commits})
        self.assertEqual(len(links), 2)

    def test_a_message_joins_the_trace_of_its_sender(self):
        event = {"eventType": "a", "payload": {}}
        self.aldaba.post(f"/app/{self.app}/msg", event, traceparent=CALLER)
        spans = self.spans(5)
        self.assertEqual({span.trace_id.hex() for span in spans}, {TRACE})
        self.assertEqual(spans[0].parent_span_id.hex(), "00f067aa0ba902b7")


if __name__ == "__main__":
    unittest.main()
