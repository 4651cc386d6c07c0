"""A tiny model whose frames are vectors: a thinker's hidden states feed a talker of latents."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.chunks import Rows
from cantata.contract.data.request import PipelineRequest, SpeechRequest
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.inputs import TinyInput
from tiny_talker.plugin import THINKING, TinyRequestBuilder


def _pipeline(talker: str, *before: StageSpec, edges: tuple[EdgeSpec, ...] = ()) -> PipelineSpec:
    latents = {"latents": Rows}
    return PipelineSpec(
        stages=(
            *before,
            StageSpec("talker", StageKind.AR, f"tiny_talker.latent:{talker}", outputs=latents),
            StageSpec("decoder", StageKind.CODEC, "tiny_talker.decoder:load_latent_decoder"),
        ),
        edges=(*edges, EdgeSpec("talker.latents", "decoder"), EdgeSpec("decoder.pcm", CLIENT)),
    )


LATENT = _pipeline("LatentTalker")
LATENT_TALKER = LATENT.stage("talker")
THINKING_LATENT = _pipeline(
    "RepeatingLatentTalker",
    THINKING.stage("thinker"),
    edges=(EdgeSpec("thinker.rows", "talker"), EdgeSpec("thinker.codes", CLIENT)),
)
"""The talker of latents speaks from the thinker's hidden states while that still makes them."""


class ThinkingRequestBuilder(TinyRequestBuilder):
    """The thinker gets the text; the talker says as many frames."""

    capabilities = Capabilities()

    def _piece(
        self, request_id: str, sentence: re.Match[str], request: SpeechRequest
    ) -> PipelineRequest:
        piece = super()._piece(request_id, sentence, request)
        thinker: Any = replace(piece.inputs["talker"], words=0)
        talker = TinyInput(max_frames=thinker.max_frames, sampling=thinker.sampling)
        return PipelineRequest(request_id, {"thinker": thinker, "talker": talker})


def load_builder(checkpoint: Path) -> ThinkingRequestBuilder:
    """The builder needs nothing from the checkpoint."""
    return ThinkingRequestBuilder()


PLUGIN = ModelPlugin(
    name="tiny-latent",
    model_types=("tiny_talker",),
    pipeline=THINKING_LATENT,
    deployment=Path(__file__).with_name("latent.yaml"),
    load_builder=load_builder,
    write_random_checkpoint=save_tiny_checkpoint,
)
"""For the conformance tests: two AR stages that run together, and frames that are not codes."""
