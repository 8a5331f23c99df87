import base64

from svix.api import EndpointSecretRotateIn
from svix.webhooks import Webhook, WebhookVerificationError

from stage import RECEIVER, Test


class Secrets(Test):
    def test_one_of_ones_own_is_kept(self):
        secret = "whsec_" + base64.b64encode(b"a key of exactly 32 bytes, yes!!").decode()
        hook = RECEIVER.hook()
        endpoint = self.endpoint(hook, secret=secret)
        self.assertEqual(self.secret(endpoint), secret)
        self.send()
        came = hook.next()
        Webhook(secret).verify(came.body, came.headers)

    def test_during_the_grace_period_old_and_new_key_both_verify(self):
        hook = RECEIVER.hook()
        endpoint = self.endpoint(hook)
        old = self.secret(endpoint)
        self.svix.endpoint.rotate_secret(self.app, endpoint.id, EndpointSecretRotateIn(grace_period_seconds=3600))
        new = self.secret(endpoint)
        self.assertNotEqual(old, new)
        self.send()
        came = hook.next()
        for secret in (old, new):
            Webhook(secret).verify(came.body, came.headers)

    def test_without_a_grace_period_only_the_new_key_verifies(self):
        hook = RECEIVER.hook()
        endpoint = self.endpoint(hook)
        old = self.secret(endpoint)
        new = "whsec_" + base64.b64encode(b"another key of exactly 32 bytes!").decode()
        rotation = EndpointSecretRotateIn(key=new, grace_period_seconds=0)
        self.svix.endpoint.rotate_secret(self.app, endpoint.id, rotation)
        self.send()
        came = hook.next()
        Webhook(new).verify(came.body, came.headers)
        with self.assertRaises(WebhookVerificationError):
            Webhook(old).verify(came.body, came.headers)
