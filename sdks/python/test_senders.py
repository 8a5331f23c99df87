import json
import time
import urllib.error
import urllib.request

from slack_sdk.signature import SignatureVerifier

from stage import Test, aldaba, unique

SECRET = "8f742231b10e8888abcd99yyyzzz85a5"

# Past any window, in seconds.
LONG_AGO = 10 * 60


class Senders(Test):
    def test_what_the_library_of_slack_signs_is_taken_once_and_nothing_else(self):
        source = aldaba("POST", "/ingest/source", {"name": "Slack", "type": "slack", "config": {"secret": SECRET}})
        self.addCleanup(aldaba, "DELETE", f"/ingest/source/{source['id']}")
        event = {"type": "event_callback", "event_id": unique("Ev"), "event": {"type": "app_mention", "text": "¡Añil!"}}
        body = json.dumps(event, ensure_ascii=False).encode()

        def send(body, signed):
            try:
                with urllib.request.urlopen(urllib.request.Request(source["ingestUrl"], body, signed)) as answer:
                    return answer.status, json.loads(answer.read())
            except urllib.error.HTTPError as refused:
                with refused:
                    return refused.code, None

        signed = headers(body, time.time())
        self.assertEqual(send(body, signed), (200, {"received": True}))
        self.assertEqual(send(body, signed), (200, {"received": True, "duplicate": True}))
        self.assertEqual(send(body + b" ", signed)[0], 401)
        self.assertEqual(send(body, {})[0], 401)
        self.assertEqual(send(body, headers(body, time.time() - LONG_AGO))[0], 401)


def headers(body, at):
    at = str(int(at))
    signature = SignatureVerifier(SECRET).generate_signature(timestamp=at, body=body)
    return {"x-slack-request-timestamp": at, "x-slack-signature": signature, "content-type": "application/json"}
