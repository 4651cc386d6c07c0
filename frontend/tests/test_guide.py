"""The guide at /guide/: every document, and no link that leads nowhere."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from cantata_web.app import mount
from cantata_web.guide import CONTENTS, FILES, FOLDERS, Guide

ROOT = Path(__file__).parents[2]
START = "http://testserver/guide/README.md"
HREF = re.compile(r'<a [^>]*href="([^"]+)"|<img [^>]*src="([^"]+)"')


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    app = FastAPI()
    mount(app)
    with TestClient(app) as client:
        yield client


def list_links(page: str, address: str) -> Iterator[str]:
    for link, image in HREF.findall(page):
        target = urljoin(address, link or image)
        if urlsplit(target).path.startswith("/guide/"):
            yield target


def test_every_link_leads_to_a_document_and_its_heading(client: TestClient) -> None:
    todo, pages, wanted = {START}, dict[str, str](), set[tuple[str, str, str]]()
    while todo:
        address = todo.pop()
        answer = client.get(address)
        assert answer.status_code == 200, address
        is_page = answer.headers["content-type"].startswith("text/html")
        pages[address] = answer.text if is_page else ""
        for target, fragment in map(urldefrag, list_links(pages[address], address)):
            wanted.add((address, target, fragment))
            todo |= {target} - pages.keys()
    documents = {f"http://testserver/guide/docs/{one.name}" for one in ROOT.glob("docs/*.md")}
    assert documents <= pages.keys()
    missing = [w for w in wanted if w[2] and f'id="{w[2]}"' not in pages[w[1]]]
    assert missing == []


def test_a_link_to_a_file_outside_becomes_text(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(
        "# Start\n\n[Card](models/CARD.md), [away](https://example.com), [here](#start)\n"
    )
    (tmp_path / "mkdocs.yml").write_text("nav: [{Start: README.md}, {Use: [{Gone: docs/no.md}]}]\n")
    page = Guide(tmp_path).render("README.md").body.decode()
    assert '<h1 id="start">Start</h1>' in page
    assert "Card, " in page
    assert 'href="https://example.com">away' in page
    assert 'href="#start">here' in page
    assert "Gone" not in page


def test_diagrams_are_shown_without_a_script(tmp_path: Path) -> None:
    chart = "# A\n\n```mermaid\nflowchart LR\n  a([x]) --> b\n```\n\n```mermaid\npie\n```\n"
    (tmp_path / "README.md").write_text(chart)
    (tmp_path / "mkdocs.yml").write_text("nav: [{Start: README.md}]\n")
    page = Guide(tmp_path).render("README.md").body.decode()
    assert '<li><b class="end">x</b><span>→</span><b>b</b></li>' in page
    assert "pie" in page, "what is no flowchart stays"
    for path in (ROOT / "docs").rglob("*.md"):
        drawn = Guide(ROOT).render(str(path.relative_to(ROOT))).body.decode()
        assert "language-mermaid" not in drawn, path


@pytest.mark.parametrize(
    "name",
    [
        "nothing.md",
        "docs",
        "docs/nothing.md",
        "pyproject.toml",
        "docs/../pyproject.toml",
        "docs/%2e%2e/pyproject.toml",
        "..%2f..%2fetc/passwd",
        "/etc/passwd",
        "backend/cantata/config.py",
    ],
)
def test_only_the_guide_is_served(client: TestClient, name: str) -> None:
    assert client.get(f"/guide/{name}").status_code == 404


def test_its_address_leads_to_its_start(client: TestClient) -> None:
    start = client.get(START).text
    assert client.get("/guide/").text == client.get("/guide").text == start


def test_pages_beside_the_server_find_the_guide(client: TestClient) -> None:
    page = client.get("/").text
    assert '<a href="guide/">Docs</a>' in page


def test_the_wheel_carries_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {
        name: f"cantata_web/documents/{name}" for name in (*FILES, *FOLDERS, CONTENTS)
    }
