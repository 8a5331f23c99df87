from svix.webhooks import Webhook, WebhookVerificationError

from stage import RECEIVER, Test, aldaba


class Deliveries(Test):
    def test_the_sdk_verifies_what_it_is_sent_with_svix_headers(self):
        self.verified("svix", ["svix-id", "svix-signature", "svix-timestamp"])

    def test_the_sdk_verifies_what_it_is_sent_with_standard_headers(self):
        self.verified("standard", ["webhook-id", "webhook-signature", "webhook-timestamp"])

    def verified(self, profile, names):
        hook = RECEIVER.hook()
        endpoint = self.endpoint(hook)
        aldaba("PATCH", f"/app/{self.app}/endpoint/{endpoint.id}", {"profile": profile})
        message = self.send({"invoice": 42, "text": "ñandú 🚪"})
        came = hook.next()
        headers = {name.lower(): value for name, value in came.headers.items()}
        self.assertEqual(sorted(name for name in headers if name.startswith(("svix-", "webhook-"))), names)
        self.assertEqual(headers[names[0]], message.id)
        webhook = Webhook(self.secret(endpoint))
        webhook.verify(came.body, came.headers)
        self.assertEqual(came.json(), {"invoice": 42, "text": "ñandú 🚪"})
        with self.assertRaises(WebhookVerificationError):
            webhook.verify(came.body + b" ", came.headers)

    def test_an_endpoint_gets_the_channels_that_it_listens_to(self):
        hook = RECEIVER.hook()
        self.endpoint(hook, channels=["one"])
        self.send({"to": "two"}, channels=["two"])
        self.send({"to": "nobody"})
        self.send({"to": "one"}, channels=["one", "three"])
        self.assertEqual(hook.next().json(), {"to": "one"})
        hook.stays_silent()

    def test_a_failed_one_is_tried_again(self):
        hook = RECEIVER.hook(503, 204)
        endpoint = self.quick_endpoint(hook)
        message = self.send()
        webhook = Webhook(self.secret(endpoint))
        for _ in range(2):
            came = hook.next()
            webhook.verify(came.body, came.headers)
        self.delivered(message)
