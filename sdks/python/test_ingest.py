import hashlib
import hmac
import json
import urllib.request

from svix import models
from svix.exceptions import HTTPValidationError
from svix.models import IngestEndpointHeadersIn, IngestEndpointIn, IngestEndpointSecretIn, IngestSourceIn
from svix.webhooks import Webhook

from stage import FIRST_GENERATION, RECEIVER, Test, put, put_headers, unique

EndpointUpsert = models.IngestEndpointUpdate if FIRST_GENERATION else models.IngestEndpointUpsertIn


class Ingest(Test):
    def setUp(self):
        super().setUp()
        self.sources, self.endpoints = self.svix.ingest.source, self.svix.ingest.endpoint

    def made(self, kind="github", config=None, **more):
        source = IngestSourceIn(name="From them", type=kind, config=config or {"secret": "a secret"}, **more)
        source = self.sources.create(source)
        self.addCleanup(self.sources.delete, source.id)
        return source

    def test_what_was_created_is_read_back_without_its_secret(self):
        uid = unique("door")
        made = self.made(uid=uid, metadata={"a": "1"})
        self.assertEqual((made.uid, made.name, made.type, made.metadata), (uid, "From them", "github", {"a": "1"}))
        self.assertNotIn("a secret", made.model_dump_json())
        self.assertEqual(self.sources.get(uid), made)
        self.assertIn(made.id, [one.id for one in self.sources.list().data])

    def test_it_can_be_changed_and_its_token_rotated(self):
        made = self.made()
        other = IngestSourceIn(name="From others", type="clerk", config={"secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
        changed = put(self.sources)(made.id, other)
        self.assertEqual((changed.id, changed.type, changed.ingest_url), (made.id, "clerk", made.ingest_url))
        self.assertNotEqual(self.sources.rotate_token(made.id).ingest_url, made.ingest_url)

    def test_a_type_that_is_not_served_is_refused(self):
        with self.assertRaises(HTTPValidationError) as refused:
            self.made("cron", {"schedule": "* * * * *", "payload": "{}"})
        self.assertIn("github", refused.exception.detail[0].msg)

    def test_its_endpoints_can_be_managed(self):
        source = self.made().id
        made = self.endpoints.create(source, IngestEndpointIn(url="https://example.com/", description="Ours"))
        self.assertEqual(self.endpoints.get(source, made.id), made)
        self.assertEqual([one.id for one in self.endpoints.list(source).data], [made.id])
        changed = put(self.endpoints)(source, made.id, EndpointUpsert(url="https://example.com/new"))
        self.assertEqual((changed.id, changed.url), (made.id, "https://example.com/new"))
        put_headers(self.endpoints)(source, made.id, IngestEndpointHeadersIn(headers={"x-team": "a"}))
        self.assertEqual(self.endpoints.get_headers(source, made.id).headers, {"x-team": "a"})
        old = self.endpoints.get_secret(source, made.id).key
        self.endpoints.rotate_secret(source, made.id, IngestEndpointSecretIn())
        self.assertNotEqual(self.endpoints.get_secret(source, made.id).key, old)
        self.endpoints.delete(source, made.id)
        self.assertEqual(self.endpoints.list(source).data, [])

    def test_what_a_sender_signs_is_forwarded_once(self):
        hook, source = RECEIVER.hook(), self.made()
        made = self.endpoints.create(source.id, IngestEndpointIn(url=hook.url))
        body = b'{"ref": "refs/heads/main"}'
        headers = {
            "x-github-event": "push",
            "x-github-delivery": unique("delivery"),
            "x-hub-signature-256": "sha256=" + hmac.new(b"a secret", body, hashlib.sha256).hexdigest(),
        }
        answers = []
        for _ in range(2):
            with urllib.request.urlopen(urllib.request.Request(source.ingest_url, body, headers)) as answer:
                answers.append(json.loads(answer.read()))
        self.assertEqual(answers, [{"received": True}, {"received": True, "duplicate": True}])
        came = hook.next()
        self.assertEqual(came.body, body)
        self.assertEqual(came.headers["x-github-event"], "push")
        Webhook(self.endpoints.get_secret(source.id, made.id).key).verify(came.body, came.headers)
