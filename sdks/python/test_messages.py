from datetime import datetime, timedelta, timezone

from svix.api import ApplicationIn, MessageIn, MessageListOptions
from svix.api.message import MessageCreateOptions, MessageGetOptions
from svix.exceptions import HttpError

from stage import FIRST_GENERATION, RECEIVER, Test, backwards, ids, pages, unique


class Messages(Test):
    def test_what_was_created_is_read_back(self):
        event_id = unique("event")
        made = self.send({"invoice": 42}, event_id=event_id, channels=["project_1"], tags=["first"])
        self.assertRegex(made.id, r"^msg_[0-9A-Za-z]{27}$")
        self.assertEqual((made.event_id, made.event_type, made.channels), (event_id, "invoice.paid", ["project_1"]))
        self.assertEqual(made.tags, ["first"])
        for key in (made.id, event_id):
            read = self.svix.message.get(self.app, key, MessageGetOptions(with_content=True))
            self.assertEqual((read.id, read.payload), (made.id, {"invoice": 42}))

    def test_the_payload_comes_back_as_the_sdk_expects_it(self):
        made = self.send({"invoice": 1})
        # The second generation asks for no content unless it is told to.
        self.assertEqual(self.svix.message.get(self.app, made.id).payload, {"invoice": 1} if FIRST_GENERATION else {})
        without = self.svix.message.get(self.app, made.id, MessageGetOptions(with_content=False))
        self.assertEqual(without.payload, {})

    def test_one_idempotency_key_is_one_message(self):
        options = MessageCreateOptions(idempotency_key=unique("once"))
        message = MessageIn(event_type="invoice.paid", payload={"invoice": 1})
        first = self.svix.message.create(self.app, message, options)
        second = self.svix.message.create(self.app, message, options)
        self.assertEqual(first.id, second.id)
        self.assertEqual(len(self.svix.message.list(self.app).data), 1)

    def test_an_event_id_cannot_be_used_twice(self):
        event_id = unique("event")
        self.send(event_id=event_id)
        with self.assertRaises(HttpError) as refused:
            self.send(event_id=event_id)
        self.assertEqual((refused.exception.status_code, refused.exception.code), (409, "conflict"))

    def test_an_application_can_be_made_along_with_a_message(self):
        uid = unique("customer")
        message = MessageIn(event_type="a.b", payload={}, application=ApplicationIn(name="Made along", uid=uid))
        self.svix.message.create(uid, message)
        self.assertEqual(self.svix.application.get(uid).name, "Made along")

    def test_pages_lead_there_and_back(self):
        made = sorted((self.send({"number": i}).id for i in range(5)), reverse=True)

        def ask(iterator):
            return self.svix.message.list(self.app, MessageListOptions(limit=2, iterator=iterator))

        there = pages(ask)
        self.assertEqual(ids(there), made)
        back = backwards(ask, there[-1])
        self.assertEqual([[m.id for m in page.data] for page in back], [made[2:4], made[:2]])

    def test_lists_can_be_filtered(self):
        paid = self.send(event_type="invoice.paid", channels=["one"], tags=["red"])
        sent = self.send(event_type="invoice.sent", channels=["two"])
        both = sorted([sent.id, paid.id], reverse=True)
        hour = timedelta(hours=1)
        now = datetime.now(timezone.utc)
        for options, expected in [
            (dict(event_types=["invoice.paid"]), [paid.id]),
            (dict(event_types=["invoice.paid", "invoice.sent"]), both),
            (dict(channel="two"), [sent.id]),
            (dict(tag="red"), [paid.id]),
            (dict(after=now - hour), both),
            (dict(before=now - hour), []),
            (dict(after=now - hour, before=now + hour / 2), both),
        ]:
            with self.subTest(options):
                found = self.svix.message.list(self.app, MessageListOptions(**options))
                self.assertEqual([message.id for message in found.data], expected)

    def test_a_payload_can_be_expunged(self):
        made = self.send({"secret": "of a customer"})
        self.svix.message.expunge_content(self.app, made.id)
        read = self.svix.message.get(self.app, made.id, MessageGetOptions(with_content=True))
        self.assertEqual(read.payload, {"expired": True})

    def test_a_raw_payload_goes_out_as_it_is(self):
        from svix.api.message import message_in_raw

        hook = RECEIVER.hook()
        self.endpoint(hook)
        text = '{ "spaces":   "stay", "n": 1.0 }'
        self.svix.message.create(self.app, message_in_raw("invoice.paid", text))
        self.assertEqual(hook.next().body.decode(), text)

    def test_the_way_ahead_can_be_asked_for(self):
        from svix.models import MessagePrecheckIn

        question = MessagePrecheckIn(event_type="invoice.paid")
        self.assertFalse(self.svix.message.precheck(self.app, question).active)
        self.endpoint(RECEIVER.hook())
        self.assertTrue(self.svix.message.precheck(self.app, question).active)
