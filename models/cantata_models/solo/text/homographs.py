"""Chooses between two pronunciations of a spelling by the words around it.

There are two kinds. Some nouns and adjectives shift their stress or change a vowel as verbs ("a
record", "to record"); the words typical before and after verbs decide. The others ("read", "lead",
"bass") have their own lists of deciding neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cantata_layers.english.tokens import table, word_set

_Phones = tuple[str, ...]

_VERB_MARKERS = word_set(
    "to will would can could should must may might shall not don't doesn't didn't won't can't "
    "cannot couldn't wouldn't shouldn't mustn't i you we they who let's please i'll you'll we'll "
    "they'll he'll she'll it'll i'd you'd we'd they'd do did does helps help"
)
_THIRD_PERSON = word_set(
    "he she it who which that everyone everybody someone somebody nobody one what company system"
)
_NOT_INFINITIVE = word_set("according due compared thanks owing prior similar related access up")
"""After one of these and "to", the next word is a noun."""
_ADVERBS = word_set("also never always often just still not then really even ever now only soon")
_NOUN_MARKERS = word_set(
    "the a an this that these those my your his her its our their some any no every each another "
    "at in of for on with by from new old first last next good bad great big small world"
)
_OBJECTS = word_set(
    "the this that these those it its my your our his her their them him me us you an a all every "
    "each everything more some any yourself himself herself itself themselves"
)
_PERFECT = word_set(
    "have has had having haven't hasn't hadn't was were is are be been being i've you've we've "
    "they've he'd she'd get got well widely he's she's it's"
)
_POSSESSIVES = word_set("my your his her its our their a the this that every each another")
_TO_BE = word_set("is was are were be been being am i'm he's she's it's we're you're they're")
_PRONOUNS = word_set("i you we they he she it")
_AUXILIARIES = _PERFECT | _TO_BE
_LAST_TIME = word_set("yesterday ago earlier once")


@dataclass(frozen=True, slots=True)
class NounVerb:
    """A noun or adjective, and the verb of the same spelling."""

    usual: _Phones
    other: _Phones

    def choose(self, words: Sequence[str], index: int) -> _Phones:
        return self.other if is_verb(words, index, markers=_VERB_MARKERS) else self.usual


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Chooses `other` if a neighbour calls for it, unless the word before rules it out."""

    usual: _Phones
    other: _Phones
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    unless: frozenset[str] = frozenset()
    within: frozenset[str] = frozenset()
    """Words that call for `other` from up to six words later."""
    earlier: frozenset[str] = frozenset()
    """Words that call for `other` from up to four words before."""

    def choose(self, words: Sequence[str], index: int) -> _Phones:
        before = words[index - 1].lower() if index else ""
        after = words[index + 1] if index + 1 < len(words) else ""
        asked = before in _PRONOUNS and index > 1 and words[index - 2] in _AUXILIARIES
        if asked and words[index - 2] in self.before:
            # "Have you read it?", "Is it close?"
            return self.other
        if before in self.unless:
            return self.usual
        decided = before in self.before or after in self.after
        decided = decided or bool(self.within & {*words[index + 1 : index + 7]})
        decided = decided or bool(self.earlier & {*words[max(0, index - 4) : index]})
        return self.other if decided else self.usual


Homograph = NounVerb | Neighbours


def is_verb(words: Sequence[str], index: int, *, markers: frozenset[str]) -> bool:
    """Whether words[index] is a verb. The words before it decide, then an object after it."""
    place = index - 1
    while place >= 0 and (words[place] in _ADVERBS or words[place].endswith("ly")):
        if words[place] in markers:
            return True
        place -= 1
    before = words[place].lower() if place >= 0 else ""
    if before in markers:
        return not (before == "to" and place > 0 and words[place - 1] in _NOT_INFINITIVE)
    if before in _NOUN_MARKERS:
        return False
    return index + 1 < len(words) and words[index + 1] in _OBJECTS


def is_third_person(words: Sequence[str], index: int) -> bool:
    """Whether words[index], which ends in -s, is a verb rather than a plural."""
    return is_verb(words, index, markers=_THIRD_PERSON)


def _build_neighbours(
    usual: str,
    other: str,
    *,
    before: frozenset[str] = frozenset(),
    after: frozenset[str] = frozenset(),
    unless: frozenset[str] = frozenset(),
    within: frozenset[str] = frozenset(),
    earlier: frozenset[str] = frozenset(),
) -> Neighbours:
    phones = tuple(usual.split()), tuple(other.split())
    return Neighbours(*phones, before, after, unless, within, earlier)


def _build_noun_verb(phones: str) -> NounVerb:
    usual, other = phones.split(" | ")
    return NounVerb(tuple(usual.split()), tuple(other.split()))


_NOUNS_AND_VERBS = table(
    """
    abuse: AH B Y UW S | AH B Y UW Z
    address: AE D R EH S | AH D R EH S
    advocate: AE D V AH K AH T | AE D V AH K EY T
    affiliate: AH F IH L IY AH T | AH F IH L IY EY T
    aggregate: AE G R AH G AH T | AE G R AH G EY T
    alternate: AO L T ER N AH T | AO L T ER N EY T
    animate: AE N AH M AH T | AE N AH M EY T
    appropriate: AH P R OW P R IY AH T | AH P R OW P R IY EY T
    approximate: AH P R AA K S AH M AH T | AH P R AA K S AH M EY T
    articulate: AA R T IH K Y AH L AH T | AA R T IH K Y AH L EY T
    associate: AH S OW S IY AH T | AH S OW S IY EY T
    attribute: AE T R AH B Y UW T | AH T R IH B Y UW T
    combat: K AA M B AE T | K AH M B AE T
    combine: K AA M B AY N | K AH M B AY N
    compound: K AA M P AW N D | K AH M P AW N D
    compress: K AA M P R EH S | K AH M P R EH S
    conduct: K AA N D AH K T | K AH N D AH K T
    conflict: K AA N F L IH K T | K AH N F L IH K T
    console: K AA N S OW L | K AH N S OW L
    contest: K AA N T EH S T | K AH N T EH S T
    contract: K AA N T R AE K T | K AH N T R AE K T
    contrast: K AA N T R AE S T | K AH N T R AE S T
    convert: K AA N V ER T | K AH N V ER T
    convict: K AA N V IH K T | K AH N V IH K T
    coordinate: K OW AO R D AH N AH T | K OW AO R D AH N EY T
    defect: D IY F EH K T | D IH F EH K T
    delegate: D EH L AH G AH T | D EH L AH G EY T
    deliberate: D IH L IH B R AH T | D IH L IH B ER EY T
    desert: D EH Z ER T | D IH Z ER T
    duplicate: D UW P L AH K AH T | D UW P L AH K EY T
    elaborate: IH L AE B R AH T | IH L AE B ER EY T
    estimate: EH S T AH M AH T | EH S T AH M EY T
    excuse: IH K S K Y UW S | IH K S K Y UW Z
    extract: EH K S T R AE K T | IH K S T R AE K T
    exploit: EH K S P L OY T | IH K S P L OY T
    frequent: F R IY K W AH N T | F R IY K W EH N T
    graduate: G R AE JH AH W AH T | G R AE JH AH W EY T
    house: HH AW S | HH AW Z
    intimate: IH N T AH M AH T | IH N T AH M EY T
    moderate: M AA D ER AH T | M AA D ER EY T
    object: AA B JH EH K T | AH B JH EH K T
    perfect: P ER F IH K T | P ER F EH K T
    predicate: P R EH D AH K AH T | P R EH D AH K EY T
    present: P R EH Z AH N T | P R IY Z EH N T
    progress: P R AA G R EH S | P R AH G R EH S
    project: P R AA JH EH K T | P R AH JH EH K T
    protest: P R OW T EH S T | P R AH T EH S T
    rebel: R EH B AH L | R IH B EH L
    record: R EH K ER D | R IH K AO R D
    refund: R IY F AH N D | R IH F AH N D
    reject: R IY JH EH K T | R IH JH EH K T
    separate: S EH P ER AH T | S EH P ER EY T
    subject: S AH B JH IH K T | S AH B JH EH K T
    document: D AA K Y AH M AH N T | D AA K Y AH M EH N T
    implement: IH M P L AH M AH N T | IH M P L AH M EH N T
    supplement: S AH P L AH M AH N T | S AH P L AH M EH N T
    complement: K AA M P L AH M AH N T | K AA M P L AH M EH N T
    compliment: K AA M P L AH M AH N T | K AA M P L AH M EH N T
    experiment: IH K S P EH R AH M AH N T | IH K S P EH R AH M EH N T
    addict: AE D IH K T | AH D IH K T
    annex: AE N EH K S | AH N EH K S
    designate: D EH Z IH G N AH T | D EH Z IH G N EY T
    initiate: IH N IH SH IY AH T | IH N IH SH IY EY T
    subordinate: S AH B AO R D AH N AH T | S AH B AO R D AH N EY T
    """
)

HOMOGRAPHS: dict[str, Homograph] = {
    **{word: _build_noun_verb(phones) for word, phones in _NOUNS_AND_VERBS.items()},
    "read": _build_neighbours(
        "R IY D",
        "R EH D",
        before=_PERFECT | {"he", "she", "already"},
        unless=_VERB_MARKERS - word_set("i you we they who i'd you'd we'd they'd"),
        within=_LAST_TIME,
    ),
    "live": _build_neighbours(
        "L IH V",
        "L AY V",
        before=_TO_BE | word_set("a the go goes going went broadcast streamed performed watch via"),
        after=word_set(
            "music show shows stream streams streaming audio video broadcast concert performance "
            "event events demo wire band tv coverage chat recording version album session oak "
            "ammunition television theater updates"
        ),
        unless=word_set("to who they we you i"),
    ),
    "lives": _build_neighbours(
        "L AY V Z",
        "L IH V Z",
        before=_THIRD_PERSON - {"one"},
        after=word_set("in at near here there alone next nearby"),
        unless=word_set("their our your my his her its the many of several two three nine"),
    ),
    "lead": _build_neighbours(
        "L IY D",
        "L EH D",
        before=word_set("molten liquid toxic contain contains containing leaded heavy"),
        earlier=word_set(
            "mercury zinc tin copper pounds ounces tons paint pipes pipe poisoned made"
        ),
        unless=word_set("to the will would can could should must may might they we you i who"),
        after=word_set(
            "pipe pipes paint poisoning acid battery batteries pencil pencils free bullet bullets "
            "levels exposure oxide shot weights"
        ),
    ),
    "wind": _build_neighbours(
        "W IH N D",
        "W AY N D",
        before=_VERB_MARKERS,
        after=word_set("up down"),
        unless=word_set("the strong a"),
    ),
    "winds": _build_neighbours(
        "W IH N D Z",
        "W AY N D Z",
        before=word_set("it river road path trail which"),
        after=word_set("up down through around along its"),
        unless=word_set("the strong high"),
    ),
    "wound": _build_neighbours(
        "W UW N D",
        "W AW N D",
        before=word_set("tightly being"),
        after=word_set("up down around through tightly back its round clock"),
    ),
    "use": _build_neighbours(
        "Y UW Z",
        "Y UW S",
        before=_POSSESSIVES
        | word_set(
            "an no any in of for first make makes made making much little some fair daily common "
            "personal public energy water land drug home recommended intended"
        ),
        after=word_set("of case cases is was"),
        unless=_VERB_MARKERS,
    ),
    "uses": _build_neighbours(
        "Y UW Z IH Z",
        "Y UW S IH Z",
        before=_POSSESSIVES - {"that"} | word_set("many other several two three common these"),
        after=word_set("of for include are"),
    ),
    "used": _build_neighbours(
        "Y UW Z D",
        "Y UW S T",
        after=frozenset({"to"}),
        unless=word_set("is are was were be been being commonly often widely"),
    ),
    "close": _build_neighbours(
        "K L OW Z",
        "K L OW S",
        before=_TO_BE
        | word_set(
            "so very too how as a pretty quite really fairly extremely get getting got stay stayed "
            "come came keep kept stand stood remarkably no my"
        ),
        after=word_set(
            "to by enough friend friends call range look contact relationship proximity race "
            "attention second behind ties together"
        ),
        unless=_VERB_MARKERS | {"please"},
    ),
    "tear": _build_neighbours(
        "T EH R",
        "T IH R",
        before=word_set("single salty shed lone silent"),
        after=word_set("gas duct ducts drop drops rolled ran fell stained slid trickled"),
        earlier=word_set(
            "shed sheds shedding wiped wipe wiping wept cried blinked brushed eye cheek"
        ),
    ),
    "tears": _build_neighbours(
        "T IH R Z",
        "T EH R Z",
        before=word_set("he she it that which"),
        after=word_set("up apart through it off down easily"),
        unless=word_set("the her his my their in to of"),
    ),
    "bow": _build_neighbours(
        "B AW",
        "B OW",
        before=word_set("violin cello pink red blue hair ribbon wooden cross long hunting"),
        after=word_set("tie ties and string window hunting"),
        unless=_VERB_MARKERS | {"take"},
    ),
    "bass": _build_neighbours(
        "B EY S",
        "B AE S",
        before=word_set("sea striped largemouth smallmouth black caught freshwater grilled"),
        after=word_set("fishing fisherman boat pro"),
    ),
    "dove": _build_neighbours(
        "D AH V",
        "D OW V",
        before=word_set("he she they i we who then"),
        after=word_set("into in off under headfirst deep"),
        unless=word_set("a the white mourning"),
    ),
    "minute": _build_neighbours(
        "M IH N AH T",
        "M AY N UW T",
        after=word_set(
            "detail details amount amounts quantity quantities particles traces difference "
            "differences change changes variation variations fraction fractions cracks doses"
        ),
    ),
    "content": _build_neighbours(
        "K AA N T EH N T",
        "K AH N T EH N T",
        before=word_set("feel feels felt feeling perfectly am i'm was were be seem seemed seems"),
    ),
    "polish": _build_neighbours(
        "P AA L IH SH",
        "P OW L IH SH",
        before=word_set("speak speaks spoke speaking into"),
        after=word_set(
            "language people government army president prime border food parliament citizens "
            "citizen author poet composer descent origin sausage zloty national city"
        ),
    ),
    "resume": _build_neighbours(
        "R IH Z UW M",
        "R EH Z AH M EY",
        before=_POSSESSIVES,
        unless=word_set("to will"),
    ),
    "refuse": _build_neighbours(
        "R AH F Y UW Z",
        "R EH F Y UW S",
        before=word_set("household of"),
        after=word_set("collection bin bins dump disposal collector collectors"),
    ),
    "produce": _build_neighbours(
        "P R AH D UW S",
        "P R OW D UW S",
        before=word_set("fresh local organic farm seasonal"),
        after=word_set("aisle section department stand market"),
    ),
    "invalid": _build_neighbours(
        "IH N V AE L AH D", "IH N V AH L AH D", before=word_set("chronic elderly bedridden")
    ),
    "sow": _build_neighbours(
        "S OW", "S AW", before=word_set("a the pregnant old"), after=word_set("and")
    ),
    "aged": _build_neighbours("EY JH D", "EY JH IH D", after=word_set("man woman couple")),
    "learned": _build_neighbours(
        "L ER N D",
        "L ER N IH D",
        after=word_set("man woman men scholar scholars colleague judge friend counsel society"),
        unless=_PRONOUNS | _AUXILIARIES,
    ),
    "blessed": _build_neighbours(
        "B L EH S T", "B L EH S IH D", before=frozenset({"the"}), after=word_set("virgin sacrament")
    ),
    "row": _build_neighbours("R OW", "R AW", before=word_set("blazing furious")),
}
