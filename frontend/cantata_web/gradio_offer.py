"""What the speech server offers, as the Gradio app's menus show it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

Choices = tuple[tuple[str, str], ...]
"""Label and value of each entry of a menu."""


@dataclass(frozen=True, slots=True)
class Offer:
    """Models by what they do, each kind in the server's order."""

    voices: Mapping[str, Choices] = field(default_factory=dict)
    """Of each model that speaks texts, its default voice first."""
    cloning: tuple[str, ...] = ()
    """Models that follow a recording."""
    answering: tuple[str, ...] = ()
    painters: Mapping[str, str] = field(default_factory=dict)
    """Model -> its default size, `WIDTHxHEIGHT`."""
    listening: tuple[str, ...] = ()

    @property
    def speaking(self) -> tuple[str, ...]:
        """Models that speak texts, the default first."""
        return tuple(self.voices)


async def read_offer(client: httpx.AsyncClient, headers: Mapping[str, str]) -> Offer:
    """Ask the server. Raises httpx.HTTPError: it cannot be reached, is not ready or wants a key."""
    models = await _get(client, "v1/models", headers)
    speech = await _get(client, "v1/audio/models", headers)
    voices = await _get(client, "v1/audio/voices", headers)
    return Offer(
        {one["id"]: _list_choices(one, voices["voices"]) for one in speech["models"]},
        tuple(one["id"] for one in speech["models"] if one["capabilities"]["references"]),
        tuple(one["id"] for one in models["data"] if _is_answering(one)),
        {one["id"]: one["images"]["default_size"] for one in models["data"] if one["images"]},
        tuple(one["id"] for one in models["data"] if one["transcription"]),
    )


async def _get(client: httpx.AsyncClient, path: str, headers: Mapping[str, str]) -> Any:
    answer = await client.get(path, headers=headers)
    answer.raise_for_status()
    return answer.json()


def _is_answering(model: Mapping[str, Any]) -> bool:
    """Whether a model answers messages in words."""
    return "text" in model["output_modalities"] and not model["transcription"]


def _list_choices(model: Mapping[str, Any], voices: Sequence[Mapping[str, Any]]) -> Choices:
    own = [one for one in voices if one["model"] == model["id"]]
    own.sort(key=lambda one: one["id"] != model["default_voice"])
    return tuple((_label_voice(one), one["id"]) for one in own)


def _label_voice(voice: Mapping[str, Any]) -> str:
    return f"{voice['name']} ({voice['gender']})" if voice["gender"] else str(voice["name"])
