"""A client's request, and the stage inputs made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload
from cantata.contract.data.errors import InvalidRequest


class StageInput(Protocol):
    """A stage's input: a frozen dataclass of its plug-in's, in a module that is quick to import. It
    holds plain data, bytes, NumPy arrays and other such dataclasses, never a tensor."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class SamplingOptions:
    """How one request samples its codes. None: the deployment's default."""

    seed: int = 0
    temperature: float | None = None
    """0 is greedy."""
    top_k: int | None = None
    """0 means all."""
    top_p: float | None = None
    repetition_penalty: float | None = None
    """Penalty on code 0 of frames so far; 1 changes nothing."""
    presence_penalty: float = 0.0
    """Subtracted once from the score of each code 0 that the answer has so far."""
    frequency_penalty: float = 0.0
    """Subtracted from the score of a code 0 as often as the answer has it so far."""
    residual_temperature: float | None = None
    """Temperature of the codes after code 0. None: as for code 0; so are the next two."""
    residual_top_k: int | None = None
    residual_top_p: float | None = None
    residual_repetition_penalty: float | None = None
    """Penalty on the codes after code 0, each by its own codebook's history. None: no penalty."""
    stop_temperature: float | None = None
    """Temperature of the decision to stop, for a talker that makes one. None: as for code 0; so are
    the next two."""
    stop_top_k: int | None = None
    stop_top_p: float | None = None
    logprobs: bool = False
    """Each code 0 leaves with the logarithm of its probability, by the talker's own scores."""
    top_logprobs: int = 0
    """With `logprobs`: how many of the likeliest codes leave with theirs."""
    code_bias: tuple[tuple[int, float], ...] = ()
    """Codes 0, and what is added to the score of each before it is drawn."""


@dataclass(frozen=True, slots=True)
class ReferenceAudio:
    """A recording of the speaker to follow, decoded and limited by the api."""

    samples: NDArray[np.float32]
    """[N, C], in -1..1; one or two channels."""
    sample_rate: int
    """Hz, 8,000 to 48,000: the recording's own. Models resample."""
    transcript: str | None = None
    """What is said in the recording, for models that need it."""

    @property
    def mono(self) -> NDArray[np.float32]:
        """[N]: the mean of the channels."""
        mono: NDArray[np.float32] = self.samples.mean(axis=1)
        return mono


@dataclass(frozen=True, slots=True)
class LexiconEntry:
    """How a word is said: as another text, or by phones."""

    grapheme: str
    """The word, or words, as a text has it, in the same case."""
    alias: str = ""
    """Empty: by `phones`."""
    phones: str = ""
    """IPA."""


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Characters [start, end) of a text, counted as Python does: by code point."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Inflection:
    """How some words stand out from those around them, in the same breath."""

    pitch: float = 1.0
    """Factor of the frequency."""
    loudness_db: float = 0.0
    """Decibels of the voice's own loudness, with the timbre that it has then."""
    rate: float = 1.0
    """Factor of the speed."""


@dataclass(frozen=True, slots=True)
class InflectedSpan:
    """Where a text has an inflection."""

    span: TextSpan
    inflection: Inflection


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """A request for one utterance, as the api validated it. The api checks ranges; the plug-in
    gives the values their meaning."""

    text: str
    voice: str
    speed: float = 1.0
    """1 is the voice's own tempo, 2 is twice as fast. A builder gets one of
    `Capabilities.paces`."""
    stretch: float = 1.0
    """How many times faster than `speed` the sound is played; set by the engine. Fast speech is
    easier to understand if it is spoken more distinctly."""
    seed: int | None = None
    """The same seed gives the same samples. None: the plug-in's default."""
    temperature: float | None = None
    """0 is greedy. None: the deployment's default."""
    instructions: str | None = None
    reference: ReferenceAudio | None = None
    """A recording to follow instead of `voice`, for models that support it."""
    more_references: tuple[ReferenceAudio, ...] = ()
    """Recordings of the text's other speakers, after `reference`; together at most
    `Capabilities.max_references`."""
    continued: bool = False
    """`text` is the end of a text whose beginning has been spoken, so it may consist of pauses
    only."""
    line_start: bool = True
    """`text` begins a line of the client's text; a mark such as `>` means something else inside a
    line."""
    lexicon: tuple[LexiconEntry, ...] = ()
    """How words of the text are said; applied before a builder gets the text."""
    inflections: tuple[InflectedSpan, ...] = ()
    """What stands out in `text`, in order and without overlap; set by the engine, for models with
    the capability."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Values of `Capabilities.options`, in JSON as the client wrote them; the plug-in checks
    them."""
    batch: bool = False
    """A file render, which yields to live streams."""

    @property
    def references(self) -> tuple[ReferenceAudio, ...]:
        """All recordings, in the order of the speakers."""
        return () if self.reference is None else (self.reference, *self.more_references)


def check_text_length(characters: int, max_characters: int, *, may_be_empty: bool = False) -> None:
    """Check the length of a text that is to be spoken.

    Args:
        max_characters: that the model speaks at a time.
        may_be_empty: of a text whose rest still arrives.

    Raises:
        InvalidRequest: it is empty or too long.
    """
    if not characters and not may_be_empty:
        raise InvalidRequest("input is empty; send at least one character to speak", "input")
    if characters > max_characters:
        raise InvalidRequest(
            f"input has {characters} characters; at most {max_characters} are spoken at a time",
            "input",
        )


@dataclass(frozen=True, slots=True)
class Continuation:
    """How a piece of a text continues what earlier pieces have said. It stays in the api's process;
    the stages get the inputs that it makes."""

    earlier: tuple[str, ...]
    source: str
    """The `stage.port` whose chunks tell what they said; an edge leads from there to the client."""
    inputs: Callable[[Sequence[Payload]], Mapping[str, StageInput]]
    """A function from what each of `earlier` sent there, whole, to the inputs that replace the
    piece's own, for the same stages."""


@dataclass(frozen=True, slots=True)
class PipelineRequest:
    """A request as the pipeline runs it. All stages get it at once."""

    request_id: str
    inputs: Mapping[str, StageInput]
    """Stage name -> its input. A stage that needs none is absent."""
    without: frozenset[str] = frozenset()
    """Stages that do not take part although they follow one that does, such as those that would
    speak an answer that is only read. Also ports (`stage.port`) at which a stage sends nothing,
    such as the latents of an answer in words; a stage that gets chunks only from such ports does
    not take part either."""
    batch: bool = False
    """A file render: it yields to live streams and has no playback deadline."""
    playout_deadline_s: float | None = None
    """When its listener has played all earlier sound, or its client stops waiting for a picture, by
    `time.monotonic`. None: no earlier sound, or unknown."""
    stretch: float = 1.0
    """Seconds of the model's sound that the listener plays in one second; above 1 it needs frames
    faster than they are spoken."""
    silence_before_s: float = 0.0
    """Silence before its sound, if the builder cut a text where its model would pause. It is at the
    model's pace, as the sound is."""
    words: tuple[TextSpan, ...] = ()
    """For each spoken word, its span in the request's text; several words of one number share a
    span. Empty for models without word times."""
    continuation: Continuation | None = None
    """None: the piece does not depend on earlier ones."""


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice that a served model offers."""

    id: str
    name: str
    description: str = ""
    aliases: tuple[str, ...] = field(default=())
    """Other ids that clients may use for it, such as OpenAI's thirteen names."""
    gender: str | None = None
    """The gender that listeners hear, such as "female". None: unspecified."""
    language: str = ""
    """BCP 47 tag of what it reads, such as `en-GB`. Empty: the model's."""
