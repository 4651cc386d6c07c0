"""The page's files: its markup, one script, one stylesheet, and the audio threads' scripts."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version

from cantata_web.assets import Asset
from cantata_web.sources import (
    HERE,
    MICROPHONE,
    WORKLET,
    fill,
    read,
    script,
    script_of_part,
)

ASSETS_PATH = "cantata_web"

ENTRY = "page.js"
PARTS = ("speak", "keep", "talk", "draw", "listen", "clone", "metrics")
LATE_PARTS = ("read", "chat", "talkmore", "voices", "agreement", "parallel")
"""Tabs, or parts of some, that browsers fetch when they are first opened: the module views/NAME.js,
markup and styles."""
# In this order: later rules refine earlier ones.
STYLES = (
    "colours",
    "base",
    "controls",
    "stage",
    "tabs",
    "keep",
    "talk",
    "draw",
    "listen",
    "offer",
    "narrow",
    "forced",
)


@dataclass(frozen=True)
class Page:
    document: Asset
    icon: Asset
    assets: Sequence[Asset]
    """What it loads, under their hashed names in ASSETS_PATH."""


def build_page(api_base: str = "") -> Page:
    """The page.

    Args:
        api_base: the server that it calls, with a slash at the end; or else the one it came from.

    Raises:
        BundleError: the scripts cannot be linked.
    """
    worklet = _script("worklet.js", script(WORKLET))
    microphone = _script("microphone.js", script(MICROPHONE))
    urls = {WORKLET: _get_url(worklet), MICROPHONE: _get_url(microphone)}
    late = [_build_late(name, urls) for name in LATE_PARTS]
    for part in late:
        urls[part.module] = _get_url(part.script)
    attributes = {part.name: part.attributes for part in late}
    page = _script(ENTRY, script(ENTRY, urls))
    style = "".join(read(f"styles/{name}.css") for name in STYLES)
    stylesheet = Asset.of_text("page.css", "text/css", style)
    icon = Asset("favicon.png", "image/png", (HERE / "favicon.png").read_bytes())

    document = fill(
        "page",
        version=html.escape(version("cantata")),
        api_base=html.escape(api_base, quote=True),
        icon=_inline(icon),
        stylesheet=f"{ASSETS_PATH}/{stylesheet.hashed_name}",
        script=f"{ASSETS_PATH}/{page.hashed_name}",
        key_dialog=fill("key", id="cantata-key"),
        **{part: fill(part, **attributes) for part in PARTS},
        **attributes,
    )
    return Page(
        document=Asset.of_text("page.html", "text/html", document),
        icon=icon,
        assets=(page, worklet, microphone, stylesheet, *(a for part in late for a in part.assets)),
    )


@dataclass(frozen=True)
class _LatePart:
    name: str
    module: str
    script: Asset
    markup: Asset
    style: Asset

    @property
    def assets(self) -> tuple[Asset, ...]:
        return self.script, self.markup, self.style

    @property
    def attributes(self) -> str:
        """Of its panel: from where it gets the rest."""
        markup, style = self.markup.hashed_name, self.style.hashed_name
        return f'data-markup="{ASSETS_PATH}/{markup}" data-style="{ASSETS_PATH}/{style}"'


def _build_late(name: str, urls: Mapping[str, str]) -> _LatePart:
    module = f"views/{name}.js"
    return _LatePart(
        name,
        module,
        script=_script(f"{name}.js", script_of_part(module, urls, beside=ENTRY)),
        markup=Asset.of_text(f"{name}.html", "text/html", read(f"markup/{name}.html")),
        style=Asset.of_text(f"{name}.css", "text/css", read(f"styles/{name}.css")),
    )


def _script(name: str, source: str) -> Asset:
    return Asset.of_text(name, "text/javascript", source)


def _inline(asset: Asset) -> str:
    """A small file as a URL that nothing has to be fetched for."""
    return f"data:{asset.media_type};base64,{base64.b64encode(asset.body).decode('ascii')}"


def _get_url(asset: Asset) -> str:
    """Its URL in a script beside it."""
    return f"new URL({json.dumps(asset.hashed_name)}, import.meta.url)"
