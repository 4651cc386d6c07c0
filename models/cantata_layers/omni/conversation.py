"""Conversations of the api as omni models take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import soxr

from cantata.contract.data import chat
from cantata.contract.data.chat import ChatRequest
from cantata.contract.data.request import SamplingOptions
from cantata_layers.omni.inputs import ThinkerInput, identify_rows
from cantata_layers.omni.messages import (
    Part,
    PromptMessage,
    PromptPicture,
    PromptRole,
    PromptSound,
    Text,
    Video,
)
from cantata_layers.omni.preprocessor_config import RATE
from cantata_layers.omni.prompt import Prompt
from cantata_layers.omni.thinker_fields import ThinkerSampling


def to_message(message: chat.Message) -> PromptMessage:
    """A message as the prompt takes it: sound mono, at the encoder's rate."""
    return PromptMessage(
        PromptRole(message.role.value), tuple(_build_part(part) for part in message.parts)
    )


def _build_part(part: chat.MessagePart) -> Part:
    match part:
        case chat.TextPart(text):
            return Text(text)
        case chat.ImagePart(pixels):
            return PromptPicture(pixels)
        case chat.VideoPart(frames, frames_per_s, sound):
            return Video(frames, frames_per_s, None if sound is None else _build_sound(sound))
        case chat.AudioPart():
            return _build_sound(part)


def _build_sound(part: chat.AudioPart) -> PromptSound:
    mono = part.samples.mean(axis=1)
    if part.sample_rate != RATE:
        mono = soxr.resample(mono, part.sample_rate, RATE)
    return PromptSound(np.ascontiguousarray(mono, np.float32))


def thinker_input(
    request: ChatRequest,
    prompt: Prompt,
    defaults: ThinkerSampling,
    *,
    seed: int,
    exports_rows: bool,
) -> ThinkerInput:
    """What the thinker is given of a request.

    Args:
        request: says how the answer is sampled, and how long it may be.
        exports_rows: whether the talker needs hidden states.
    """
    places = [places for _, places in prompt.media]
    return ThinkerInput(
        tokens=prompt.tokens,
        media=np.concatenate(places) if places else np.zeros(0, np.int32),
        positions=prompt.positions,
        identities=identify_rows(prompt.tokens, prompt.media),
        max_tokens=request.max_tokens,
        exports_rows=exports_rows,
        sampling=SamplingOptions(
            seed=seed,
            temperature=_or(request.temperature, defaults.settings.temperature),
            top_k=_or(request.top_k, defaults.settings.top_k),
            top_p=_or(request.top_p, defaults.settings.top_p),
            repetition_penalty=_or(request.repetition_penalty, defaults.repetition_penalty),
            presence_penalty=request.presence_penalty,
            frequency_penalty=request.frequency_penalty,
        ),
    )


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value
