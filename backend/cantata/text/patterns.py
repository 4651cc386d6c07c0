"""The patterns of markup, complete and unfinished.

Clients choose the text, so nothing here may take more than linear time: every repetition is
bounded or excludes the character that the pattern begins with. `is_tag` and `replacement`
say which tags are dropped, which separate the text around them, and which are not tags.
"""

from __future__ import annotations

import re


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


_QUOTED = r"""
    \\?"[^"<>\\]{0,300}\\?" | \\?'[^'<>\\]{0,300}\\?' | [\u201c\u201d][^\u201c\u201d<>]{0,300}\u201d
"""
"""A quoted value; also with the backslashes of a text that was escaped once too often, and in curly
quotes."""
_URL = r"""(?<![A-Za-z])(?:https?|ftp)://[^\s<>"'`*\[\]()]"""
_ATTRIBUTE = rf"(?:\s+[\w:.-]{{1,40}}(?:\s*=\s*(?:{_QUOTED}|[^\s\"'<>=`]{{1,100}}))?)"
_GIVEN = r"""(?:\s+[\w:.-]{1,40}\s*=\s*(?:
    \\?"[^"<>]{0,300}" | \\?'[^'<>]{0,300}' | [\u201c\u201d][^\u201c\u201d<>]{0,300}\u201d ))"""
"""An attribute of an element whose values may have backslashes, as X-SAMPA does."""
_TITLE = r"""(?:\s{1,3}(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'))"""
_TARGET = rf"""
    \( \s{{0,3}}
    (?: <[^<>\n]{{0,1000}}> | [^()\s<>]{{0,1000}} (?:\([^()\s]{{0,200}}\)[^()\s]{{0,200}}){{0,3}} )
    {_TITLE}? \s{{0,3}} \)
"""
_COMMENT = r"<!--(?:[^<-]|-(?!->)|<(?!!--)){0,4000}"
_MATH = r"(?:(?=\d)[^\s$]{1,100}|(?![\s\d])(?:[^$\n.!?]|[.!?](?!\s)){1,200})"
"""A formula is within one sentence; one that begins with a digit has no spaces: `$5 and $6`."""
_FENCE = r"(?:`{3,20}|~{3,20})"

_TOKENS = rf"""
    (?= [<\[\]!$&*_~`|\\>\#=:\x00-\x08\x0e-\x1b\x7f\x9b-] | [hf] | @LINE@[ \t] ) (?:
        # what any of it begins with: plain text is passed over quickly
    (?P<kept> \[\[[^\[\]]{{0,2000}}\]\] | {_URL}{{1,2000}} )
        # a model's own notation, and addresses: all their signs are meant
  | (?P<pause> (?<!\[) \[ \s{{0,9}} pause (?!\w) (?P<length> [^\[\]]{{0,40}}) (?P<closed> \]?) )
        # one whose end never comes ends with the text
  | (?P<code> (?<!`) ` (?P<words> [^`\n]{{1,200}} ) ` (?!`) )
  | (?P<ansi>
        \x1b\][^\x07\x1b\x9c]{{0,2000}}(?:\x07|\x1b\\|\x9c)
      | \x1b[PX^_][^\x1b\x9c]{{0,2000}}(?:\x1b\\|\x9c)
      | (?:\x1b\[|\x9b)[0-?]{{0,60}}[ -/]{{0,8}}(?:[@-~]|\Z)
      | \x1b[ -/]{{0,4}}[0-~]? | [\x00-\x08\x0e-\x1a\x7f] )
  | (?P<hidden>
        {_COMMENT}-->
      | <(?P<raw>script|style)\b[^<>]{{0,200}}>[^<]{{0,4000}}</(?P=raw)\s{{0,9}}>
      | <[?][^<>]{{0,280}}> | <!doctype\b[^<>]{{0,280}}> )
  | (?P<declaration> <!(?:entity|element|attlist|notation)\b )
  | (?P<literal> <!\[CDATA\[ (?P<data> [^\]]{{0,1000}}) \]\]> )
  | (?P<substitute>
        <sub\s[^<>]{{0,60}}?\balias\s*=\s*\\?["'] (?P<alias> [^"'<>\\]{{1,200}})
        \\?["'][^<>]{{0,60}}> (?P<replaced> [^<]{{0,300}}) </sub\s{{0,9}}> )
  | (?P<element>
        <(?P<kind> phoneme | say-as) (?P<given> {_GIVEN}{{1,6}}) \s{{0,9}}
        (?: /> | > (?P<content> [^<]{{0,300}}) </(?P=kind)\s{{0,9}}> ) )
        # SSML that says how its text is read
  | (?P<break> <break (?P<attributes> {_ATTRIBUTE}{{0,4}}) \s{{0,9}} /?> )
  | (?P<tag>
        < (?P<slash> /?) (?P<name> [A-Za-z][\w:.-]{{0,40}}) (?P<more> {_ATTRIBUTE}{{0,12}})
        \s{{0,9}} (?P<empty> /?) > )
  | (?P<autolink>
        < (?P<address> [A-Za-z][A-Za-z0-9+.-]{{1,31}}:[^\s<>]{{1,2000}}
        | [^\s<>@]{{1,64}}@[\w.-]{{1,253}}
        | [\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,8}}/[^\s<>]{{0,1000}} ) > )
  | (?P<placeholder> < (?P<inner> [A-Za-z][\w ,'-]{{0,60}}) > )
  | (?P<definition>
        @LINE@ [ ]{{0,3}} \[(?!\^)[^\[\]\n]{{1,100}}\]: [ \t]{{1,9}}
        <?(?:[a-z][a-z0-9+.-]{{1,20}}:|[/\#.])\S{{0,1000}}
        (?:[ \t]{{1,9}}["'(][^\n]{{0,200}})? (?=\n|\Z) )
  | (?P<link>
        (?: ! | (?<![A-Za-z0-9_\[!]) ) \[(?![\[^]) (?P<label> [^\[\]\n]{{0,300}}) \]
        (?: {_TARGET} | (?<=[^\W\d]\]) \[[^\[\]\n]{{0,100}}\] ) )
  | (?P<dropped> @LINE@ [ ]{{0,3}}\[\^[^\[\]\s]{{1,40}}\]: | \[\^[^\[\]\s]{{1,40}}\]
      | \[(?=!\[) | (?<=\))\]\([^()\s<>]{{1,1000}}\) | \${{2}} | \\[()\[\]] )
        # footnotes, the target behind a picture that is a link, the fences of formulas
  | (?P<formula> (?<![\w$\\]) \$ (?P<math> {_MATH}) (?<![\s\\]) \$ (?![\w$]) )
  | (?P<line> @LINE@
        (?P<quote> (?:[ \t]{{0,12}}>[ \t]{{0,4}}){{1,10}} )? [ \t]{{0,12}}
        (?: {_FENCE} [ \t]{{0,4}}[\w+\#./-]{{0,40}}
            [ \t]{{0,4}}(?:\{{[^\n}}]{{0,100}}\}})?[ \t]{{0,9}}(?=\n|\Z)
          | (?P<ruler> [-*_=])[ \t]?(?:(?P=ruler)[ \t]?){{2,100}}(?=\n|\Z)
          | (?=[^\n]{{0,300}}--)[ \t|:-]{{3,300}}(?=\n|\Z)
          | \#{{1,6}}(?=[ \t\n]|\Z)[ \t]{{0,9}}
          | (?(quote)|(?!)) ) )
  | (?P<entity> &(?:\#\d{{1,7}}|\#[xX][0-9a-fA-F]{{1,6}}|[A-Za-z][A-Za-z0-9]{{1,31}}); )
  | (?P<escaped> \\ (?P<character> [!-'*-/:-@^_`{{-~\\]) )
  | (?P<mark> \*{{1,30}} | _{{1,30}} | ~{{2,30}} | `{{1,30}} )
  | (?P<cell> \|{{1,30}} )
    )
"""


_LINE = r"(?:\A|(?<=\n))"
_INSIDE = r"(?<=\n)"


def _compile(pattern: str, line: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("@LINE@", line), re.IGNORECASE | re.VERBOSE)


TOKENS = _compile(_TOKENS, _LINE)
"""Markup in a text that begins a line. The outer group that matched names the kind."""
TOKENS_INSIDE = _compile(_TOKENS, _INSIDE)
"""Markup in a text that begins inside a line."""

_LONG_OPEN = rf"""
    \[\[[^\[\]]{{0,2000}}\]? | (?<!\[)\[\s{{0,9}}pause(?!\w)[^\[\]]{{0,40}}
  | {_URL}{{0,2000}} | (?<![A-Za-z])(?:h|ht|htt|https?|f|ft|ftp):?/{{0,2}}
  | (?<!`)`(?:[^`\n]{{1,200}}`?)?
  | \x1b\][^\x07\x1b\x9c]{{0,2000}}\x1b? | \x1b[PX^_][^\x1b\x9c]{{0,2000}}\x1b?
  | (?:\x1b\[?|\x9b)[0-?]{{0,60}}[ -/]{{0,8}} | \x1b[ -/]{{0,4}}
  | {_COMMENT} | <(?:script|style)\b[^<>]{{0,200}}>[^<]{{0,4000}}(?:</?\w{{0,6}}\s{{0,9}})?
  | <!\[CDATA\[[^\]]{{0,1000}}\]{{0,2}}
  | <(?:sub|phoneme|say-as)\s[^<>]{{0,900}}>[^<]{{0,300}}(?:</?[\w-]{{0,7}}\s{{0,9}})?
  | <(?:phoneme|say-as)\s[^<>]{{0,900}}
  | <(?:[A-Za-z/!?][^<>]{{0,300}}>?)? | <[^\s<>]{{0,2000}}
  | !?\[!?\[?[^\[\]\n]{{0,300}}(?:\](?:\([^\n\[]{{0,1500}}|\[[^\[\]\n]{{0,100}})?)?
  | (?<![\w$\\])\$(?:{_MATH}\$?)?
"""
POWER = re.compile(r"[A-Za-z0-9]\*\*[-\u2212]\d|[\d)\]]\*\*\(|[)\]]\*\*[A-Za-z0-9]")
"""A power as programs write it, which bold text never looks like."""
_IPA = "\u00e6\u00e7\u00f0\u00f8\u0127\u014b\u0153\u0250-\u036f\u03b2\u03b8\u03c7\u1d00-\u1dbf"
PHONES_TARGET = re.compile(
    rf"\]\(\s{{0,3}}(?P<phones>/(?=[^/]{{0,99}}[{_IPA}])[A-Za-z'. {_IPA}]{{1,100}}/)\s{{0,3}}\)\Z"
)
"""A link's target that is phones between slashes; one with only ASCII letters is a path."""
TAG_IN_CODE = re.compile(r"</?(?P<inner>[A-Za-z][^<>]{0,60}?)\s?/?>")
"""A tag that the text mentions in code."""
OPEN = re.compile(rf"(?:{_LONG_OPEN})\Z", re.IGNORECASE | re.VERBOSE)
"""The end of a text that may be the beginning of markup with spaces in it."""
_OPEN_WORD = rf"""(?:
    {_LONG_OPEN}
  | &\#?\w{{0,31}};? | [*_~`|\\$\]]{{1,31}} | \*\*[-\u2212] | \\[^\w\s] | !
  | \]\([^()\s<>]{{0,1000}}
  | @LINE@ [ ]{{0,3}} \[[^\[\]\n]{{0,100}}(?:\]:?[^\n]{{0,1300}})?
  | @LINE@ [ \t>]{{0,80}} (?: {_FENCE}[^\n]{{0,160}} | [ \t|:*_=`~\#-]{{1,310}} )?
    )\Z"""
OPEN_WORD = _compile(_OPEN_WORD, _LINE)
OPEN_WORD_INSIDE = _compile(_OPEN_WORD, _INSIDE)
"""The end of a text whose meaning the next character may decide."""
