from svix.models import (
    OperationalWebhookEndpointHeadersIn,
    OperationalWebhookEndpointIn,
    OperationalWebhookEndpointSecretIn,
)
from svix.webhooks import Webhook

from stage import RECEIVER, OperationalUpsert, Test, eventually, put, put_headers, unique


class OperationalWebhooks(Test):
    def setUp(self):
        super().setUp()
        self.operational = self.svix.operational_webhook.endpoint

    def made(self, hook=None, **more):
        url = hook.url if hook else "https://example.com/"
        endpoint = self.operational.create(OperationalWebhookEndpointIn(url=url, **more))
        self.addCleanup(self.operational.delete, endpoint.id)
        return endpoint

    def test_what_was_created_is_read_back(self):
        uid = unique("operations")
        made = self.made(uid=uid, description="Ours", metadata={"a": "1"})
        self.assertEqual((made.uid, made.description, made.metadata), (uid, "Ours", {"a": "1"}))
        self.assertEqual(self.operational.get(uid), made)
        self.assertIn(made.id, [one.id for one in self.operational.list().data])

    def test_it_can_be_changed(self):
        made = self.made(description="Old")
        changed = put(self.operational)(made.id, OperationalUpsert(url="https://example.com/new"))
        self.assertEqual((changed.id, changed.url), (made.id, "https://example.com/new"))
        put_headers(self.operational)(made.id, OperationalWebhookEndpointHeadersIn(headers={"X-Team": "a"}))
        shown = self.operational.get_headers(made.id).headers
        self.assertEqual({name.lower(): value for name, value in shown.items()}, {"x-team": "a"})
        old = self.operational.get_secret(made.id).key
        self.operational.rotate_secret(made.id, OperationalWebhookEndpointSecretIn())
        self.assertNotEqual(self.operational.get_secret(made.id).key, old)

    def test_it_hears_of_a_new_endpoint(self):
        hook = RECEIVER.hook()
        made = self.made(hook)
        endpoint = self.endpoint()
        secret = self.operational.get_secret(made.id).key

        def heard():
            came = hook.next()
            Webhook(secret).verify(came.body, came.headers)
            told = came.json()
            return told["data"]["endpointId"] == endpoint.id and told

        told = eventually(heard, f"the news of {endpoint.id}")
        self.assertEqual((told["type"], told["data"]["appId"]), ("endpoint.created", self.app))
