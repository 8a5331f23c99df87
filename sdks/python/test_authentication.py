from svix.api import AppPortalAccessIn, ApplicationIn
from svix.exceptions import HttpError
from svix.models import AppPortalCapability

from stage import RECEIVER, Test, client, unique


class Authentication(Test):
    def access(self, **more):
        return self.svix.authentication.app_portal_access(self.app, AppPortalAccessIn(**more))

    def test_a_portal_token_reaches_its_own_application_only(self):
        portal = client(self.access().token)
        self.assertEqual(portal.application.get(self.app).id, self.app)
        self.assertEqual(portal.endpoint.list(self.app).data, [])
        other = self.svix.application.create(ApplicationIn(name="Another"))
        with self.assertRaises(HttpError) as refused:
            portal.endpoint.list(other.id)
        self.assertEqual(refused.exception.status_code, 404)
        with self.assertRaises(HttpError) as refused:
            portal.application.list()
        self.assertEqual(refused.exception.status_code, 403)

    def test_a_portal_token_manages_endpoints(self):
        portal = client(self.access().token)
        made = self.endpoint(RECEIVER.hook())
        self.assertEqual(portal.endpoint.get_secret(self.app, made.id).key, self.secret(made))
        portal.endpoint.delete(self.app, made.id)
        self.assertEqual(self.svix.endpoint.list(self.app).data, [])

    def test_a_read_only_portal_changes_nothing(self):
        portal = client(self.access(read_only=True).token)
        made = self.endpoint(RECEIVER.hook())
        self.assertEqual(portal.endpoint.get(self.app, made.id).id, made.id)
        with self.assertRaises(HttpError) as refused:
            portal.endpoint.delete(self.app, made.id)
        self.assertEqual(refused.exception.status_code, 403)

    def test_a_portal_does_what_its_capabilities_allow(self):
        allowed = [AppPortalCapability.VIEW_BASE, AppPortalCapability.CREATE_ATTEMPTS]
        portal = client(self.access(capabilities=allowed).token)
        made = self.endpoint(RECEIVER.hook())
        self.assertEqual(portal.endpoint.get(self.app, made.id).id, made.id)
        with self.assertRaises(HttpError) as refused:
            portal.endpoint.get_secret(self.app, made.id)
        self.assertEqual(refused.exception.status_code, 403)

    def test_after_logging_out_a_portal_token_is_worth_nothing(self):
        portal = client(self.access().token)
        portal.authentication.logout()
        with self.assertRaises(HttpError) as refused:
            portal.endpoint.list(self.app)
        self.assertEqual(refused.exception.status_code, 401)

    def test_all_portal_tokens_of_an_application_can_be_ended(self):
        from svix.models import ApplicationTokenExpireIn

        portal = client(self.access().token)
        self.svix.authentication.expire_all(self.app, ApplicationTokenExpireIn(expiry=0))
        with self.assertRaises(HttpError) as refused:
            portal.endpoint.list(self.app)
        self.assertEqual(refused.exception.status_code, 401)

    def test_an_application_can_be_made_along_with_its_portal(self):
        uid = unique("customer")
        access = AppPortalAccessIn(application=ApplicationIn(name="Made along", uid=uid))
        self.assertTrue(self.svix.authentication.app_portal_access(uid, access).token)
        self.assertEqual(self.svix.application.get(uid).name, "Made along")
