"""axe-core on each page, in both colours and widths; and the pages in Spanish."""

import unittest

from playwright.sync_api import expect
from stage import HERE, Stage, short_policy

AXE = HERE / "node_modules/axe-core/axe.min.js"


class Accessibility(Stage):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        api, receiver = cls.api, cls.receiver
        receiver.paths["/fails"] = 503
        app = api.application("Corner shop")
        fine = api.endpoint(app, receiver.url("/fine"), name="Orders")
        failing = api.endpoint(app, receiver.url("/fails"), name="Accounting", policy=short_policy(api))
        message = api.message(app)
        api.wait(f"/app/{app}/endpoint/{failing}", lambda answer: answer["status"] == "failed")
        here = f"/dashboard/apps/{app}"
        cls.paths = [
            "/dashboard",
            "/dashboard/apps",
            "/dashboard/apps/new",
            here,
            f"{here}/endpoints/{fine}",
            f"{here}/endpoints/{failing}",
            f"{here}/endpoints/{failing}/edit",
            f"{here}/messages/{message}",
            "/dashboard/dead-letter",
            f"/dashboard/dead-letter?app={app}&endpoint={failing}",
            "/dashboard/search?q=nothing",
        ]

    def test_axe_finds_nothing_serious_on_any_page_in_both_colours_and_widths(self):
        for scheme in ("light", "dark"):
            for width in (1280, 390):
                page = self.page(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
                for path in self.paths:
                    page.goto(path)
                    page.add_script_tag(path=AXE)
                    found = page.evaluate("axe.run({resultTypes: ['violations']})")
                    serious = [
                        (rule["id"], [node["html"][:160] for node in rule["nodes"][:3]])
                        for rule in found["violations"]
                        if rule["impact"] in ("serious", "critical")
                    ]
                    self.assertEqual(serious, [], f"{path} {scheme} {width}")
                    wider = page.evaluate("document.documentElement.scrollWidth > innerWidth")
                    self.assertFalse(wider, f"{path} is wider than {width} px")

    def test_the_language_can_be_chosen_and_every_page_has_it(self):
        page = self.page()
        page.get_by_role("button", name="Español").click()
        expect(page.get_by_role("heading", name="Resumen")).to_be_visible()
        for path in self.paths:
            page.goto(path)
            self.assertEqual(page.locator("html").get_attribute("lang"), "es")
        page.goto("/dashboard")
        page.get_by_role("button", name="English").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()

    def test_the_failure_is_found_and_mended_by_keyboard_alone(self):
        page = self.page()
        page.keyboard.press("/")
        page.keyboard.type(self.paths[3].rsplit("/", 1)[1])
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("Corner shop")
        link = page.get_by_role("link", name="Accounting")
        for _ in range(60):
            page.keyboard.press("Tab")
            if link.evaluate("link => link === document.activeElement"):
                break
        page.keyboard.press("Enter")
        resume = page.get_by_role("button", name="Resume", exact=True)
        expect(resume).to_be_visible()
        for _ in range(60):
            page.keyboard.press("Tab")
            if resume.evaluate("button => button === document.activeElement"):
                break
        page.keyboard.press("Enter")
        expect(page.locator(".banner")).to_contain_text("Resumed")


if __name__ == "__main__":
    unittest.main(verbosity=2)
