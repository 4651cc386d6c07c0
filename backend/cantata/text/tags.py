"""Tags: which are dropped, which separate the text around them, and which are not tags."""

from __future__ import annotations


def _names(names: str) -> frozenset[str]:
    return frozenset(names.split())


_BLOCK = _names(
    "address article aside blockquote body br caption center dd details dialog div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol "
    "optgroup option p paragraph pre s sentence section speak summary table tbody td tfoot th "
    "thead title tr ul answer analysis artifact assistant context document documents example "
    "examples final function_call function_calls instructions invoke output query question "
    "reasoning reflection response result scratchpad system thought thoughts think thinking "
    "tool_call tool_calls tool_response tool_result user"
)
"""Block tags of HTML, SSML and language models. The text on either side of one is not one word."""

_INLINE = _names(
    "a abbr acronym audio b base bdi bdo big blink button canvas cite code col colgroup data "
    "datalist del dfn em embed font i iframe img input ins kbd label link map mark math menu meta "
    "meter noscript object output param picture progress q rp rt ruby samp script search select "
    "slot small source span strike strong style sub sup svg template textarea time track tt u var "
    "video wbr break desc emphasis lang lexicon lookup metadata phoneme prosody say-as token "
    "voice w laugh laughs laughter chuckle sigh cough sniffle groan yawn gasp whisper"
)
"""Tags that may stand inside a word or a sentence."""

_PREFIXES = ("amazon", "google", "html", "mstts", "ssml", "svg", "xhtml", "xml")
_FLAGS = _names(
    "allowfullscreen async autofocus autoplay checked controls default defer disabled download "
    "hidden loop multiple muted nomodule novalidate open playsinline readonly required reversed "
    "selected"
)
"""Attributes of HTML that need no value."""


def is_tag(name: str, attributes: str, *, closes: bool, empty: bool) -> bool:
    """Tell a tag from a placeholder such as `<name>` or `<your city>`, whose words are read.

    Args:
        name: behind the bracket and its slash.
        attributes: all that follows the name.
        closes: it is `</name>`.
        empty: it is `<name/>`.
    """
    if "." in name:
        return False
    lower = name.lower()
    prefix, colon, _ = lower.partition(":")
    known = lower in _BLOCK or lower in _INLINE or (bool(colon) and prefix in _PREFIXES)
    if "=" in attributes:
        return True
    words = attributes.split()
    if known:
        return all(word.lower() in _FLAGS for word in words)
    return not words and not colon and (closes or empty)


def replacement(name: str) -> str:
    """The text that replaces a tag: a new line if the tag separates words, otherwise nothing."""
    return "\n" if name.lower() in _BLOCK else ""
