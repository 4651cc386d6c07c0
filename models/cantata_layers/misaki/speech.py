"""English sentences in phones, from a request to timed sound: what models of misaki's phones share.

Letters: T phones, W words, N samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.chunks import Pcm
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, SpeechRequest, Voice
from cantata_layers.misaki.timing import LEAD_S, find_onset, place_words, time_words
from cantata_layers.request_building import can_be_spoken

if TYPE_CHECKING:
    from cantata_layers.misaki.sentences import PhonemizedSentence

PACES = (0.5, 2.0)
HEAD_S = 0.1
"""Of a sentence, so much of its first word is made before it is decided where it begins."""

Floats = NDArray[np.float32]
_NONE: Floats = np.empty((0, 3), np.float32)


@dataclass(frozen=True, slots=True)
class SentenceInput:
    """What a stage named `voice` gets: one sentence, or a part of a very long one."""

    voice: str | NDArray[np.float32]
    """Id of a stock voice, or the features of a recording (`cantata_layers.speaker_features`)."""
    phones: NDArray[np.int64]
    """[T] ids of misaki's alphabet, with the padding at both ends."""
    words: NDArray[np.int64]
    """[W, 2]: for each word of the request, its phones [start, end)."""
    speed: float
    """1 is the voice's own pace; 0.5 to 2."""
    seed: int
    """Of the noise in consonants and breath."""
    begins: bool
    """It is the first of its text: the silence before it is only a delay."""
    inflections: Floats
    """[T, 3]: for each phone, the factor of its pitch, its decibels and the factor of its speed;
    [0, 3] if nothing stands out."""


def name_english(*, british: bool) -> str:
    """BCP 47 tag of an accent."""
    return "en-GB" if british else "en-US"


class EnglishRequestBuilder:
    """Implements `contract.model.plugin.RequestBuilder` for voices that read English sentences.

    Args:
        voices: with their aliases, the default one first, and the language that `name_english`
            names.
        sample_rate: Hz.
        inflections: the voices follow `SentenceInput.inflections`.
        references: whether `find_speaker` hears recordings.
    """

    def __init__(
        self,
        voices: Sequence[Voice],
        sample_rate: int,
        *,
        inflections: bool = False,
        references: bool = False,
    ) -> None:
        self.voices = tuple(voices)
        self.capabilities = Capabilities(
            references=references,
            languages=("en",),
            phones=True,
            inflections=inflections,
            paces=PACES,
            sample_rate=sample_rate,
        )
        british = name_english(british=True)
        self._british = frozenset(voice.id for voice in voices if voice.language == british)

    def find_speaker(self, request: SpeechRequest) -> str | NDArray[np.float32]:
        """`SentenceInput.voice` of a request."""
        return request.voice

    @property
    def warm_up(self) -> SpeechRequest:
        """A word that is in no lexicon, and a number, so that all that reads texts is loaded."""
        return SpeechRequest("Hello, Zorvik, 5 kg.", self.voices[0].id)

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """One pipeline request for each sentence; none for a text without a sound. Raises
        InvalidRequest: only letters of other scripts, or a bad phone override."""
        # Not with the module: a stage, too, imports it, and reads no text.
        from cantata_layers.misaki.g2p import load_g2p

        sentences = load_g2p(request.voice in self._british).read(request.text)
        if not sentences and can_be_spoken(request.text):
            raise InvalidRequest("nothing in the text can be read as English", "input")
        speaker = self.find_speaker(request)
        return tuple(
            _make_request(f"{request_id}-{index}", sentence, request, index, speaker)
            for index, sentence in enumerate(sentences)
        )


def _make_request(
    request_id: str,
    sentence: PhonemizedSentence,
    request: SpeechRequest,
    index: int,
    speaker: str | NDArray[np.float32],
) -> PipelineRequest:
    voice = SentenceInput(
        voice=speaker,
        phones=np.array(sentence.phones, np.int64),
        words=np.array([(word.start, word.end) for word in sentence.words], np.int64),
        speed=request.speed,
        seed=(request.seed or 0) + index,
        begins=index == 0 and not request.continued,
        inflections=_inflect_phones(request, sentence),
    )
    spans = tuple(word.span for word in sentence.words)
    return PipelineRequest(request_id, {"voice": voice}, words=spans)


def _inflect_phones(request: SpeechRequest, sentence: PhonemizedSentence) -> Floats:
    """What `SentenceInput.inflections` says: all phones from the first word that stands out to the
    last."""
    phones = np.tile(np.array([1.0, 0.0, 1.0], np.float32), (len(sentence.phones), 1))
    for one in request.inflections:
        words = [
            word
            for word in sentence.words
            if word.span.start < one.span.end and word.span.end > one.span.start
        ]
        if words:
            how = one.inflection
            phones[words[0].start : words[-1].end] = how.pitch, how.loudness_db, how.rate
    return phones if request.inflections else _NONE


def add_word_times(
    inputs: SentenceInput,
    parts: Iterator[Floats],
    durations: NDArray[np.float32],
    frame_s: float,
    sample_rate: int,
    audible: NDArray[np.bool_] | None = None,
    audible_s: float = 0.0,
) -> Iterator[Pcm]:
    """A sentence's sound, without most of the silence before the text's first word.

    Args:
        parts: of its sound, each [N].
        durations: [T] frames of each phone.
        frame_s: seconds of a frame.
        sample_rate: Hz.
        audible, audible_s: as `place_words` takes them.

    Yields:
        The parts; the times of all words come with the first.
    """
    words = time_words(inputs.words, durations, frame_s)
    head = take_head(parts, round((words[0].start_s + HEAD_S) * sample_rate))
    onset = find_onset(head)
    lead = max(onset - round(LEAD_S * sample_rate), 0) if inputs.begins else 0
    times = (onset / sample_rate, lead / sample_rate)
    words = place_words(words, *times, audible, audible_s)
    for samples in chain([head[lead:]], parts):
        yield Pcm(np.clip(samples, -1.0, 1.0)[:, None], words)
        words = ()  # sent once


def take_head(parts: Iterator[Floats], samples: int) -> Floats:
    """The first parts of a sound, together at least so long if there are as many."""
    taken, length = list[Floats](), 0
    for part in parts:
        taken.append(part)
        length += len(part)
        if length >= samples:
            break
    return np.concatenate(taken)
