"""A request of everything that a model takes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cantata.config.plugins import LocatedModel
from cantata.contract.data.chat import (
    AudioPart,
    ChatRequest,
    ImagePart,
    Message,
    MessagePart,
    Modality,
    Role,
    TextPart,
    VideoPart,
)
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.data.request import PipelineRequest, ReferenceAudio, SpeechRequest
from cantata.contract.data.transcripts import TranscriptionRequest

RATE = 16_000


def build_requests(located: LocatedModel, request_id: str) -> list[PipelineRequest]:
    """One of each kind that the model takes, with all that it may have: a recording, pictures."""
    plugin, checkpoint = located.plugin, located.checkpoint
    requests: list[PipelineRequest] = []
    if plugin.load_builder is not None:
        requests += _speech(plugin.load_builder(checkpoint), request_id)
    if plugin.load_chat_builder is not None:
        builder = plugin.load_chat_builder(checkpoint)
        voice = builder.voices[0].id if builder.voices else None
        asked = ChatRequest((Message(Role.USER, _parts(builder.takes)),), voice=voice, seed=1)
        requests.append(builder.build(f"{request_id}-chat", replace(asked, max_tokens=3)).request)
    if plugin.load_image_builder is not None:
        requests += _pictures(plugin.load_image_builder(checkpoint), request_id)
    if plugin.load_transcription_builder is not None:
        listener = plugin.load_transcription_builder(checkpoint)
        sound = None if listener.stage else _sound(1.0)
        asked_for = TranscriptionRequest(timestamps=listener.has_timestamps)
        requests.append(listener.build(f"{request_id}-words", asked_for, sound))
    return requests


def _speech(builder: Any, request_id: str) -> list[PipelineRequest]:
    warm_up: SpeechRequest = replace(builder.warm_up, seed=1, temperature=0.7)
    made = [builder.build(f"{request_id}-text", warm_up)[0]]
    if builder.capabilities.references:
        recording = ReferenceAudio(_sound(1.5)[:, None], RATE, "What is said in it.")
        followed = replace(warm_up, reference=recording, temperature=0.0)
        made.append(builder.build(f"{request_id}-followed", followed)[0])
    return made


def _pictures(builder: Any, request_id: str) -> list[PipelineRequest]:
    limits = builder.limits
    side = -(-limits.min_side // limits.multiple) * limits.multiple
    asked = ImageRequest("a house", (), side, side, seed=1, steps=2, previews=1)
    shown = limits.max_references
    kinds = [] if limits.min_references else [asked]
    if shown:
        kinds.append(replace(asked, references=(_picture(),) * max(limits.min_references, 1)))
    return [builder.build(f"{request_id}-drawn-{n}", one).request for n, one in enumerate(kinds)]


def _parts(takes: frozenset[Modality]) -> tuple[MessagePart, ...]:
    parts: dict[Modality, MessagePart] = {
        Modality.AUDIO: AudioPart(_sound(1.0)[:, None], RATE),
        Modality.IMAGE: ImagePart(_picture()),
        Modality.VIDEO: VideoPart(np.stack([_picture()] * 2), 2.0),
        Modality.TEXT: TextPart("Hello."),
    }
    return tuple(part for kind, part in parts.items() if kind in takes)


def _sound(seconds: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    noise = np.random.default_rng(0).standard_normal(round(seconds * RATE))
    return (0.1 * noise).astype(np.float32)


def _picture() -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(1).integers(0, 255, (56, 84, 3), np.uint8)
