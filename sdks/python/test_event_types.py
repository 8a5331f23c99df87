from svix.api import EventTypeListOptions
from svix.exceptions import HttpError
from svix.models import EventTypeImportOpenApiIn, EventTypeIn, EventTypePatch

from stage import EVENT_TYPES, RECEIVER, EventTypeUpsert, Test, backwards, pages, put, unique

SCHEMA = {"1": {"type": "object", "properties": {"invoice": {"type": "integer"}}, "required": ["invoice"]}}


class EventTypes(Test):
    def test_what_was_created_is_read_back(self):
        name = unique("invoice")
        made = self.svix.event_type.create(
            EventTypeIn(name=name, description="Paid", schemas=SCHEMA, group_name="billing", deprecated=True)
        )
        self.assertEqual((made.name, made.description, made.archived, made.deprecated), (name, "Paid", False, True))
        self.assertEqual((made.schemas, made.group_name), (SCHEMA, "billing"))
        self.assertEqual(self.svix.event_type.get(name), made)

    def test_an_update_replaces_every_field_or_creates(self):
        name = unique("invoice")
        made = put(self.svix.event_type)(name, EventTypeUpsert(description="By PUT", schemas=SCHEMA))
        self.assertEqual((made.name, made.schemas), (name, SCHEMA))
        changed = put(self.svix.event_type)(name, EventTypeUpsert(description="Again"))
        self.assertEqual((changed.description, changed.schemas), ("Again", None))

    def test_a_patch_changes_only_what_is_given(self):
        name = self.event_type(schemas=SCHEMA)
        changed = self.svix.event_type.patch(name, EventTypePatch(description="New"))
        self.assertEqual((changed.description, changed.schemas), ("New", SCHEMA))

    def test_a_deleted_one_is_archived(self):
        name = self.event_type()
        self.svix.event_type.delete(name)
        self.assertTrue(self.svix.event_type.get(name).archived)
        self.assertNotIn(name, self.names())
        self.assertIn(name, self.names(include_archived=True))

    def test_an_expunged_one_is_gone(self):
        from svix.api import EventTypeDeleteOptions

        name = self.event_type()
        self.svix.event_type.delete(name, EventTypeDeleteOptions(expunge=True))
        with self.assertRaises(HttpError) as refused:
            self.svix.event_type.get(name)
        self.assertEqual(refused.exception.status_code, 404)

    def test_pages_are_sorted_by_name_and_lead_there_and_back(self):
        made = sorted(self.event_type() for _ in range(5))

        def ask(iterator):
            return self.svix.event_type.list(EventTypeListOptions(limit=2, iterator=iterator))

        there = pages(ask)
        listed = [kind.name for page in there for kind in page.data]
        self.assertEqual(listed, sorted(listed))
        self.assertEqual([name for name in listed if name in made], made)
        back = [there[-1], *backwards(ask, there[-1])]
        self.assertEqual([kind.name for page in reversed(back) for kind in page.data], listed)

    def test_schemas_are_listed_when_asked_for(self):
        name = self.event_type(schemas=SCHEMA)

        def schemas(with_content):
            options = EventTypeListOptions(limit=250, with_content=with_content)
            return next(kind.schemas for kind in self.svix.event_type.list(options).data if kind.name == name)

        self.assertEqual(schemas(True), SCHEMA)
        self.assertIsNone(schemas(False))

    def test_they_can_be_imported_from_an_openapi_document(self):
        name = unique("invoice")
        schema = {"type": "object", "properties": {"invoice": {"type": "integer"}}}
        webhook = {"post": {"description": "Imported", "requestBody": {"content": {"application/json": {"schema": schema}}}}}
        spec = {"openapi": "3.1.0", "info": {"title": "Shop", "version": "1"}, "webhooks": {name: webhook}}
        self.svix.event_type.import_openapi(EventTypeImportOpenApiIn(spec=spec))
        self.assertEqual(self.svix.event_type.get(name).description, "Imported")

    def test_an_endpoint_gets_what_it_is_subscribed_to(self):
        wanted, other = self.event_type(), self.event_type()
        hook = RECEIVER.hook()
        self.endpoint(hook, **{EVENT_TYPES: [wanted]})
        self.send(event_type=other)
        self.send({"wanted": True}, event_type=wanted)
        self.assertEqual(hook.next().json(), {"wanted": True})
        hook.stays_silent()

    def names(self, include_archived=False):
        def ask(iterator):
            options = EventTypeListOptions(limit=250, iterator=iterator, include_archived=include_archived)
            return self.svix.event_type.list(options)

        return [kind.name for page in pages(ask) for kind in page.data]
