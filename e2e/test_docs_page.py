"""The page of the HTTP routes in a real browser."""

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
