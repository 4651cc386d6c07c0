"""The page of the HTTP routes and the guide, in a real browser."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from .server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.level2]

ROUTE = re.compile(r"^post\W+v1\W+audio\W+speech$")
"""Swagger UI puts spaces without width into paths."""


def test_it_lists_the_routes_and_asks_nobody_else(browser_page: Page, server: Server) -> None:
    asked: list[str] = []
    browser_page.on("request", lambda request: asked.append(request.url))
    browser_page.goto(f"{server.url}/docs")
    browser_page.get_by_role("button", name=ROUTE).click()
    browser_page.get_by_role("button", name="Try it out").first.click()
    expect(browser_page.get_by_role("button", name="Execute").first).to_be_visible()
    hosts = {urlsplit(url).netloc for url in asked if not url.startswith("data:")}
    assert hosts == {urlsplit(server.url).netloc}


def test_the_foot_leads_to_the_guide_which_asks_nobody_else(
    browser_page: Page, server: Server
) -> None:
    asked: list[str] = []
    browser_page.on("request", lambda request: asked.append(request.url))
    browser_page.set_viewport_size({"width": 390, "height": 844})
    browser_page.goto(server.url)
    browser_page.get_by_role("link", name="Docs", exact=True).click()
    expect(browser_page.get_by_role("heading", name="Cantata", level=1)).to_be_visible()
    browser_page.get_by_role("link", name="Contents").click()
    browser_page.get_by_role("navigation").get_by_role(
        "link", name="Behind a reverse proxy"
    ).click()
    expect(
        browser_page.get_by_role("main").get_by_text("proxy_buffering off").first
    ).to_be_visible()
    width = browser_page.evaluate("document.documentElement.scrollWidth")
    assert width == 390, "the page itself does not scroll sideways"
    browser_page.get_by_role("banner").get_by_role("link", name="Cantata").click()
    expect(browser_page.get_by_label("Text to speak")).to_be_visible()
    hosts = {urlsplit(url).netloc for url in asked if not url.startswith("data:")}
    assert hosts == {urlsplit(server.url).netloc}
