"""The documents: every link leads somewhere, and every command they name exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from cantata.cli.app import COMMANDS_GROUP, app

ROOT = Path(__file__).parents[3]
_NOT_OURS = {"artifacts", "build", "dist", "node_modules"}
_CODE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1|(`+)(?!`).+?(?<!`)\2(?!`)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)|\b(?:src|srcset|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
_MAKE = re.compile(r"\bmake ((?:[a-z][a-z0-9-]*(?:=\S*)?\s?)+)")
_TARGET = re.compile(r"^([a-z0-9-]+):", re.MULTILINE)
_CANTATA = re.compile(r"(?:^|[\s/`])cantata ([a-z-][^\n`|>&#]*)")


def documents() -> list[Path]:
    paths = ROOT.rglob("*.md")
    inside = ((path, path.relative_to(ROOT).parts) for path in paths)
    return sorted(
        path
        for path, parts in inside
        if not any(part.startswith(".") or part in _NOT_OURS for part in parts)
    )


def iterate_code(document: Path) -> Iterator[str]:
    """Code blocks and inline code: what a reader may copy."""
    for found in _CODE.finditer(document.read_text(encoding="utf-8")):
        yield found[0].strip("`~").replace("\\\n", " ")


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives a document's headings."""
    text = _CODE.sub(
        lambda found: "" if "\n" in found[0] else found[0], document.read_text("utf-8")
    )
    slugs: set[str] = set()
    for heading in _HEADING.findall(text):
        words = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while (slug := f"{words}-{number}" if number else words) in slugs:
            number += 1
        slugs.add(slug)
    return slugs


def by_name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", documents(), ids=by_name)
def test_links_lead_somewhere(document: Path) -> None:
    text = _CODE.sub("", document.read_text(encoding="utf-8"))
    broken = []
    for target in (link or attribute for link, attribute in _LINK.findall(text)):
        if re.match(r"[a-z]+:", target):
            continue  # another site: the tests have no network
        path, _, anchor = target.partition("#")
        linked = (document.parent / path).resolve() if path else document
        if not linked.exists() or (anchor and anchor not in anchors(linked)):
            broken.append(target)
    assert not broken


@cache
def make_targets() -> frozenset[str]:
    return frozenset(_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))


@cache
def command_line() -> TyperGroup:
    group = get_command(app)
    assert isinstance(group, TyperGroup)
    for command in entry_points(group=COMMANDS_GROUP):
        group.commands[command.name] = get_command(command.load())
    return group


def unknown_words(line: str) -> Iterator[str]:
    """What a `cantata` line has that the command does not know; `line` begins behind `cantata`."""
    command: TyperGroup | TyperCommand = command_line()
    path = "cantata"
    words = shlex.split(line, posix=False)
    while isinstance(command, TyperGroup) and words and not words[0].startswith("-"):
        if words[0] not in command.commands:
            break
        path += f" {words[0]}"
        inner = command.commands[words.pop(0)]
        assert isinstance(inner, TyperGroup | TyperCommand)
        command = inner
    if path == "cantata" and words and not words[0].startswith("-"):
        yield f"{path} {words[0]}"
        return
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    for word in words:
        flag = word.split("=")[0].strip("[](),.")
        if flag.startswith("-") and flag.strip("-.") and flag not in {*known, "--help", "-h"}:
            yield f"{path} {flag}"


@pytest.mark.parametrize("document", documents(), ids=by_name)
def test_commands_exist(document: Path) -> None:
    unknown: list[str] = []
    for code in iterate_code(document):
        for targets in _MAKE.findall(code):
            names = [word for word in targets.split() if "=" not in word]
            unknown += [f"make {name}" for name in names if name not in make_targets()]
        for line in _CANTATA.findall(code):
            unknown += unknown_words(line)
    assert not unknown


def test_what_is_broken_is_found(tmp_path: Path) -> None:
    assert len(documents()) > 10
    assert list(unknown_words("serve --port 1 --hots x")) == ["cantata serve --hots"]
    assert list(unknown_words("sing")) == ["cantata sing"]
    assert {"say", "serve", "doctor", "bench"} <= set(command_line().commands)
    document = tmp_path / "a.md"
    document.write_text("# One `two`, three\n```\n# no heading\n```\n## One two three\n")
    assert anchors(document) == {"one-two-three", "one-two-three-1"}
