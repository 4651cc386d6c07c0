"""The tiny painter once more, as a model that answers too: it says again what was said last, a
letter each step, in the stage that draws."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import ChatRequest, Message, Modality, Role, TextPart
from cantata.contract.data.chunks import Codes, Payload
from cantata.contract.data.errors import CantataError, InvalidRequest
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.data.request import PipelineRequest, Voice
from cantata.contract.model.conversation import AnswerSteps, PlannedAnswer
from cantata.contract.model.denoiser import DenoiserOptions
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec
from cantata.contract.model.plugin import ModelPlugin
from tiny_painter.inputs import TinyCanvas
from tiny_painter.plugin import LIMITS, PAINTER, SLOW, SLOW_S, TinyImageBuilder, save_tiny_painter
from tiny_painter.stages import TinyDenoiser, TinyJob

MAX_TOKENS = 200
"""Letters of an answer."""
LINGERS_S = 1.0
READING = 1
"""Steps."""


@dataclass(frozen=True)
class TinyTalk:
    """For the denoiser."""

    text: str
    max_tokens: int
    fault: str = ""
    step_s: float = 0.0
    """What each step takes longer."""

    @property
    def steps(self) -> int:
        """The last one ends the text, unless it is cut."""
        return READING + min(self.max_tokens, len(self.text) + 1)


@dataclass
class TinyAnswer:
    """The state of one answer."""

    talk: TinyTalk
    done: int = 0


class TinyScribe(TinyDenoiser):
    """Implements `contract.model.denoiser.Writer`."""

    def draws(self, inputs: TinyCanvas | TinyTalk) -> bool:
        return isinstance(inputs, TinyCanvas)

    def awaits(self, inputs: TinyCanvas | TinyTalk) -> tuple[str, ...]:
        return () if isinstance(inputs, TinyTalk) else super().awaits(inputs)

    def begin(  # type: ignore[override]
        self, inputs: TinyCanvas | TinyTalk, arrived: Mapping[str, Payload]
    ) -> TinyJob | TinyAnswer:
        return (
            TinyAnswer(inputs) if isinstance(inputs, TinyTalk) else super().begin(inputs, arrived)
        )

    def steps(self, job: TinyJob | TinyAnswer) -> int:
        return job.talk.steps if isinstance(job, TinyAnswer) else super().steps(job)

    def previews(self, job: TinyJob | TinyAnswer) -> int:
        return 0 if isinstance(job, TinyAnswer) else super().previews(job)

    def size(self, job: TinyJob | TinyAnswer) -> ForwardSize:
        return ForwardSize(1, 1) if isinstance(job, TinyAnswer) else super().size(job)

    def group(self, job: TinyJob | TinyAnswer) -> None:
        return None

    def advance(self, jobs: Sequence[TinyJob | TinyAnswer]) -> Sequence[CantataError | None]:
        answers = [job for job in jobs if isinstance(job, TinyAnswer)]
        for job in answers:
            match job.talk.fault:
                case "CRASH":
                    raise ValueError("no ink")
                case "FATAL" if job.done == 2:
                    os._exit(3)
                case "LINGER":
                    os.closerange(3, 1024)  # as a large process does on a busy machine
                    time.sleep(LINGERS_S)
                    os._exit(3)
        pictures = [job for job in jobs if isinstance(job, TinyJob)]
        drawn = iter(super().advance(pictures) if pictures else ())
        time.sleep(sum(job.talk.step_s for job in answers))
        for job in answers:
            job.done += 1
        return [next(drawn) if isinstance(job, TinyJob) else None for job in jobs]

    def written(self, job: TinyJob | TinyAnswer) -> NDArray[np.int32]:
        if isinstance(job, TinyJob) or job.done <= READING:
            return np.zeros(0, np.int32)
        at = job.done - READING - 1
        return np.array([ord(letter) for letter in job.talk.text[at : at + 1]], np.int32)


def load_scribe(checkpoint: Path, options: DenoiserOptions) -> TinyScribe:
    """The factory that the pipeline names."""
    return TinyScribe(forward_s=0.002)


class TinyTextReader:
    """Implements `contract.model.conversation.TextReader`."""

    def read(self, tokens: NDArray[np.int32]) -> str:
        return "".join(map(chr, tokens.tolist()))

    def end(self) -> str:
        return ""


@dataclass(frozen=True)
class TinyScribeBuilder:
    """Implements `contract.model.conversation.ChatBuilder`."""

    takes: frozenset[Modality] = frozenset({Modality.TEXT, Modality.IMAGE})
    voices: tuple[Voice, ...] = ()
    text: str = "denoiser.codes"
    warm_up: ChatRequest = field(
        default_factory=lambda: ChatRequest((Message(Role.USER, (TextPart("warm"),)),))
    )

    def build(self, request_id: str, request: ChatRequest) -> PlannedAnswer:
        parts = [part for message in request.messages for part in message.parts]
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        if not texts:
            raise InvalidRequest("nothing to say again", "messages")
        said, max_tokens = (
            texts[-1],
            MAX_TOKENS if request.max_tokens is None else request.max_tokens,
        )
        fault = next((word for word in ("CRASH", "FATAL", "LINGER") if word in said), "")
        talk = TinyTalk(said, max_tokens, fault, SLOW_S if SLOW in said else 0.0)
        without = frozenset({"denoiser.latents", "denoiser.progress"})
        return PlannedAnswer(
            PipelineRequest(request_id, {"denoiser": talk}, without=without),
            len(said),
            AnswerSteps(READING, ForwardSize(1, 1), max_tokens, ForwardSize(1, 1)),
        )

    def reader(self) -> TinyTextReader:
        return TinyTextReader()

    def call_reader(self) -> None:
        return None


def _writing(pipeline: PipelineSpec) -> PipelineSpec:
    """The painter's, with a denoiser that writes, too."""
    stages = tuple(
        replace(
            stage,
            factory="tiny_painter.scribe:load_scribe",
            outputs={**stage.ports, "codes": Codes},
        )
        if stage.name == "denoiser"
        else stage
        for stage in pipeline.stages
    )
    return PipelineSpec(stages, (*pipeline.edges, EdgeSpec("denoiser.codes", CLIENT)))


PLUGIN = ModelPlugin(
    name="tiny-scribe",
    model_types=("TinyScribePipeline",),
    pipeline=_writing(PAINTER),
    deployment=Path(__file__).with_name("painter.yaml"),
    load_chat_builder=lambda _: TinyScribeBuilder(),
    load_image_builder=lambda _: TinyImageBuilder(limits=replace(LIMITS, conversations=True)),
    write_random_checkpoint=save_tiny_painter,
)
