"""What people do: see a failure, mend it, and see it heal, without a reload."""

import re
import unittest

from playwright.sync_api import expect
from stage import Stage, short_policy

expect.set_options(timeout=20_000)


class Journeys(Stage):
    def test_a_link_logs_in_once_and_logging_out_ends_it(self):
        link = self.server.link()
        page = self.page(logged_in=False)
        page.goto(link)
        page.wait_for_url("**/dashboard")
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("heading", name="Log in")).to_be_visible()
        page.goto("/dashboard/apps")
        expect(page.get_by_label("API key or token")).to_be_visible()
        page.goto(link)
        expect(page.get_by_role("alert")).to_contain_text("10 minutes")
        # The browser says in its console that the pages were refused.
        self.violations = [text for text in self.violations if "Failed to load resource" not in text]

    def test_a_key_logs_in_and_a_wrong_one_says_why(self):
        page = self.page(logged_in=False)
        page.goto("/dashboard/apps")
        page.get_by_label("API key or token").fill("nonsense")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("no key and no token")
        page.get_by_label("API key or token").fill(self.api.token)
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Applications")).to_be_visible()
        self.violations = [text for text in self.violations if "Failed to load resource" not in text]

    def test_a_failing_message_becomes_delivered_without_a_reload_and_keeps_focus_and_selection(self):
        app = self.api.application("Followed")
        self.receiver.status = 503
        self.api.endpoint(app, self.receiver.url("/followed"), policy="persistent")
        message = self.api.message(app)
        page = self.page()
        page.goto(f"/dashboard/apps/{app}/messages/{message}")
        badge = page.locator(".destination .badge").first
        expect(badge).to_contain_text("Retrying")
        page.evaluate("window.notReloaded = true")
        page.locator(".destination details summary").first.click()
        page.get_by_label("Search").focus()
        page.evaluate("getSelection().selectAllChildren(document.getElementById('payload'))")
        self.receiver.status = 200
        expect(badge).to_contain_text("Delivered")
        self.assertTrue(page.evaluate("window.notReloaded"))
        self.assertEqual(page.evaluate("document.activeElement.id"), "search")
        self.assertIn("invoice", page.evaluate("String(getSelection())"))
        self.assertTrue(page.locator(".destination details").first.evaluate("details => details.open"))

    def test_d5_a_failed_endpoint_is_seen_on_the_overview_and_resumed(self):
        app = self.api.application("Resumed")
        self.receiver.paths["/resumed"] = 503
        endpoint = self.api.endpoint(
            app, self.receiver.url("/resumed"), name="Accounting", policy=short_policy(self.api)
        )
        page = self.page()
        self.api.message(app)
        row = page.locator(".attention li", has_text="Accounting").first
        expect(row).to_contain_text("Webhook failed (requires manual intervention)")
        row.get_by_role("link", name="Accounting").click()
        expect(page.locator(".sentence")).to_contain_text("Webhook failed (requires manual intervention)")
        self.receiver.paths["/resumed"] = 200
        self.api.message(app)
        expect(page.locator(".condition")).to_contain_text("Waiting: 1")
        page.get_by_role("button", name="Resume", exact=True).click()
        expect(page.locator(".banner")).to_contain_text("Resumed")
        expect(page.locator(".sentence")).to_contain_text("Active")
        self.api.wait(
            f"/app/{app}/attempt/endpoint/{endpoint}",
            lambda answer: any(attempt["status"] == 0 for attempt in answer["data"]),
        )

    def test_e8_dead_deliveries_are_retried_one_by_one_and_all_and_discarded(self):
        app = self.api.application("Dead")
        self.receiver.paths["/dead"] = 400
        endpoint = self.api.endpoint(app, self.receiver.url("/dead"), name="Bookkeeping", policy="public-api")
        for _ in range(3):
            self.api.message(app)
        self.api.wait(f"/dead-letter?app={app}", lambda answer: len(answer["data"]) == 3)
        page = self.page()
        page.goto(f"/dashboard/dead-letter?app={app}&endpoint={endpoint}")
        rows = page.locator("table.cards tbody tr")
        expect(rows).to_have_count(3)
        expect(page.locator("table.compact")).to_contain_text("Non-retriable error")
        rows.first.get_by_role("button", name="Discard").click()
        expect(page.locator(".banner")).to_contain_text("Discarded: 1.")
        expect(rows).to_have_count(2)
        self.receiver.paths["/dead"] = 200
        rows.first.get_by_role("button", name="Retry").click()
        expect(page.locator(".banner")).to_contain_text("Sent again, and delivered")
        page.get_by_role("button", name=re.compile("Retry all of this endpoint")).click()
        expect(page.get_by_role("heading", name="Retry the dead deliveries")).to_be_visible()
        page.get_by_role("button", name="Retry them now").click()
        expect(page.locator(".banner")).to_contain_text("Being sent again")
        self.api.wait(f"/dead-letter?app={app}", lambda answer: not answer["data"])

    def test_without_script_a_message_is_followed_an_endpoint_resumed_and_a_message_sent_again(self):
        app = self.api.application("No script")
        self.receiver.paths["/plain"] = 503
        endpoint = self.api.endpoint(app, self.receiver.url("/plain"), policy=short_policy(self.api))
        message = self.api.message(app)
        self.api.wait(f"/app/{app}/endpoint/{endpoint}", lambda answer: answer["status"] == "failed")
        page = self.page(java_script_enabled=False)
        page.goto(f"/dashboard/apps/{app}/messages/{message}")
        expect(page.locator(".destination .badge").first).to_contain_text("Dead")
        page.goto(f"/dashboard/apps/{app}/endpoints/{endpoint}")
        page.get_by_role("button", name="Resume", exact=True).click()
        expect(page.locator(".banner")).to_contain_text("Resumed")
        self.receiver.paths["/plain"] = 200
        page.goto(f"/dashboard/apps/{app}/messages/{message}")
        page.get_by_role("button", name="Send again").click()
        expect(page.locator(".banner")).to_contain_text("Sent again, and delivered")

    def test_of_two_tabs_that_edit_an_endpoint_the_second_is_told(self):
        app = self.api.application("Edited")
        endpoint = self.api.endpoint(app, self.receiver.url("/edited"))
        first = self.page()
        second = first.context.new_page()
        for tab in (first, second):
            tab.goto(f"/dashboard/apps/{app}/endpoints/{endpoint}/edit")
        first.get_by_label("Name").fill("First")
        first.get_by_role("button", name="Save").click()
        expect(first.locator(".banner")).to_contain_text("Saved")
        second.get_by_label("Name").fill("Second")
        second.get_by_label("URL").fill("nonsense")
        second.get_by_role("button", name="Save").click()
        expect(second.get_by_role("alert").first).to_contain_text("Somebody has changed it")
        expect(second.get_by_label("Name")).to_have_value("Second")
        expect(second.locator(".field", has_text="Name").first).to_contain_text("First")
        expect(second.locator("#url-fault")).to_be_visible()
        second.get_by_label("URL").fill(self.receiver.url("/edited"))
        second.get_by_role("button", name="Save").click()
        expect(second.locator(".banner")).to_contain_text("Saved")
        expect(second.get_by_role("heading", level=1)).to_contain_text("Second")

    def test_a_restart_of_the_server_does_not_end_the_live_page(self):
        app = self.api.application("Restarted")
        self.receiver.paths["/restarted"] = 503
        self.api.endpoint(app, self.receiver.url("/restarted"), policy="persistent")
        message = self.api.message(app)
        page = self.page()
        page.goto(f"/dashboard/apps/{app}/messages/{message}")
        badge = page.locator(".destination .badge").first
        expect(badge).to_contain_text("Retrying")
        self.server.stop()
        self.server.start()
        self.receiver.paths["/restarted"] = 200
        expect(badge).to_contain_text("Delivered", timeout=40_000)
        # The browser tells of the stream that broke off.
        self.violations = [text for text in self.violations if "net::ERR" not in text]

    def test_what_others_write_is_shown_and_does_nothing(self):
        app = self.api.application("</script><b>bold</b>\u202egpj")
        payload = b'{"eventType": "a", "payload": {"n": 12345678901234567890.10, "n": 1, "x": "</script>\xe2\x80\xae"}}'
        self.api.endpoint(app, self.receiver.url("/<script>alert(1)</script>"), name="<img src=x onerror=alert(1)>")
        message = self.api.call("POST", f"/app/{app}/msg", payload)["id"]
        page = self.page()
        page.goto(f"/dashboard/apps/{app}/messages/{message}")
        shown = page.locator("#payload").inner_text()
        self.assertIn('{"n": 12345678901234567890.10, "n": 1, "x": "</script>', shown)
        self.assertIn("U+202E", shown)
        page.goto(f"/dashboard/apps/{app}")
        self.assertEqual(page.locator("main b, main img").count(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
