import asyncio
import unittest

from svix.api import ApplicationIn, EndpointIn, MessageIn, SvixAsync
from svix.webhooks import Webhook

from stage import OPTIONS, RECEIVER, TOKEN


class Asynchronous(unittest.TestCase):
    def test_the_asynchronous_client_sends_and_is_delivered_to(self):
        asyncio.run(self.walk())

    async def walk(self):
        svix = SvixAsync(TOKEN, OPTIONS)
        hook = RECEIVER.hook()
        app = await svix.application.create(ApplicationIn(name="Asynchronous"))
        endpoint = await svix.endpoint.create(app.id, EndpointIn(url=hook.url))
        await asyncio.gather(
            *(svix.message.create(app.id, MessageIn(event_type="a.b", payload={"number": i})) for i in range(10))
        )
        secret = (await svix.endpoint.get_secret(app.id, endpoint.id)).key
        numbers = set()
        for _ in range(10):
            came = await asyncio.to_thread(hook.next)
            Webhook(secret).verify(came.body, came.headers)
            numbers.add(came.json()["number"])
        self.assertEqual(numbers, set(range(10)))
        await svix.application.delete(app.id)
