"""The sources of what browsers get: markup, styles and scripts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template
from types import MappingProxyType

from .bundle import Rewrite, link, link_part, list_modules

HERE = Path(__file__).parent
SCRIPTS = HERE / "static"
WORKLET = "player/worklet.js"
"""The script of the audio thread that plays, which browsers load apart."""
MICROPHONE = "talk/worklet.js"
"""The script of the one that listens."""


def read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def fill(name: str, rewrite: Rewrite = str, /, **values: str) -> str:
    """A markup file, rewritten, with its `$names` filled in."""
    return Template(rewrite(read(f"markup/{name}.html"))).substitute(values)


def script(
    entry: str, urls: Mapping[str, str] = MappingProxyType({}), rewrite: Rewrite = str
) -> str:
    """The module `entry` and all that it imports, as `link` does it."""
    return link(SCRIPTS, entry, urls, rewrite)


def script_of_part(entry: str, urls: Mapping[str, str], beside: str, rewrite: Rewrite = str) -> str:
    """The module `entry` and all that it imports, less what the script of `beside` has."""
    return link_part(SCRIPTS, entry, urls, list_modules(SCRIPTS, beside), rewrite)
