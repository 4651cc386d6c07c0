"""Hand-written pronunciations: words the lexicon lacks or lists badly, letters, and homographs."""

from __future__ import annotations

from dataclasses import dataclass

from cantata_models.solo.text.wordlists import word_set

_Phones = tuple[str, ...]


def _table(text: str) -> dict[str, _Phones]:
    entries = (line.split() for line in text.strip().split("\n"))
    return {word: tuple(phones) for word, *phones in entries}


LETTERS = _table(
    """
    A EY
    B B IY
    C S IY
    D D IY
    E IY
    F EH F
    G JH IY
    H EY CH
    I AY
    J JH EY
    K K EY
    L EH L
    M EH M
    N EH N
    O OW
    P P IY
    Q K Y UW
    R AA R
    S EH S
    T T IY
    U Y UW
    V V IY
    W D AH B AH L Y UW
    X EH K S
    Y W AY
    Z Z IY
    """
)

FIXES = _table(
    """
    was W AH Z
    wasn't W AH Z AH N T
    wind W IH N D
    wound W UW N D
    separate S EH P ER AH T
    thursday TH ER Z D IY
    sunday S AH N D IY
    use Y UW S
    miz M IH Z
    mx M IH K S
    messers M EH S ER Z
    ios AY OW EH S
    macos M AE K OW EH S
    gui G UW IY
    wi W AY
    cantata K AH N T AA T AH
    aaa T R IH P AH L EY
    kibibyte K IH B IY B AY T
    mebibyte M EH B IY B AY T
    gibibyte G IH B IY B AY T
    kilohertz K IH L AH HH ER T S
    gigahertz G IH G AH HH ER T S
    paisa P AY S AH
    paise P AY S AH
    mille M IH L
    covid K OW V IH D
    emoji IH M OW JH IY
    codec K OW D EH K
    jpeg JH EY P EH G
    json JH EY S AH N
    yaml Y AE M AH L
    gif G IH F
    kubernetes K UW B ER N EH T IY Z
    pytorch P AY T AO R CH
    nguyen W IH N
    yolo Y OW L OW
    fomo F OW M OW
    """
)


@dataclass(frozen=True, slots=True)
class Homograph:
    """A spelling with two pronunciations. `other` is said when a neighbour tells so."""

    usual: _Phones
    other: _Phones
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()


_VERB_MARKERS = word_set(
    "to will would can could should must may might shall not don't doesn't didn't won't can't "
    "cannot couldn't wouldn't shouldn't i you we they who let's please always never i'll you'll "
    "we'll they'll"
)
_PERFECT = word_set(
    "have has had having was were is are be been being i've you've we've they've he'd she'd "
    "already just widely"
)
_OBJECTS = word_set("the this that these those it its your my our his her their them an")


def _homograph(
    usual: str,
    other: str,
    *,
    before: frozenset[str] = frozenset(),
    after: frozenset[str] = frozenset(),
) -> Homograph:
    return Homograph(tuple(usual.split()), tuple(other.split()), before, after)


HOMOGRAPHS: dict[str, Homograph] = {
    "read": _homograph("R IY D", "R EH D", before=_PERFECT | {"he", "she"}),
    "live": _homograph(
        "L IH V",
        "L AY V",
        before=word_set("a go goes going went is was broadcast"),
        after=word_set(
            "music show shows stream streams streaming audio video broadcast concert performance "
            "event demo wire band tv coverage chat recording version"
        ),
    ),
    "lead": _homograph(
        "L IY D", "L EH D", after=word_set("pipe pipes paint poisoning acid battery")
    ),
    "wind": _homograph("W IH N D", "W AY N D", after=frozenset({"up", "down"})),
    "use": _homograph("Y UW S", "Y UW Z", before=_VERB_MARKERS, after=_OBJECTS),
    "close": _homograph("K L OW Z", "K L OW S", before=word_set("so very too how as")),
    "excuse": _homograph(
        "IH K S K Y UW Z", "IH K S K Y UW S", before=word_set("an no any the good bad")
    ),
    "house": _homograph("HH AW S", "HH AW Z", before=frozenset({"to"})),
    "tear": _homograph("T EH R", "T IH R", before=word_set("single salty")),
    "record": _homograph("R EH K ER D", "R IH K AO R D", before=_VERB_MARKERS),
    "present": _homograph("P R EH Z AH N T", "P R IY Z EH N T", before=_VERB_MARKERS),
    "object": _homograph("AA B JH EH K T", "AH B JH EH K T", before=_VERB_MARKERS),
    "project": _homograph("P R AA JH EH K T", "P R AH JH EH K T", before=_VERB_MARKERS),
    "separate": _homograph("S EH P ER AH T", "S EH P ER EY T", before=_VERB_MARKERS),
    "estimate": _homograph("EH S T AH M AH T", "EH S T AH M EY T", before=_VERB_MARKERS),
    "duplicate": _homograph("D UW P L AH K AH T", "D UW P L AH K EY T", before=_VERB_MARKERS),
}
