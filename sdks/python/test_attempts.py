from datetime import datetime, timedelta, timezone

from svix.api import (
    MessageAttemptListByEndpointOptions,
    MessageAttemptListByMsgOptions,
)
from svix.models import MessageAttemptTriggerType, MessageStatus, StatusCodeClass

from stage import RECEIVER, Test, eventually, pages


class Attempts(Test):
    def setUp(self):
        super().setUp()
        self.good, self.bad = RECEIVER.hook(), RECEIVER.hook(400)
        self.works, self.fails = self.endpoint(self.good), self.quick_endpoint(self.bad)

    def sent(self, **more):
        message = self.send(**more)
        return message, self.delivered(message, 0), self.delivered(message, 2)

    def test_an_attempt_says_what_happened(self):
        message, success, failure = self.sent()
        self.assertEqual((success.msg_id, success.endpoint_id), (message.id, self.works.id))
        self.assertEqual((success.response_status_code, success.status_text), (204, "success"))
        self.assertEqual(success.trigger_type, MessageAttemptTriggerType.SCHEDULED)
        self.assertEqual((failure.response_status_code, failure.status_text), (400, "fail"))
        self.assertEqual(failure.url, self.bad.url)
        read = self.svix.message_attempt.get(self.app, message.id, failure.id)
        self.assertEqual((read.id, read.response), (failure.id, '{"seen": true}'))

    def test_those_of_an_endpoint_can_be_filtered(self):
        first, *_ = self.sent(event_type="invoice.paid", channels=["one"], tags=["red"])
        second, *_ = self.sent(event_type="invoice.sent", channels=["two"])
        both = [second.id, first.id]
        hour, now = timedelta(hours=1), datetime.now(timezone.utc)
        for options, expected in [
            (dict(), both),
            (dict(status=MessageStatus.FAIL), both),
            (dict(status=MessageStatus.SUCCESS), []),
            (dict(status_code_class=StatusCodeClass.CODE4XX), both),
            (dict(status_code_class=StatusCodeClass.CODE5XX), []),
            (dict(event_types=["invoice.paid"]), [first.id]),
            (dict(channel="two"), [second.id]),
            (dict(tag="red"), [first.id]),
            (dict(after=now - hour), both),
            (dict(before=now - hour), []),
            (dict(limit=1), [second.id]),
        ]:
            with self.subTest(options):
                found = self.svix.message_attempt.list_by_endpoint(
                    self.app, self.fails.id, MessageAttemptListByEndpointOptions(**options)
                )
                self.assertEqual([attempt.msg_id for attempt in found.data], expected)

    def test_those_of_an_endpoint_come_with_their_messages(self):
        message, *_ = self.sent()
        options = MessageAttemptListByEndpointOptions(with_msg=True)
        found = self.svix.message_attempt.list_by_endpoint(self.app, self.works.id, options).data
        self.assertEqual(found[0].msg.id, message.id)

    def test_those_of_a_message_can_be_filtered(self):
        message, success, failure = self.sent()
        for options, expected in [
            (dict(status=MessageStatus.SUCCESS), [success.id]),
            (dict(status_code_class=StatusCodeClass.CODE4XX), [failure.id]),
            (dict(endpoint_id=self.works.id), [success.id]),
            (dict(event_types=["nothing.else"]), []),
        ]:
            with self.subTest(options):
                found = self.svix.message_attempt.list_by_msg(
                    self.app, message.id, MessageAttemptListByMsgOptions(**options)
                )
                self.assertEqual([attempt.id for attempt in found.data], expected)

    def test_pages_of_attempts(self):
        sent = [self.sent()[0].id for _ in range(3)][::-1]

        def ask(iterator):
            options = MessageAttemptListByEndpointOptions(limit=2, iterator=iterator)
            return self.svix.message_attempt.list_by_endpoint(self.app, self.works.id, options)

        self.assertEqual([attempt.msg_id for page in pages(ask) for attempt in page.data], sent)

    def test_an_endpoints_messages_are_listed_with_their_state(self):
        message, *_ = self.sent()
        for endpoint, status in [(self.works, MessageStatus.SUCCESS), (self.fails, MessageStatus.FAIL)]:
            found = self.svix.message_attempt.list_attempted_messages(self.app, endpoint.id).data
            self.assertEqual([(one.id, one.status) for one in found], [(message.id, status)])

    def test_a_messages_destinations_are_listed_with_their_state(self):
        message, *_ = self.sent()
        found = self.svix.message_attempt.list_attempted_destinations(self.app, message.id).data
        self.assertEqual(
            {one.id: one.status for one in found},
            {self.works.id: MessageStatus.SUCCESS, self.fails.id: MessageStatus.FAIL},
        )

    def test_a_message_is_sent_again_by_hand(self):
        message, *_ = self.sent()
        first = self.bad.next()
        self.bad.answers = [204]
        self.svix.message_attempt.resend(self.app, message.id, self.fails.id)
        self.assertEqual(self.bad.next().body, first.body)

        def by_hand():
            found = self.svix.message_attempt.list_by_endpoint(self.app, self.fails.id).data
            return next((one for one in found if one.trigger_type == MessageAttemptTriggerType.MANUAL), None)

        self.assertEqual(eventually(by_hand, "an attempt by hand").status, MessageStatus.SUCCESS)

    def test_an_answer_can_be_expunged(self):
        message, _, failure = self.sent()
        self.svix.message_attempt.expunge_content(self.app, message.id, failure.id)
        self.assertEqual(self.svix.message_attempt.get(self.app, message.id, failure.id).response, "EXPUNGED")
