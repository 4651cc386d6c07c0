"""A caller's request, and the stage inputs made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload


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
    """Of code 0; 1 changes nothing."""
    presence_penalty: float = 0.0
    """Of code 0: taken once from the score of each code of the answer so far."""
    frequency_penalty: float = 0.0
    """The same, as often as the code was used."""
    residual_temperature: float | None = None
    """Of the codes after code 0, as the next two. None: as code 0's."""
    residual_top_k: int | None = None
    residual_top_p: float | None = None
    residual_repetition_penalty: float | None = None
    """Of the codes after code 0, each by its own codebook's history. None: there is none."""
    stop_temperature: float | None = None
    """Of the decision to stop, where a talker makes one, as the next two. None: as code 0's."""
    stop_top_k: int | None = None
    stop_top_p: float | None = None


@dataclass(frozen=True, slots=True)
class ReferenceAudio:
    """A recording of the speaker to imitate, decoded and limited by the api."""

    samples: NDArray[np.float32]
    """[N, C], in -1..1; one or two channels."""
    sample_rate: int
    """Hz, 8,000 to 48,000: the recording's own. Models resample."""
    transcript: str | None = None
    """For models that need it."""

    @property
    def mono(self) -> NDArray[np.float32]:
        """[N]: the mean of the channels."""
        mono: NDArray[np.float32] = self.samples.mean(axis=1)
        return mono


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """One utterance, as the api validated it. Ranges are the api's; meaning is the plug-in's."""

    text: str
    voice: str
    speed: float = 1.0
    """1 is the voice's own tempo, 2 is twice as fast. A builder gets one of
    `Capabilities.paces`."""
    stretch: float = 1.0
    """How many times faster than at `speed` the sound is played; the engine sets it. Faster
    speech is understood better if it is spoken more distinctly."""
    seed: int | None = None
    """Same seed, same samples. None: the plug-in's default."""
    temperature: float | None = None
    """0 is greedy. None: the deployment's default."""
    instructions: str | None = None
    reference: ReferenceAudio | None = None
    """Imitate this speaker instead of using `voice`, for models that support it."""
    more_references: tuple[ReferenceAudio, ...] = ()
    """Of the text's other speakers, behind `reference`: together at most
    `Capabilities.max_references`."""
    continued: bool = False
    """The end of a text whose beginning has been spoken: it may consist of pauses only."""
    line_start: bool = True
    """`text` begins a line of the caller's; a mark such as `>` means something else inside one."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Of `Capabilities.options`, as the caller wrote them in JSON; the plug-in checks them."""

    @property
    def references(self) -> tuple[ReferenceAudio, ...]:
        """All recordings, by speaker."""
        return () if self.reference is None else (self.reference, *self.more_references)


@dataclass(frozen=True, slots=True)
class TextSpan:
    """Characters [start, end) of a text, counted as Python does: by code point."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Continuation:
    """How a piece of a text takes up what earlier pieces of it have said. It stays in the api's
    process; the stages get the inputs that it makes."""

    earlier: tuple[str, ...]
    """Ids of those pieces."""
    source: str
    """`stage.port` at which they said it; an edge leads from there to the client."""
    inputs: Callable[[Sequence[Payload]], Mapping[str, StageInput]]
    """From what each of `earlier` said there, whole, to the inputs that take the place of the
    piece's own, for the same stages."""


@dataclass(frozen=True, slots=True)
class PipelineRequest:
    """One request as the pipeline runs it; registered with every stage at once."""

    request_id: str
    inputs: Mapping[str, StageInput]
    """Stage name -> its input. A stage that needs none has no entry."""
    without: frozenset[str] = frozenset()
    """Stages that would hear of it but do not take part, such as those that would speak an answer
    that is only read; and ports (`stage.port`) at which a stage leaves nothing of it, such as the
    latents of an answer in words. A stage that would hear of it at such ports alone takes no part
    either."""
    batch: bool = False
    """A file render: yields to live streams and has no playback deadline."""
    runs_dry_s: float | None = None
    """When its listener has played all earlier sound, or its caller stops waiting for a picture, by
    `time.monotonic`; None: there is none, or nobody knows."""
    stretch: float = 1.0
    """Seconds of the model's sound that its listener plays in one second; above 1 it needs frames
    faster than they are spoken."""
    silence_before_s: float = 0.0
    """Silence in front of its sound, from a builder that cuts a text where its model would pause;
    at the model's pace, as its sound is."""
    words: tuple[TextSpan, ...] = ()
    """The position of each spoken word in the request's text; several words of one number share its
    span. Empty for models without word times."""
    continuation: Continuation | None = None
    """None: it says what it would say alone."""


@dataclass(frozen=True, slots=True)
class Voice:
    """One voice that a served model offers."""

    id: str
    name: str
    description: str = ""
    aliases: tuple[str, ...] = field(default=())
    """Other ids that callers may use for it, such as OpenAI's thirteen names."""
    gender: str | None = None
    """As listeners hear it, such as "female"; None: unspecified."""
