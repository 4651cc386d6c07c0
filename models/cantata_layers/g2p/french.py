# ruff: noqa: RUF001 (phones that look like letters are what this file is about)
"""French to phones, as Kokoro's voice learnt them.

Which last letters are silent follows from the spelling, but for verbs in -ent and a list of words.
Words that end in a silent consonant lend it to a vowel behind them, where that is always done.
"""

from __future__ import annotations

import unicodedata

from cantata_layers.g2p.french_words import ASPIRATED, SILENT_ENDING, SPELT
from cantata_layers.g2p.letter_rules import (
    STRESS,
    LetterRules,
    compile_changes,
    list_words,
    substitute,
)
from cantata_layers.g2p.spelled_words import Spelling, count_in

_V = "aeiouyàâäéèêëîïôöùûüœæ"
_C = "bcdfghjklmnpqrstvwxzç"
_F = "eiyéèêëîï"
_RULES = LetterRules(
    (
        # Last letters that are not said.
        ("(?<=ai)ent$|(?<=[iy]ss)ent$|(?<=[èuiîâ]r)ent$|(?<=nn)ent$", ""),
        (f"(?<=[{_V}l])ers$|(?<=[^{_V}]i)ers$|(?<=[{_V}][{_C}])ers?$", "e"),
        (f"(?<=[{_C}]{{2}})ers?$|(?<=[iuyé])er$", "e"),
        ("ez$", "e"),
        ("ets?$", "ɛ"),
        ("(?<=.)es?$", ""),
        # Vowels with nasals.
        (f"(?:aim|ain|ein|eim)(?![{_V}mn])", "ɛ̃"),
        ("(?<=i)en(?=[ct])(?!t$)|(?<=pati)en(?=t)|(?<=cli)en(?=t)", "ɑ̃"),
        ("um$", "ɔm"),
        (f"(?<=i)en(?![{_V}n])|(?<=é)en(?![{_V}n])|(?<=y)en(?![{_V}n])", "ɛ̃"),
        (f"(?:am|an|em|en)(?![{_V}mnh])", "ɑ̃"),
        ("emm(?=e)", "am"),
        ("en(?=n[ou])|^emm|^em(?=m)", "ɑ̃"),
        (f"(?:im|in|ym|yn|în)(?![{_V}mnh])", "ɛ̃"),
        (f"(?:om|on)(?![{_V}mnh])", "ɔ̃"),
        (f"(?:um|un)(?![{_V}mnh])", "œ̃"),
        (f"oin(?![{_V}n])", "wɛ̃"),
        # Groups of vowels.
        ("eaux?|aux?", "O"),
        ("œu|œ", "œ"),
        ("eui(?=ll)|euil|ueil", "œj"),
        ("eu(?=r$|rs?$|re|f|il|bl|pl|ple|l)|œ", "œ"),
        ("eux$", "ø"),
        ("eû|eu", "ø"),
        ("ouill", "uj"),
        ("aill|ail$|ails$", "aj"),
        ("eill|eil$|eils$", "ɛj"),
        ("(?<=tranqu)ill", "il"),
        (f"ill(?=[{_V}])", "ij"),
        (f"oy(?=[{_V}])", "waj"),
        (f"ay(?=[{_V}])", "ɛj"),
        (f"uy(?=[{_V}])", "yij"),
        ("oî|oi|oy", "wa"),
        (f"ou(?=[{_V}])(?!e$|es$|ent$)", "w"),
        ("où|oû|ou", "u"),
        ("aî|ai|ay|ei|ey", "ɛ"),
        (f"(?<=[aeé])ï(?=[{_V}])", "j"),
        (f"(?<![bcdfgptv][rl])i(?=[{_V}])(?!es?$)", "j"),
        (f"y(?=[{_V}])(?!e$|es$)", "j"),
        ("(?<=[cg])(?:ue)(?=il)", "œ"),
        # Consonants.
        ("ch(?=[rlnt])|ch$(?<=e)ch", "k"),
        ("ch", "ʃ"),
        ("ph", "f"),
        ("th", "t"),
        (f"gn(?=[{_V}])(?!es?$)", "nj"),
        ("gn", "ɲ"),
        (f"gu(?=[{_F}])", "ɡ"),
        ("ge(?=[aoâôu])", "ʒ"),
        (f"g(?=[{_F}])|j", "ʒ"),
        ("qu|q", "k"),
        (f"cc(?=[{_F}])", "ks"),
        (f"sc(?=[{_F}])", "s"),
        (f"c(?=[{_F}])|ç", "s"),
        ("(?<=n)ct$|(?<=spe)cts?$", ""),
        (f"xc(?=[{_F}])", "ks"),
        ("(?<=com)pt", "t"),
        ("ss", "<s>"),
        ("st$", "st"),
        ("cts?$", "kt"),
        (f"(?<=[{_V}])s(?=[{_V}h])", "z"),
        ("(?<=an)s(?=[ai])(?<=trans)", "z"),
        ("(?<![sx])ti(?=on|el|eux|aire|ale?s?$|aux$)|(?<=pa)ti(?=en)", "sj"),
        ("(?<=ra)tie$|(?<=a)tie$", "si"),
        ("(?<=e)x(?=[aeiouéè])(?<=^ex)", "ɡz"),
        ("x(?=[ièe])(?<=[di]x)", "z"),
        # Silent ends.
        ("(?:ps|ts|ds|gs|cs|bs)$", ""),
        ("(?<=[a-zéèêàœ])[tdpxzs]s?$(?<!^.)", ""),
        ("x", "ks"),
        ("(?<=[n])[cg]s?$", ""),
        ("(?<=r)[dtgs]s?$", ""),
        (r"([bcdfglmnprt])\1", r"<\1>"),
        ("h", ""),
        ("c|k", "k"),
        ("g", "ɡ"),
        ("r", "ʁ"),
        ("w", "w"),
        ("é", "e"),
        ("[èêë]", "ɛ"),
        ("[àâä]", "a"),
        ("[îï]", "i"),
        ("ô(?=[a-z]?[ts]?$|[a-z]e?s?$)", "Oː"),
        ("[ôö]", "O"),
        ("[ùûuü]", "y"),
        ("y", "i"),
        (r"([aio])", r"\1"),
        ("e", "E"),
        (r"([bdflmnpstvz])", r"\1"),
    )
)
_PHONES = "ieɛaɔoOuyøœəE"
_SOUNDS = "pbtdkɡfvszʃʒmnɲlʁjw"
_CHANGES = compile_changes(
    ("o(?=<)", "ɔ"),
    (r"^E(?=<[sf])", "e"),
    ("<c>", "k"),
    ("<r>", "ʁ"),
    ("<g>", "ɡ"),
    (r"E<(.)>", r"ɛ\1"),
    (r"<(.)>", r"\1"),
    ("kk$", "k"),
    (f"E(?=[{_SOUNDS}]+$|[{_SOUNDS}]$)", "ɛ"),
    (f"E(?=[ptkbdɡfv][lʁ][{_PHONES}ɑ])", "ə"),
    (f"E(?=[{_SOUNDS}][{_SOUNDS}])(?![{_SOUNDS}][jw])", "ɛ"),
    (f"(?<=[{_PHONES}̃][{_SOUNDS}])E(?=[{_SOUNDS}][{_PHONES}ɑjw])", ""),
    ("E", "ə"),
    (f"o(?=ʁ$|ʁ[{_SOUNDS}])", "ɔ"),
    (f"o(?=[{_SOUNDS}]+$)", "ɔ"),
    (f"o(?=[lsknpbdfɡmt][{_SOUNDS}])(?![tkpbdɡf][lʁ])(?!.[jw])", "ɔ"),
    ("^o(?=b)|o(?=ɡʁ|pʁ)", "ɔ"),
    ("O", "o"),
)

_NAMES = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        list_words(
            "a bé cé dé eu effe gé ache i ji ka elle emme enne o pé ku erre esse té u vé doublevé "
            "ixe igrec zède"
        ),
        strict=True,
    )
)
_VOWELS = "ieɛaɔouyøœɑə"
BOUND = "‿"
"""Before a consonant that is said only if a vowel follows."""
APART = "ʼ"
"""Before a word that nothing is joined to."""


def say_word(word: str) -> str:
    """The phones of a word in small letters, as it is said alone."""
    if word in _NAMES:
        return say_word(_NAMES[word]) if len(_NAMES[word]) > 1 else STRESS + word
    spelt = SPELT.get(word, word)
    if SILENT_ENDING.match(spelt):
        spelt = spelt.removesuffix("nt")
    phones = substitute(_RULES.apply(spelt), _CHANGES)
    phones = unicodedata.normalize("NFD", phones)
    nuclei = [place for place, phone in enumerate(phones) if phone in _VOWELS]
    full = [place for place in nuclei if phones[place] != "ə"] or nuclei
    if full:
        phones = phones[: full[-1]] + STRESS + phones[full[-1] :]
    return APART + phones if ASPIRATED.match(word) else phones


def _link(before: str, after: str) -> tuple[str, str]:
    """A silent consonant is said before a vowel."""
    word, _, bound = before.partition(BOUND)
    is_joined = after.lstrip(STRESS)[:1] in tuple(_VOWELS + "wj")
    return word + bound * is_joined, after.removeprefix(APART)


_WEAK = {
    **{word: f"{word[0]}ə" for word in list_words("de le me ne se te")},
    "je": "ʒə",
    "ce": "sə",
    "que": "kə",
    "la": "la",
    "ma": "ma",
    "ta": "ta",
    "sa": "sa",
    "du": "dy",
    "au": "o",
    "et": "e",
    "ou": "u",
    "par": "paʁ",
    "pour": "puʁ",
    "sur": "syʁ",
    "il": "il",
    "elle": "ɛl",
    "qui": "ki",
    "une": "yn",
    "tu": "ty",
    "y": "i",
    "à": "a",
    "a": "a",
    **{f"{letter}es": f"{letter}e{BOUND}z" for letter in "ldmts"},
    "ces": f"se{BOUND}z",
    "aux": f"o{BOUND}z",
    "nos": f"no{BOUND}z",
    "vos": f"vo{BOUND}z",
    "ils": f"il{BOUND}z",
    "elles": f"ɛl{BOUND}z",
    "nous": f"nu{BOUND}z",
    "vous": f"vu{BOUND}z",
    "dans": f"dɑ̃{BOUND}z",
    "sans": f"sɑ̃{BOUND}z",
    "sous": f"su{BOUND}z",
    "chez": f"ʃe{BOUND}z",
    "très": f"tʁɛ{BOUND}z",
    "plus": f"ply{BOUND}z",
    "mais": f"mɛ{BOUND}z",
    "pas": f"pa{BOUND}z",
    "deux": f"dˈø{BOUND}z",
    "trois": f"tʁwˈa{BOUND}z",
    "est": f"ɛ{BOUND}t",
    "ont": f"ˈɔ̃{BOUND}t",
    "sont": f"sɔ̃{BOUND}t",
    "tout": f"tu{BOUND}t",
    "quand": f"kɑ̃{BOUND}t",
    "petit": f"pətˈi{BOUND}t",
    "grand": f"ɡʁɑ̃{BOUND}t",
    "un": f"œ̃{BOUND}n",
    "en": f"ɑ̃{BOUND}n",
    "on": f"ɔ̃{BOUND}n",
    "mon": f"mɔ̃{BOUND}n",
    "ton": f"tɔ̃{BOUND}n",
    "son": f"sɔ̃{BOUND}n",
    "toute": "tut",
    "cette": "sɛt",
    "leur": "lœʁ",
    "leurs": f"lœʁ{BOUND}z",
    "notre": "notʁ",
    "votre": "votʁ",
    "toutes": f"tut{BOUND}z",
    "avec": "avˈɛk",
    "si": "sˈi",
    "c'": "s",
    "j'": "ʒ",
    "qu'": "k",
    "aujourd'": "oʒuʁd",
    "lorsqu'": "lɔʁsk",
    "puisqu'": "pyisk",
}
FRENCH = Spelling(
    count=count_in("fr"),
    say_word=say_word,
    weak={word: unicodedata.normalize("NFD", phones) for word, phones in _WEAK.items()},
    comma="virgule",
    minus="moins",
    signs={
        "%": "pour cent",
        "€": "euros",
        "$": "dollars",
        "£": "livres",
        "&": "et",
        "+": "plus",
        "=": "égale",
        "@": "arobase",
        "°": "degrés",
    },
    short={
        "m.": "monsieur",
        "mme": "madame",
        "mlle": "mademoiselle",
        "dr": "docteur",
        "etc.": "etcétéra",
        "km": "kilomètres",
        "kg": "kilogrammes",
        "cm": "centimètres",
    },
    link=_link,
)
