"""The page's files: its markup, one script, one stylesheet, and the audio threads' scripts."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

from cantata_web.assets import Asset
from cantata_web.sources import HERE, MICROPHONE, WORKLET, fill, read, script

ASSETS_PATH = "cantata_web"

PARTS = ("speak", "keep", "talk", "draw", "listen", "clone", "parallel", "metrics")
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
    page = _script("page.js", script("page.js", urls))
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
        **{part: read(f"markup/{part}.html") for part in PARTS},
    )
    return Page(
        document=Asset.of_text("page.html", "text/html", document),
        icon=icon,
        assets=(page, worklet, microphone, stylesheet),
    )


def _script(name: str, source: str) -> Asset:
    return Asset.of_text(name, "text/javascript", source)


def _inline(asset: Asset) -> str:
    """A small file as a URL that nothing has to be fetched for."""
    return f"data:{asset.media_type};base64,{base64.b64encode(asset.body).decode('ascii')}"


def _get_url(asset: Asset) -> str:
    """Its URL in a script beside it."""
    return f"new URL({json.dumps(asset.hashed_name)}, import.meta.url)"
