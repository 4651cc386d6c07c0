# ruff: noqa: RUF001 (phones that look like letters are what this file is about)
"""Brazilian Portuguese to phones, as Kokoro's voices learnt them."""

from __future__ import annotations

import re
import unicodedata

from cantata_layers.g2p.letter_rules import (
    STRESS,
    LetterRules,
    compile_changes,
    list_words,
    mark_stress,
    substitute,
)
from cantata_layers.g2p.spelled_words import Spelling, count_in

_VOWELS = "aeiouáâãàéêíóôõúü"
_FRONT = "eiéêí"
_RULES = LetterRules(
    (
        (f"gu(?=[{_FRONT}])", "ɡ"),
        ("qu(?=ên|ent[ea]s?$)", "kw"),
        (f"qu(?=[{_FRONT}])", "k"),
        ("qu", "kw"),
        ("gü", "ɡw"),
        ("gu(?=[aoáâãóô])", "ɡw"),
        ("ch|sh", "ʃ"),
        ("lh", "lj"),
        ("nh", "ɲ"),
        ("ph", "f"),
        ("rr", "x"),
        ("^r|(?<=[nls])r", "x"),
        (f"(?<=[{_VOWELS}])r(?=[{_VOWELS}])", "ɾ"),
        ("r$", "r"),
        (f"(?<=[{_VOWELS}])r(?=[^{_VOWELS}])", "ɾə"),
        ("r", "r"),
        ("ss", "s"),
        (f"sc(?=[{_FRONT}])", "s"),
        ("sç", "s"),
        (f"xc(?=[{_FRONT}])|x(?=t|im[oa])", "s"),
        ("(?<=[fntls][eiaé])x(?=[oaei])|(?<=tó)x|(?<=ó)x(?=i[cd])", "ks"),
        (f"c(?=[{_FRONT}])|ç", "s"),
        (f"g(?=[{_FRONT}])|j", "ʒ"),
        (f"(?<=[{_VOWELS}])s(?=[{_VOWELS}])", "z"),
        ("s(?=[bdgjlmnrvz])", "z"),
        ("z$", "s"),
        (f"(?<=^e)x(?=[{_VOWELS}])", "z"),
        (f"(?<=^e)xc(?=[{_FRONT}])|(?<=^e)x", "s"),
        ("x$", "ks"),
        ("x", "ʃ"),
        ("ck|[ckq]", "k"),
        ("g", "ɡ"),
        ("w", "w"),
        ("y", "i"),
        ("h", ""),
        (rf"([{_VOWELS}bdfjlmnpstvz])", r"\1"),
    )
)


_PLAIN = str.maketrans("áâãàéêíóôõúü", "aɐɐaɛeiɔoouw")
_NUCLEUS = re.compile("[aeɛioɔuɐ]")
_SYLLABLES = compile_changes(
    # X is the end of -ão, N a nasal that is heard in the vowel before it, M the same before p, b,
    # L an l that became a vowel.
    ("ão", "ãX"),
    ("ãe", "ãy"),
    ("õe", "õj"),
    ("am$", "aW"),
    ("[mn](?=[pb])", "M"),
    (f"n(?![{_VOWELS}jw])|m(?![{_VOWELS}jwM])", "N"),
    (f"(?<=[aeoáâéêóôiuúí])l(?![{_VOWELS}j])", "L"),
    (f"(?<=[aeoáâéêóôu])i(?![{_VOWELS}NM]|ɲ|r$)", "ɪ"),
    (f"(?<=[aeoáâéêóôií])u(?![{_VOWELS}NMn])", "ʊ"),
    ("(?<=[aeoáâéêóô])i(?=[aeo]s?$|ar$|[aáâéo])", "ɪ"),
)
_CHANGES = compile_changes(
    ("(?<![ˈˌ])i(?=[aeo]s?$)", "j"),
    ("ɐ(?=X)", "ɐ̃"),
    ("aW$", "ɐ̃ʊ̃"),
    ("X", "ʊ̃"),
    ("[aɐ](?=[NM])", "ɐ̃"),
    ("(?<=ˈ)a(?=[mnɲ])", "ɐ̃"),
    ("ɐ(?!̃)", "ɐ̃"),
    ("a(?=ɲ)", "ɐ̃"),
    ("a(?=[mn])", "æ"),
    ("[eɛ](?=[NM])", "A"),
    ("u(?=[NMɲ])", "ũ"),
    ("oj(?=s?$)", "õj"),
    ("M", "m"),
    ("N", "ŋ"),
    ("eɪ(?=[aeo]s?$)", "ɛɪ"),
    ("eɪ", "A"),
    ("aɪ", "I"),
    ("a[Lʊ]", "W"),
    ("(?<=ˈ)oL", "ɔl"),
    ("o[Lʊ]", "ow"),
    ("ɔL", "ɔl"),
    ("(?<=^ˈ)uL", "ul"),
    ("uL", "uw"),
    ("L", "ʊ"),
    ("(?<!ˈ)a(?=s?$)", "æ"),
    ("(?<!ˈ)e(?=s?$)", "y"),
    ("(?<!ˈ)o(?=s?$)", "ʊ"),
    ("d(?=[ˈˌ]?[iyjɪ])", "ʤ"),
    ("t(?=[ˈˌ]?[iyjɪ])|t$", "ʧ"),
    ("^lj", "ʎ"),
    ("iˈA(?=ŋsj)", "jˈA"),
)
_OPEN = re.compile(
    "e(ɾ(?!ə[^ztdvm]|əs|ədˈ)|s[ao]s?$|st[ao]s?$|stɾ|x|la|l[jo]|L|v[ea]|ks|k[ao]|b|d[ra]|f|s[ae]$|ʤe|so)"
    "|o(ɾ(?!əs|ə[^aeiou]os?$|[aeo]s?$)|ɾas?$|k[ao]|b[rae]|l[ao]s?$|ljo|t[aeo]s?$|d[aeo]|s[ao]s?$|sta|strɐ?|v[ae]"
    "|zas?$|ɡo|p[ae]|ʒo|L|tas?$|tes?$)"
)
MARKED = {
    word.translate(str.maketrans("áâéêíóôú", "aaeeioou")): word
    for word in list_words(
        "pêlo pêla pêlos pêlas sôbre tôdo tôda tôdos tôdas êsse êsses êste êstes dêsse "
        "dêste nêsse nêste pôrque cabêça quér mulhér mulhéres melhór melhóres maiór maióres "
        "piór déz vóz séte ségue conségue régra régras garôto garôta almôço grôsso "
        "pescôço projéto projétos métros ólha ólhe divérso divérsa divérsos divérsas "
        "convérsa léste téste qualquér tópo dróga drógas córre mórre ocórre pósse têrmo "
        "têrmos sêrem contrôle quiser fóto esfôrço móstra cêrto cêrca côrpo pôrto pôsto "
        "ôsso fôsse dôce fôrça bôca hôje nôme fôme cômo ôntem mêdo segrêdo dêdo cêdo rêde "
        "sêde vêrde vêja sêja igrêja desêjo pêso prêço bêrço comêço comêça tôrno ôlho fôlha "
        "escôlha rôsto môço prêto"
    )
    if any(letter in word for letter in "áâéêíóôú")
}
"""Spelt with marks that say how a stressed e or o sounds, against the rules."""


def say_word(word: str) -> str:
    """The phones of a word in small letters, as it is said alone."""
    if word in _NAMES:
        return say_word(_NAMES[word]) if len(_NAMES[word]) > 1 else STRESS + word
    if word.startswith("muit"):
        return "mwˈiŋt" + {"o": "ʊ", "os": "ʊs", "a": "æ", "as": "æs"}.get(word[4:], word[4:])
    singular = word.removesuffix("s")
    spelt = MARKED.get(singular, singular) + word[len(singular) :]
    letters = substitute(_RULES.apply(spelt), _SYLLABLES)
    accent = re.search("[áâéêíóôú]", letters) or re.search("[ãõ]", letters)
    phones = letters.translate(_PLAIN)
    nuclei = [match.start() for match in _NUCLEUS.finditer(phones)]
    if not nuclei:
        return phones
    if accent:
        stressed = nuclei.index(accent.start())
    else:
        is_penult = re.search("([aeo]s?|[ae]m|ens)$", word)
        stressed = len(nuclei) - 2 if is_penult and len(nuclei) > 1 else len(nuclei) - 1
        place = nuclei[stressed]
        if _OPEN.match(phones[place:]):
            opened = {"e": "ɛ", "o": "ɔ"}[phones[place]]
            phones = phones[:place] + opened + phones[place + 1 :]
    weaker = list(range(0, stressed - 1, 2)) or ([0] if 0 < stressed < len(nuclei) - 1 else [])
    said = substitute(mark_stress(phones, nuclei, stressed, weaker), _CHANGES)
    return unicodedata.normalize("NFD", said)


_NAMES = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        list_words(
            "a bê cê dê é éfe gê agá i jóta cá éle ême êne ó pê quê érre ésse tê u vê dáblio "
            "xis ípsilon zê"
        ),
        strict=True,
    )
)


def _link(before: str, after: str) -> tuple[str, str]:
    """Within a phrase, a last s is voiced before what has a voice, and a last e or r joins it."""
    first = after.lstrip("ˈˌ")[:1] or " "
    is_vowel = first in "aæɐeɛiɪoɔuʊyAIOW"
    if before.endswith("s") and (is_vowel or first in "bdɡʤjlmnɲɾvwxzʒ"):
        before = before[:-1] + "z"
    elif is_vowel and before.endswith("r"):
        before = before[:-1] + "ɾ"
    elif is_vowel and before.endswith("y") and before != "ky":
        before = before[:-1] + "j"
    return before, after


_FINALS = compile_changes(("^t?([ʧʤksmʎdn])e(?=s?$)", r"\1y"), ("e$", "y"), ("o(?=s?$)", "ʊ"))


def _weaken(word: str) -> str:
    said = substitute(say_word(word).replace(STRESS, ""), _FINALS)
    return re.sub("^d(?=y)", "ʤ", re.sub("^t(?=y)", "ʧ", said))


_WEAK = list_words(
    "o a os as um de em que com por se me te lhe no na nos nas do da dos das ao aos mas "
    "eu meu seu foi são não ou um num nem sem"
)
PORTUGUESE = Spelling(
    count=count_in("pt_BR"),
    say_word=say_word,
    weak={
        **{word: _weaken(word) for word in _WEAK},
        **{
            word: said.replace(STRESS, "ˌ")
            for word in list_words(
                "uma para sua minha como está até ele ela eles elas você era estava desde"
            )
            for said in (say_word(word),)
        },
        "e": "i",
        "é": "ɛ",
        "à": "ˌaː",
        "às": "aːs",
        "em": "ˈAŋ",
        "não": unicodedata.normalize("NFD", "nˌɐ̃ʊ̃"),
    },
    comma="vírgula",
    minus="menos",
    signs={
        "%": "por cento",
        "€": "euros",
        "$": "dólares",
        "£": "libras",
        "&": "e",
        "+": "mais",
        "=": "igual a",
        "@": "arroba",
        "°": "graus",
    },
    short={
        "sr.": "senhor",
        "sra.": "senhora",
        "dr.": "doutor",
        "dra.": "doutora",
        "prof.": "professor",
        "etc.": "etcétera",
        "km": "quilômetros",
        "kg": "quilogramas",
        "cm": "centímetros",
    },
    link=_link,
)
