from svix.models import EndpointHeadersIn, EndpointHeadersPatchIn

from stage import RECEIVER, Test, put_headers


class Headers(Test):
    def test_they_are_set_shown_and_sent(self):
        hook = RECEIVER.hook()
        endpoint = self.endpoint(hook)
        put_headers(self.svix.endpoint)(
            self.app, endpoint.id, EndpointHeadersIn(headers={"X-Team": "a", "Authorization": "Basic c2VjcmV0"})
        )
        shown = self.svix.endpoint.get_headers(self.app, endpoint.id)
        self.assertEqual([name.lower() for name in shown.headers], ["x-team"])
        self.assertEqual([name.lower() for name in shown.sensitive], ["authorization"])
        self.send()
        came = {name.lower(): value for name, value in hook.next().headers.items()}
        self.assertEqual((came["x-team"], came["authorization"]), ("a", "Basic c2VjcmV0"))

    def test_a_patch_adds_changes_and_deletes(self):
        endpoint = self.endpoint()
        headers = put_headers(self.svix.endpoint)
        headers(self.app, endpoint.id, EndpointHeadersIn(headers={"X-One": "1", "X-Two": "2", "X-Three": "3"}))
        patch = EndpointHeadersPatchIn(headers={"X-Two": "two", "X-Four": "4"}, delete_headers=["X-Three"])
        self.svix.endpoint.patch_headers(self.app, endpoint.id, patch)
        shown = self.svix.endpoint.get_headers(self.app, endpoint.id).headers
        lower = {name.lower(): value for name, value in shown.items()}
        self.assertEqual(lower, {"x-one": "1", "x-two": "two", "x-four": "4"})

    def test_they_can_be_given_at_the_beginning(self):
        hook = RECEIVER.hook()
        self.endpoint(hook, headers={"X-Team": "b"})
        self.send()
        came = {name.lower(): value for name, value in hook.next().headers.items()}
        self.assertEqual(came["x-team"], "b")
