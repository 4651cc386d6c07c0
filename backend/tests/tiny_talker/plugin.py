"""The tiny talker as the server finds it: sentences in, words with known times out."""

from __future__ import annotations

import re
from pathlib import Path

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.chunks import Rows
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import (
    PipelineRequest,
    SamplingOptions,
    SpeechRequest,
    StageInput,
    TextSpan,
    Voice,
)
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from tiny_talker.checkpoint import TEXT_VOCAB
from tiny_talker.inputs import TinyInput, TinySound, TinyText

FRAMES_PER_WORD = 5
MAX_PROMPT = 16
MAX_OPEN_FRAMES = 60
"""Of a text that goes on; its end does not end it."""


def pipeline_with(talker: str, load_decoder: str) -> PipelineSpec:
    """The pipeline of these: names in `tiny_talker.talker` and `tiny_talker.decoder`."""
    return PipelineSpec(
        stages=(
            StageSpec("talker", StageKind.AR, f"tiny_talker.talker:{talker}"),
            StageSpec("decoder", StageKind.CODEC, f"tiny_talker.decoder:{load_decoder}"),
        ),
        edges=(EdgeSpec("talker.codes", "decoder"), EdgeSpec("decoder.pcm", CLIENT)),
    )


PIPELINE = pipeline_with("TinyTalker", "load_decoder")
TWO_TALKERS = PipelineSpec(
    stages=(
        StageSpec("talker", StageKind.AR, "tiny_talker.talker:TinyTalker"),
        StageSpec("repeater", StageKind.AR, "tiny_talker.talker:RepeatingTalker"),
        StageSpec("decoder", StageKind.CODEC, "tiny_talker.decoder:load_decoder"),
    ),
    edges=(
        EdgeSpec("talker.codes", "repeater"),
        EdgeSpec("repeater.codes", "decoder"),
        EdgeSpec("decoder.pcm", CLIENT),
        EdgeSpec("talker.codes", CLIENT),
    ),
)
"""The second talker speaks what the first one says, while it says it. The client gets both."""


def with_encoder(pipeline: PipelineSpec) -> PipelineSpec:
    """The same, and its talker follows a recording, if a request has one."""
    encoder = StageSpec(
        "encoder",
        StageKind.FEED_FORWARD,
        "tiny_talker.encoder:load_encoder",
        outputs={"rows": Rows},
    )
    return PipelineSpec(
        stages=(encoder, *pipeline.stages),
        edges=(EdgeSpec("encoder.rows", "talker"), *pipeline.edges),
    )


ENCODED = with_encoder(PIPELINE)
THINKING = PipelineSpec(
    stages=(
        StageSpec(
            "thinker",
            StageKind.AR,
            "tiny_talker.talker:ExportingTalker",
            outputs={"rows": Rows},
        ),
        *TWO_TALKERS.stages[1:],
    ),
    edges=(
        EdgeSpec("thinker.rows", "repeater"),
        *TWO_TALKERS.edges[1:3],
        EdgeSpec("thinker.codes", CLIENT),
    ),
)
"""The second talker speaks from the hidden states of the first, while that still makes them."""
HEARD_FIRST = 3
"""Frames with which the second one begins."""
AUDIBLE = pipeline_with("PatientTalker", "load_audible_decoder")
"""As many bytes as a real voice, with enough time per frame that a busy machine keeps up."""
FOLLOWING = with_encoder(AUDIBLE)
SLOW = pipeline_with("TinyTalker", "load_slow_decoder")
"""Keeps up with three listeners at most."""


class TinyRequestBuilder:
    """Implements `contract.model.plugin.RequestBuilder`: a piece for each sentence."""

    voices: tuple[Voice, ...] = (Voice("tiny", "Tiny"),)
    capabilities = Capabilities(open_text=True)
    warm_up = SpeechRequest("Hello.", "tiny")

    def build(self, request_id: str, request: SpeechRequest) -> tuple[PipelineRequest, ...]:
        sentences = list(re.finditer(r"[^.]*\w[^.]*", request.text))
        if not sentences:
            raise InvalidRequest("nothing to say", "input")
        return tuple(
            self._piece(f"{request_id}-{index}", sentence, request)
            for index, sentence in enumerate(sentences)
        )

    def open(self, request_id: str, request: SpeechRequest) -> TinyTextFeed:
        feed = TinyTextFeed(f"{request_id}-0")
        feed.push(request.text)
        return feed

    def _piece(
        self, request_id: str, sentence: re.Match[str], request: SpeechRequest
    ) -> PipelineRequest:
        words = [
            TextSpan(sentence.start() + word.start(), sentence.start() + word.end())
            for word in re.finditer(r"\w+", sentence[0])
        ]
        frames = FRAMES_PER_WORD * len(words)
        reference = request.reference
        payload = TinyInput(
            text=[ord(character) % TEXT_VOCAB for character in sentence[0].strip()[:MAX_PROMPT]],
            max_frames=frames,
            min_frames=frames,
            follows=reference is not None,
            words=len(words),
            sampling=SamplingOptions(request.seed or 0, request.temperature),
        )
        inputs: dict[str, StageInput] = {"talker": payload}
        if reference is not None:
            inputs["encoder"] = TinySound(reference.mono)
        return PipelineRequest(request_id, inputs, words=tuple(words))


class TinyTextFeed:
    """Implements `contract.model.plugin.TextFeed`: a frame for each character, beside it."""

    stage = "talker"

    def __init__(self, request_id: str) -> None:
        self._request_id = request_id
        self._text: list[int] = []
        self._closed = False

    def push(self, text: str) -> None:
        self._text += [ord(character) % TEXT_VOCAB for character in text]

    def close(self) -> None:
        self._closed = True

    def start(self) -> PipelineRequest | None:
        if not self._text and not self._closed:
            return None
        if not self._text:
            raise InvalidRequest("nothing to say", "input")
        payload = TinyInput(
            text=self._take(), track=True, max_frames=MAX_OPEN_FRAMES, open=not self._closed
        )
        return PipelineRequest(self._request_id, {self.stage: payload})

    def more(self) -> StageInput | None:
        return TinyText(text=self._take()) if self._text or self._closed else None

    def _take(self) -> list[int]:
        text, self._text = self._text, []
        return text


def load_builder(checkpoint: Path) -> TinyRequestBuilder:
    """The builder needs nothing from the checkpoint."""
    return TinyRequestBuilder()


PLUGIN = ModelPlugin(
    name="tiny",
    model_types=("tiny_talker",),
    pipeline=PIPELINE,
    deployment=Path("deploy.yaml"),
    load_builder=load_builder,
)
