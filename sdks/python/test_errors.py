from svix.api import ApplicationIn, EndpointIn
from svix.exceptions import HttpError, HTTPValidationError

from stage import Test, client, unique


class Errors(Test):
    def refused(self, kind, call, *arguments):
        with self.assertRaises(kind) as refused:
            call(*arguments)
        return refused.exception

    def test_what_is_not_there_is_a_404(self):
        for call, arguments in [
            (self.svix.application.get, ("app_nobody",)),
            (self.svix.application.delete, ("app_nobody",)),
            (self.svix.endpoint.get, (self.app, "ep_nobody")),
            (self.svix.message.get, (self.app, "msg_nobody")),
            (self.svix.message_attempt.get, (self.app, "msg_nobody", "atmpt_nobody")),
            (self.svix.event_type.get, (unique("nobody"),)),
            (self.svix.background_task.get, ("qtask_nobody",)),
        ]:
            with self.subTest(call=call.__qualname__):
                error = self.refused(HttpError, call, *arguments)
                self.assertEqual((error.status_code, error.code), (404, "not_found"))
                self.assertTrue(error.detail)

    def test_a_uid_that_is_taken_is_a_409(self):
        uid = unique("customer")
        self.svix.application.create(ApplicationIn(name="First", uid=uid))
        error = self.refused(HttpError, self.svix.application.create, ApplicationIn(name="Second", uid=uid))
        self.assertEqual((error.status_code, error.code), (409, "conflict"))

    def test_a_wrong_field_is_a_422_that_names_it(self):
        error = self.refused(HTTPValidationError, self.svix.application.create, ApplicationIn(name=""))
        self.assertEqual(error.status_code, 422)
        self.assertEqual(error.detail[0].loc, ["body", "name"])
        self.assertTrue(error.detail[0].msg)
        error = self.refused(HTTPValidationError, self.svix.endpoint.create, self.app, EndpointIn(url="ftp://x"))
        self.assertEqual(error.detail[0].loc, ["body", "url"])

    def test_several_wrong_fields_are_all_named(self):
        wrong = EndpointIn(url="nothing", uid="a space", throttle_rate=0)
        error = self.refused(HTTPValidationError, self.svix.endpoint.create, self.app, wrong)
        self.assertEqual({problem.loc[1] for problem in error.detail}, {"url", "uid", "throttleRate"})

    def test_a_bad_token_is_a_401(self):
        error = self.refused(HttpError, client("nobody").application.list)
        self.assertEqual((error.status_code, error.code), (401, "authentication_failed"))
