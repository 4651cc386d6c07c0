"""Markup in a client's text: what is dropped, what is read instead, and where the text pauses.

Texts come from language models, web pages and terminals, with Markdown, HTML, SSML and ANSI escape
sequences in them. Listeners should hear none of that, whichever model speaks. docs/protocol.md has
the rules. SSML is read here too, by bounded patterns instead of an XML parser: it stands in plain
texts, arrives in pieces and keeps its places; nothing in it can be expanded or fetched.

A text that arrives in pieces is read by the same rules. Each rule looks only at the mark, the
characters beside it and the beginning of its line, so plain words never wait for later text.
"""

from cantata.text.arriving import ArrivingMarkup, find_markup_spans
from cantata.text.passages import Passage, TextPause, is_silent, with_pauses_inside
from cantata.text.reading import find_ignored, read_markup, strip_markup
from cantata.text.ssml import Prosody, TextMark, find_lexicons, find_marks

__all__ = [
    "ArrivingMarkup",
    "Passage",
    "Prosody",
    "TextMark",
    "TextPause",
    "find_ignored",
    "find_lexicons",
    "find_marks",
    "find_markup_spans",
    "is_silent",
    "read_markup",
    "strip_markup",
    "with_pauses_inside",
]
