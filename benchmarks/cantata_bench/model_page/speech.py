"""A sentence, as long as it is asked to be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from cantata.config.plugins import LocatedModel
from cantata.contract.data.chunks import Chunk, Payload, Pcm
from cantata.contract.data.request import PipelineRequest, SpeechRequest
from cantata_bench.first_packet import TEXT, hear
from cantata_bench.model_page.work import Taken

LIMIT = "max_new_tokens"
"""The option that ends speech which does not end by itself, as random weights do not."""


@dataclass(frozen=True, slots=True)
class Speech:
    """Implements `model_page.work.PageWork`."""

    frames: int
    """Most frames, if the model has such an option."""

    async def ask(self, http: httpx.AsyncClient) -> Taken | None:
        """Send one; as `PageWork`."""
        received = await hear(http, self.frames)
        if received.first_s is None:
            return None
        return Taken(received.first_s, received.whole_s, received.audio_s)

    def built(self, located: LocatedModel, ids: Sequence[str]) -> list[PipelineRequest]:
        """As in `PageWork`."""
        builder = located.plugin.speech_builder(located.checkpoint)
        options: dict[str, Any] = {}
        if LIMIT in builder.capabilities.options:
            options[LIMIT] = self.frames + 1
        asked = SpeechRequest(TEXT, builder.voices[0].id, temperature=0.0, options=options)
        return [piece for name in ids for piece in builder.build(name, asked)]

    def begins(self, payload: Payload) -> bool:
        """Any sound."""
        return isinstance(payload, Pcm) and payload.units > 0

    def amount(self, chunk: Chunk[Payload], sample_rate: int) -> float:
        """Seconds of sound."""
        return chunk.payload.units / sample_rate if isinstance(chunk.payload, Pcm) else 0.0
