"""The voice's plug-in, and how a text becomes its input."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.chunks import Pcm
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, SpeechRequest, TextSpan, Voice
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from tiny_voice.inputs import Clause, VoiceInput
from tiny_voice.onnx_file import write_voice

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            "voice",
            StageKind.FEED_FORWARD,
            "tiny_voice.voice:load_voice",
            outputs={"sound": Pcm},
        ),
    ),
    edges=(EdgeSpec("voice.sound", CLIENT),),
)
MAX_WORDS = 3
"""In one part of the sound."""
PITCHES = {"low": 110.0, "high": 220.0}


class VoiceBuilder:
    """Implements `contract.model.plugin.RequestBuilder`."""

    voices = tuple(Voice(name, name.title()) for name in PITCHES)
    capabilities = Capabilities(paces=(0.5, 2.0))
    warm_up = SpeechRequest("One, two.", "low")

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        """One piece for the whole text: its sound leaves clause by clause."""
        words = list(re.finditer(r"\w+", request.text))
        if not words:
            raise InvalidRequest("the text has no words", "input")
        clauses = list[list[int]]()
        for number, word in enumerate(words):
            before = request.text[words[number - 1].end() : word.start()] if number else ","
            if re.search(r"[^\w\s]", before) or len(clauses[-1]) == MAX_WORDS:
                clauses.append([])
            clauses[-1].append(number)
        lengths = [len(word[0]) for word in words]
        made = tuple(Clause(tuple(c), tuple(lengths[n] for n in c)) for c in clauses)
        strayed = np.random.default_rng(request.seed or 0).uniform(0.9, 1.1)
        pitch = PITCHES[request.voice] * (strayed if request.temperature else 1.0)
        return (
            PipelineRequest(
                f"{request_id}-0",
                {"voice": VoiceInput(made, pitch, request.speed)},
                words=tuple(TextSpan(word.start(), word.end()) for word in words),
            ),
        )


def load_builder(checkpoint: Path) -> VoiceBuilder:
    """The builder needs nothing from the checkpoint."""
    return VoiceBuilder()


PLUGIN = ModelPlugin(
    name="tiny-voice",
    model_types=("tiny_voice",),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=load_builder,
    write_random_checkpoint=write_voice,
)
