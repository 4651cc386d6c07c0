"""Decides whether speech over an answer means to stop it: words do, a cough or "mm-hm" does not.

The rule was found on synthetic voices and noises (`cantata bench interruptions`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from cantata.contract.data.transcripts import Transcript

LEAST_S = 0.1
"""Speech below this is a click, whatever a recogniser makes of it."""
_CONTENT_S = 0.6
"""Speech from which on two words of any kind stop the answer: recognisers make one or two words of
a hum, which is shorter."""
_JOINED_S = 1.0
"""Speech from which on one of the two may be a word that only joins others: the beginning of
"Hm, that's good" is often heard as "and that's"."""
_UNHEARD_S = 0.7
"""Speech that stops the answer where nobody finds its words; most backchannels are shorter."""
_LONG_S = 2.5
"""Speech that stops the answer without known words: nobody hums that long, and the recogniser may
not know the language."""
_MIN_LOGPROB = -1.0
"""Mean log-probability of tokens below which a transcript is usually wrong."""

_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?|\d+")
_PHRASES = re.compile(
    r"\b(?:i see|i know|got it|go on|go ahead|of course|no way|no problem|no worries|no kidding|"
    r"(?:that|this|it) is|that'?s (?:right|true|good|great|fine|nice|interesting|cool)|"
    r"makes? sense|sounds? good|"
    r"you'?re right|thank you|thanks|very (?:good|nice)|all right|for sure|fair enough|"
    r"how (?:nice|interesting|lovely)|what a [a-z]+)\b"
)
"""Said by whoever goes on listening."""
_BACKCHANNELS = frozenset(
    _WORD.findall(
        "a ah aha ahem alright absolutely bye cool correct definitely er exactly fine good great "
        "ha haha indeed interesting lovely nice oh ok okay perfect really right so sure totally "
        "true uh well wonderful wow yeah yep yes yup you"
    )
)
_HUM = re.compile(r"[aeiou']*(?:[hm][aeiou']*)+|i'm|her|hum+|hm+")
"""What recognisers make of "mm-hm" and "uh-huh": words of nothing but h, m and vowels."""
_STOPPING = frozenset(
    _WORD.findall(
        "actually are but can cancel could did do does don't enough excuse forget hang hello hey "
        "hold how is listen never no nope not pause quiet repeat shut sorry stop wait what what's "
        "when where which who why would wrong"
    )
)
"""One of these suffices: they take the turn, or ask."""
_JOINING = frozenset(
    _WORD.findall(
        "an and as at be been for from had has have he him his i i've if in it it's its of on or "
        "she than that that's the their them then there there's they this to was we were with"
    )
)
"""Words that say little by themselves."""
_NOISE = re.compile(r"[\[(*][^\])*]*[\])*]")
"""How recognisers write what is no speech: [cough], (laughs)."""


@dataclass(slots=True)
class SpeechEvidence:
    """What is known of speech over an answer."""

    speech_s: float = 0.0
    """Seconds in which somebody near spoke."""
    transcript: Transcript | None = None
    """The latest; None: not yet, or nobody finds words."""
    has_ears: bool = True
    """Somebody finds words."""


def is_interruption(evidence: SpeechEvidence) -> bool:
    """Whether the speech stops the answer, as far as it is known; more of it may change a no."""
    if evidence.speech_s < LEAST_S:
        return False
    if not evidence.has_ears:
        return evidence.speech_s >= _UNHEARD_S
    transcript = evidence.transcript
    if transcript is None or not _is_trusted(transcript):
        return evidence.speech_s >= _LONG_S
    content = find_content(transcript.text)
    if any(word in _STOPPING for word in content):
        return True
    says = [word for word in content if word not in _JOINING]
    if len(says) >= 2:
        return evidence.speech_s >= _CONTENT_S
    return bool(says) and len(content) >= 2 and evidence.speech_s >= _JOINED_S


def find_content(text: str) -> list[str]:
    """The words of a transcript, in small letters, without those that only show that somebody
    listens."""
    plain = _NOISE.sub(" ", text.lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"))
    words = _WORD.findall(_PHRASES.sub(" ", plain))
    return [word for word in words if word not in _BACKCHANNELS and not _HUM.fullmatch(word)]


def _is_trusted(transcript: Transcript) -> bool:
    return transcript.avg_logprob is None or transcript.avg_logprob >= _MIN_LOGPROB
