from datetime import datetime, timedelta, timezone

from svix.api import EndpointGetStatsOptions, EndpointIn, EndpointListOptions
from svix.models import EndpointPatch, EventExampleIn, Ordering

from stage import EVENT_TYPES, RECEIVER, EndpointUpsert, Test, backwards, eventually, ids, pages, put, unique


class Endpoints(Test):
    def test_what_was_created_is_read_back(self):
        uid, kind = unique("hook"), self.event_type()
        made = self.endpoint(
            uid=uid,
            description="Theirs",
            throttle_rate=20,
            disabled=True,
            channels=["project_1"],
            metadata={"team": "a"},
            **{EVENT_TYPES: [kind]},
        )
        self.assertRegex(made.id, r"^ep_[0-9A-Za-z]{27}$")
        self.assertEqual((made.uid, made.url, made.description), (uid, "https://example.com/", "Theirs"))
        self.assertEqual((made.disabled, made.throttle_rate, made.channels), (True, 20, ["project_1"]))
        self.assertEqual((getattr(made, EVENT_TYPES), made.metadata), ([kind], {"team": "a"}))
        for key in (made.id, uid):
            self.assertEqual(self.svix.endpoint.get(self.app, key), made)

    def test_a_filter_on_an_unknown_event_type_is_refused(self):
        from svix.exceptions import HTTPValidationError

        with self.assertRaises(HTTPValidationError):
            self.endpoint(**{EVENT_TYPES: [unique("nobody-made-this")]})

    def test_an_update_replaces_every_field(self):
        kind = self.event_type()
        made = self.endpoint(description="Old", channels=["a"], metadata={"a": "1"}, **{EVENT_TYPES: [kind]})
        secret = self.secret(made)
        changed = put(self.svix.endpoint)(self.app, made.id, EndpointUpsert(url="https://example.com/new"))
        self.assertEqual((changed.id, changed.url, changed.description), (made.id, "https://example.com/new", ""))
        self.assertEqual((changed.channels, getattr(changed, EVENT_TYPES), changed.metadata), (None, None, {}))
        self.assertEqual(self.secret(changed), secret)

    def test_an_update_of_what_is_not_there_creates_it(self):
        uid = unique("hook")
        made = put(self.svix.endpoint)(self.app, uid, EndpointUpsert(url="https://example.com/", uid=uid))
        self.assertEqual(self.svix.endpoint.get(self.app, uid).id, made.id)
        self.assertRegex(self.secret(made), "^whsec_")

    def test_a_patch_changes_only_what_is_given(self):
        made = self.endpoint(description="Old", channels=["a"], throttle_rate=5)
        changed = self.svix.endpoint.patch(self.app, made.id, EndpointPatch(description="New"))
        self.assertEqual((changed.description, changed.channels, changed.throttle_rate), ("New", ["a"], 5))
        bare = self.svix.endpoint.patch(self.app, made.id, EndpointPatch(channels=None, throttle_rate=None))
        self.assertEqual((bare.description, bare.channels, bare.throttle_rate), ("New", None, None))

    def test_a_deleted_one_gets_nothing_more(self):
        hook = RECEIVER.hook()
        made = self.endpoint(hook)
        self.svix.endpoint.delete(self.app, made.id)
        self.send()
        hook.stays_silent()
        self.assertEqual(self.svix.endpoint.list(self.app).data, [])

    def test_pages_lead_there_and_back(self):
        made = sorted(self.endpoint().id for _ in range(5))

        def ask(iterator):
            options = EndpointListOptions(limit=2, iterator=iterator, order=Ordering.ASCENDING)
            return self.svix.endpoint.list(self.app, options)

        there = pages(ask)
        self.assertEqual([len(page.data) for page in there], [2, 2, 1])
        self.assertEqual(ids(there), made)
        self.assertEqual([[e.id for e in page.data] for page in backwards(ask, there[-1])], [made[2:4], made[:2]])
        newest = self.svix.endpoint.list(self.app).data
        self.assertEqual([endpoint.id for endpoint in newest], made[::-1])

    def test_statistics_count_attempts(self):
        good, bad = RECEIVER.hook(), RECEIVER.hook(400)
        endpoints = self.endpoint(good), self.quick_endpoint(bad)
        message = self.send()
        self.delivered(message, 0)
        self.delivered(message, 2)

        def counts(endpoint):
            since = datetime.now(timezone.utc) - timedelta(hours=1)
            stats = self.svix.endpoint.get_stats(self.app, endpoint.id, EndpointGetStatsOptions(since=since))
            return stats.success, stats.fail

        eventually(lambda: counts(endpoints[0]) == (1, 0), "one success in the statistics")
        eventually(lambda: counts(endpoints[1]) == (0, 1), "one failure in the statistics")

    def test_an_example_is_sent_to_that_endpoint_only(self):
        schema = {"1": {"type": "object", "examples": [{"invoice": 7}]}}
        kind = self.event_type(schemas=schema)
        here, elsewhere = RECEIVER.hook(), RECEIVER.hook()
        endpoint = self.endpoint(here)
        self.endpoint(elsewhere)
        sent = self.svix.endpoint.send_example(self.app, endpoint.id, EventExampleIn(event_type=kind))
        self.assertEqual(sent.event_type, kind)
        self.assertEqual(here.next().json(), {"invoice": 7})
        elsewhere.stays_silent()

    def test_a_ping_needs_no_event_type(self):
        hook = RECEIVER.hook()
        endpoint = self.endpoint(hook)
        self.svix.endpoint.send_example(self.app, endpoint.id, EventExampleIn(event_type="svix.ping"))
        self.assertEqual(hook.next().json(), {"success": True})
