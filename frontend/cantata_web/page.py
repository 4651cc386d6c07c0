"""The page's files: its markup, one script, one stylesheet, and the audio thread's script."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from cantata_web.assets import Asset
from cantata_web.bundle import link

HERE = Path(__file__).parent
SCRIPTS = HERE / "static"
ASSETS_PATH = "cantata_web"

PARTS = ("speak", "keep", "clone", "parallel", "metrics")
# In this order: later rules refine earlier ones.
STYLES = ("colours", "base", "controls", "stage", "tabs", "keep", "narrow", "forced")


@dataclass(frozen=True)
class Page:
    document: Asset
    assets: Sequence[Asset]
    """What it loads, under their hashed names in ASSETS_PATH."""


def build_page(api_base: str = "") -> Page:
    """The page; it calls the server at `api_base`, or the one that it came from.

    Raises:
        BundleError: the scripts cannot be linked.
    """
    worklet = _script("worklet.js", link(SCRIPTS, "player/worklet.js", _no_url))

    def url_of(name: str) -> str:
        assert name == "player/worklet.js", name
        return f"new URL({json.dumps(worklet.hashed_name)}, import.meta.url)"

    script = _script("page.js", link(SCRIPTS, "page.js", url_of))
    style = "".join(_read(f"styles/{name}.css") for name in STYLES)
    stylesheet = Asset.of_text("page.css", "text/css", style)
    icon = Asset("favicon.png", "image/png", (HERE / "favicon.png").read_bytes())

    if api_base and not api_base.endswith("/"):
        api_base += "/"
    document = Template(_read("markup/page.html")).substitute(
        api_base=html.escape(api_base, quote=True),
        icon=f"{ASSETS_PATH}/{icon.hashed_name}",
        stylesheet=f"{ASSETS_PATH}/{stylesheet.hashed_name}",
        script=f"{ASSETS_PATH}/{script.hashed_name}",
        **{part: _read(f"markup/{part}.html") for part in PARTS},
    )
    return Page(
        Asset.of_text("page.html", "text/html", document), (script, worklet, stylesheet, icon)
    )


def _script(name: str, source: str) -> Asset:
    return Asset.of_text(name, "text/javascript", source)


def _no_url(name: str) -> str:
    raise AssertionError(f"the audio thread loads no script: {name}")


def _read(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
