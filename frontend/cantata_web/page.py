"""The page's files: its markup, one script, one stylesheet, and the audio threads' scripts.

Files never change under their name.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution, version

from cantata_web.asset import Asset
from cantata_web.messages import ENGLISH, Messages, list_languages, read_messages
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
PARTS = ("speak", "keep", "talk", "draw", "listen", "clone")
LATE_PARTS = ("read", "chat", "talkmore", "voices", "agreement", "lab", "figures", "code")
"""Tabs, or parts of some, that browsers fetch when they are first opened: the module views/NAME.js,
markup and styles."""
# In this order: later rules refine earlier ones.
STYLES = (
    "colours",
    "base",
    "controls",
    "stage",
    "player",
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
    license: Asset
    assets: Sequence[Asset]
    """What it loads, under their hashed names in ASSETS_PATH."""


def build_page(api_base: str = "", language: str = ENGLISH) -> Page:
    """The page.

    Args:
        api_base: the server that it calls, with a slash at the end; or else the one it came from.
        language: one of `list_languages`.

    Raises:
        BundleError: the scripts cannot be linked.
    """
    messages = read_messages(language)
    worklet = _make_script("worklet.js", script(WORKLET))
    microphone = _make_script("microphone.js", script(MICROPHONE))
    urls = {WORKLET: _get_url(worklet), MICROPHONE: _get_url(microphone)}
    late = [_build_late(name, urls, messages) for name in LATE_PARTS]
    for part in late:
        urls[part.module] = _get_url(part.script)
    attributes = {part.name: part.attributes for part in late}
    linked = script(ENTRY, urls, messages.translate_script)
    page = _make_script(_name_file("page", "js", language), linked)
    style = "".join(read(f"styles/{name}.css") for name in STYLES)
    stylesheet = Asset.of_text("page.css", "text/css", style)
    icon = Asset("favicon.png", "image/png", (HERE / "favicon.png").read_bytes())

    markup = messages.translate_markup
    document = fill(
        "page",
        markup,
        language=language,
        languages=_link_languages(language),
        version=html.escape(version("cantata")),
        api_base=html.escape(api_base, quote=True),
        icon=_encode_inline(icon),
        stylesheet=f"{ASSETS_PATH}/{stylesheet.hashed_name}",
        script=f"{ASSETS_PATH}/{page.hashed_name}",
        key_dialog=fill("key", markup, id="cantata-key"),
        **{part: fill(part, markup, **attributes) for part in PARTS},
        **attributes,
    )
    return Page(
        document=Asset.of_text("page.html", "text/html", document),
        icon=icon,
        license=Asset.of_text("license.txt", "text/plain", _read_license()),
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


def _build_late(name: str, urls: Mapping[str, str], messages: Messages) -> _LatePart:
    module = f"views/{name}.js"
    linked = script_of_part(module, urls, ENTRY, messages.translate_script)
    markup = messages.translate_markup(read(f"markup/{name}.html"))
    language = messages.language
    return _LatePart(
        name,
        module,
        script=_make_script(_name_file(name, "js", language), linked),
        markup=Asset.of_text(_name_file(name, "html", language), "text/html", markup),
        style=Asset.of_text(f"{name}.css", "text/css", read(f"styles/{name}.css")),
    )


def language_of(asset_name: str) -> str:
    """The language of the page that loads an asset of that hashed name."""
    language = asset_name.partition(".")[2].partition("-")[0]
    return language if language in list_languages() else ENGLISH


def _name_file(name: str, extension: str, language: str) -> str:
    """An asset's name. It tells the language, so that a server that was restarted builds it."""
    return f"{name}.{extension}" if language == ENGLISH else f"{name}.{language}.{extension}"


def _link_languages(current: str) -> str:
    links = []
    for tag in list_languages():
        here = ' aria-current="true"' if tag == current else ""
        name = read_messages(tag).name
        links.append(f'<a href="?lang={tag}" hreflang="{tag}" lang="{tag}"{here}>{name}</a>')
    return "".join(links)


def _read_license() -> str:
    """The text that was installed with the package, so that its link works without a network."""
    text = distribution("cantata").read_text("licenses/LICENSE")
    assert text is not None, "pyproject.toml names it"
    return text


def _make_script(name: str, source: str) -> Asset:
    return Asset.of_text(name, "text/javascript", source)


def _encode_inline(asset: Asset) -> str:
    """A small file as a URL that nothing has to be fetched for."""
    return f"data:{asset.media_type};base64,{base64.b64encode(asset.body).decode('ascii')}"


def _get_url(asset: Asset) -> str:
    """Its URL in a script beside it."""
    return f"new URL({json.dumps(asset.hashed_name)}, import.meta.url)"
