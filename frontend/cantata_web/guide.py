"""The documentation of this version at `/guide/`, rendered from its Markdown files.

Files keep the repository's places, so that their links work unchanged. A link to a file that is not
part of the guide becomes plain text.
"""

from __future__ import annotations

import asyncio
import html
import mimetypes
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import pairwise
from pathlib import Path, PurePosixPath
from posixpath import normpath
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from fastapi import Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from markdown_it import MarkdownIt
from markdown_it.token import Token
from starlette.exceptions import HTTPException

from cantata_web.asset import Asset
from cantata_web.flowchart import UnknownFlowchart, draw_flowchart
from cantata_web.sources import HERE, fill, read

GUIDE_PATH = "/guide"
START = "README.md"
CONTENTS = "mkdocs.yml"
FILES = (START, "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "docker/README.md")
FOLDERS = ("docs", "examples")
_STYLES = ("colours", "base", "guide")


def find_guide() -> Path:
    """The folder of its files: inside an installed package, or the repository around this one."""
    installed = HERE / "documents"
    return installed if installed.is_dir() else HERE.parents[1]


class Guide:
    """Answers requests for the files in `folder`; each document is rendered once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._rendered: dict[str, asyncio.Task[Asset]] = {}

    async def redirect(self, request: Request) -> Response:
        """To its start, for an address without the slash."""
        # Relative, for proxies that serve this server under a path.
        return RedirectResponse(f"{GUIDE_PATH.removeprefix('/')}/")

    async def send(self, request: Request) -> Response:
        """A document, or a file beside one. Raises HTTPException: 404 if the guide has no such
        file."""
        name = request.path_params["name"] or START
        if not self.has(name):
            raise HTTPException(404, f"the guide has no {name!r}; it begins at {START}")
        if not name.endswith(".md"):
            text = "text/plain" if mimetypes.guess_type(name)[0] is None else None
            return FileResponse(self.folder / name, media_type=text)
        if name not in self._rendered:
            self._rendered[name] = asyncio.create_task(asyncio.to_thread(self.render, name))
        # Who asked first may leave; others wait for the same document.
        return (await asyncio.shield(self._rendered[name])).response(request, immutable=False)

    def has(self, name: str) -> bool:
        if normpath(name) != name or name.startswith(("/", "..")):
            return False
        listed = name in FILES or PurePosixPath(name).parts[0] in FOLDERS
        return listed and (self.folder / name).is_file()

    def render(self, name: str) -> Asset:
        markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
        tokens = markdown.parse((self.folder / name).read_text(encoding="utf-8"))
        heading = _anchor_headings(tokens) or name
        title = heading if name == START else f"{heading} · Cantata"
        _draw_diagrams(tokens)
        _unlink(tokens, lambda target: self._leads_somewhere(name, target))
        body = markdown.renderer.render(tokens, markdown.options, {})
        body = re.sub(
            "<th([^>]*)></th>", r"<td\1></td>", body
        )  # screen readers want headers' texts
        # What may be wider than the page scrolls, also by keys.
        body = re.sub("<(pre|table)>", r'<\1 tabindex="0">', body)
        up = "../" * name.count("/")
        page = fill(
            "guide",
            title=html.escape(title),
            home=f"{up}../",
            style="".join(read(f"styles/{style}.css") for style in _STYLES),
            contents="".join(self._list_contents(name, up)),
            body=body,
        )
        return Asset.of_text("guide.html", "text/html", page)

    def _leads_somewhere(self, name: str, target: str) -> bool:
        parts = urlsplit(target)
        if parts.scheme or not parts.path:
            return True
        return self.has(normpath(f"{PurePosixPath(name).parent}/{unquote(parts.path)}"))

    def _list_contents(self, current: str, up: str) -> Iterator[str]:
        for section, documents in self._contents.items():
            yield f"<h2>{html.escape(section)}</h2><ul>"
            for title, name in documents.items():
                here = ' aria-current="page"' if name == current else ""
                yield f'<li><a href="{up}{name}"{here}>{html.escape(title)}</a></li>'
            yield "</ul>"

    @cached_property
    def _contents(self) -> Mapping[str, Mapping[str, str]]:
        """Documents by title, by section: the navigation of the documentation site."""
        text = (self.folder / CONTENTS).read_text(encoding="utf-8")
        # BaseLoader: the file names Python functions in tags, which nothing here needs.
        entries: Sequence[Mapping[str, Any]] = yaml.load(text, yaml.BaseLoader)["nav"]
        contents: dict[str, dict[str, str]] = {}
        for entry in entries:
            for title, value in entry.items():
                documents = [{title: value}] if isinstance(value, str) else value
                listed = contents.setdefault("Cantata" if isinstance(value, str) else title, {})
                listed.update((t, n) for one in documents for t, n in one.items() if self.has(n))
        return contents


def _anchor_headings(tokens: Sequence[Token]) -> str:
    """Gives headings the ids that GitHub gives them; returns the first heading's text."""
    title = ""
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open":
            text = "".join(one.content for one in inline.children or ())
            title = title or text
            kept = re.sub(r"[^\w\- ]", "", text.lower())
            heading.attrSet("id", kept.strip().replace(" ", "-"))
    return title


def _draw_diagrams(tokens: Sequence[Token]) -> None:
    """Puts lists of arrows in the places of flowcharts; an unknown one stays as its source."""
    for token in tokens:
        if token.type == "fence" and token.info.strip() == "mermaid":
            with suppress(UnknownFlowchart):
                token.content = draw_flowchart(token.content)
                token.type = "html_block"


def _unlink(tokens: Sequence[Token], is_kept: Callable[[str], bool]) -> None:
    """Leaves of a link that is not kept only its text."""
    for inline in (token for token in tokens if token.children):
        kept, is_inside = [], False
        for child in inline.children or ():
            if child.type == "link_open":
                is_inside = not is_kept(str(child.attrGet("href")))
            if not (is_inside and child.type in ("link_open", "link_close")):
                kept.append(child)
        inline.children = kept
