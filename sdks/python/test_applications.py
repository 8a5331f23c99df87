from datetime import timezone

from svix.api import ApplicationIn, ApplicationListOptions
from svix.exceptions import HTTPValidationError
from svix.models import ApplicationPatch, Ordering

from stage import Test, backwards, ids, pages, put, unique


class Applications(Test):
    def test_what_was_created_is_read_back(self):
        uid = unique("customer")
        made = self.svix.application.create(
            ApplicationIn(name="Customer", uid=uid, metadata={"plan": "gold"})
        )
        self.assertRegex(made.id, r"^app_[0-9A-Za-z]{27}$")
        self.assertEqual((made.name, made.uid), ("Customer", uid))
        self.assertEqual(made.metadata, {"plan": "gold"})
        self.assertEqual(made.created_at.tzinfo, timezone.utc)
        for key in (made.id, uid):
            self.assertEqual(self.svix.application.get(key), made)

    def test_get_or_create_makes_one_only(self):
        uid = unique("customer")
        first = self.svix.application.get_or_create(ApplicationIn(name="First", uid=uid))
        second = self.svix.application.get_or_create(ApplicationIn(name="Second", uid=uid))
        self.assertEqual((first.id, second.name), (second.id, "First"))

    def test_an_update_replaces_every_field(self):
        uid = unique("customer")
        made = self.svix.application.create(ApplicationIn(name="Old", uid=uid, metadata={"a": "1"}))
        changed = put(self.svix.application)(uid, ApplicationIn(name="New", uid=uid))
        self.assertEqual((changed.id, changed.name, changed.uid), (made.id, "New", uid))
        self.assertEqual(changed.metadata, {})
        self.assertGreaterEqual(changed.updated_at, made.updated_at)

    def test_an_update_of_what_is_not_there_creates_it(self):
        uid = unique("customer")
        made = put(self.svix.application)(uid, ApplicationIn(name="Made by PUT", uid=uid))
        self.assertEqual(self.svix.application.get(uid).id, made.id)

    def test_a_patch_changes_only_what_is_given(self):
        uid = unique("customer")
        made = self.svix.application.create(ApplicationIn(name="Old", uid=uid, metadata={"a": "1"}))
        named = self.svix.application.patch(made.id, ApplicationPatch(name="New"))
        self.assertEqual((named.name, named.uid, named.metadata), ("New", uid, {"a": "1"}))
        bare = self.svix.application.patch(made.id, ApplicationPatch(uid=None))
        self.assertEqual((bare.name, bare.uid), ("New", None))

    def test_its_throttle_rate_is_kept(self):
        made = self.svix.application.create(ApplicationIn(name="Throttled", throttle_rate=50))
        self.assertEqual(made.throttle_rate, 50)
        self.assertIsNone(self.svix.application.patch(made.id, ApplicationPatch(throttle_rate=None)).throttle_rate)

    def test_a_deleted_one_is_gone_and_its_uid_is_free(self):
        uid = unique("customer")
        made = self.svix.application.create(ApplicationIn(name="Short-lived", uid=uid))
        self.svix.application.delete(made.id)
        again = self.svix.application.create(ApplicationIn(name="Again", uid=uid))
        self.assertNotEqual(again.id, made.id)

    def test_pages_lead_there_and_back(self):
        made = sorted(self.svix.application.create(ApplicationIn(name=f"Page {i}")).id for i in range(5))

        def ask(iterator):
            return self.svix.application.list(ApplicationListOptions(limit=2, iterator=iterator))

        there = pages(ask)
        self.assertTrue(all(len(page.data) <= 2 for page in there))
        listed = ids(there)
        self.assertEqual(listed, sorted(listed))
        self.assertEqual([id for id in listed if id in made], made)
        back = [there[-1], *backwards(ask, there[-1])]
        self.assertEqual(ids(reversed(back)), listed)

    def test_the_order_can_be_turned(self):
        made = {self.svix.application.create(ApplicationIn(name=f"Order {i}")).id for i in range(3)}
        newest = ids([self.svix.application.list(ApplicationListOptions(limit=9, order=Ordering.DESCENDING))])
        self.assertEqual(newest, sorted(newest, reverse=True))
        self.assertLessEqual(made, set(newest))

    def test_a_filter_that_is_not_served_is_refused_where_it_would_matter(self):
        self.svix.application.list(ApplicationListOptions(exclude_apps_with_no_endpoints=False))
        with self.assertRaises(HTTPValidationError) as refused:
            self.svix.application.list(ApplicationListOptions(exclude_apps_with_no_endpoints=True))
        self.assertEqual(refused.exception.detail[0].loc, ["query", "exclude_apps_with_no_endpoints"])
