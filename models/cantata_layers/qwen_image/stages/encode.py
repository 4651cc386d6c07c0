"""The text encoder's stage.

Letters: T tokens, E columns, H height, W width.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import CantataError
from cantata_layers.qwen_image.config import load_config
from cantata_layers.qwen_image.stages.pipeline import CONDITION, NEGATIVE, EncodeInput
from cantata_layers.qwen_image.text.encoder import TextEncoder
from cantata_layers.qwen_image.text.patches import Patches, PatchMaker
from cantata_layers.qwen_image.text.prompts import TEMPLATES

KEPT = 16
"""Embedded prompts. Most negative prompts are the same."""


class PromptEncoder:
    """Implements `contract.model.feed_forward.FeedForward`.

    Raises:
        ConfigError: weights are missing or of another shape.
    """

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        family = load_config(checkpoint).family
        self._dropped = TEMPLATES[family].dropped
        self._encoder = TextEncoder(checkpoint, device, sees=family.takes_pictures)
        self._patches = PatchMaker(checkpoint) if family.takes_pictures else None
        self._kept: OrderedDict[bytes, Rows] = OrderedDict()

    def key(self, inputs: EncodeInput) -> bytes:
        """Hash of tokens and pixels."""
        negative = _NONE if inputs.negative is None else _hash(inputs.negative, inputs.pictures)
        return _hash(inputs.prompt, inputs.pictures) + negative

    def run(self, batch: Sequence[EncodeInput]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Embed prompts one after the other: their lengths differ."""
        return [self._encode(inputs) for inputs in batch]

    def _encode(self, inputs: EncodeInput) -> Mapping[str, Payload]:
        pictures = self._cut(inputs.pictures)
        condition = self._embed(inputs.prompt, inputs.pictures, pictures)
        negative = (
            Rows(condition.values[:0])
            if inputs.negative is None
            else self._embed(inputs.negative, inputs.pictures, pictures)
        )
        return {CONDITION: condition, NEGATIVE: negative}

    def _cut(self, pictures: Sequence[NDArray[np.uint8]]) -> list[Patches]:
        if self._patches is None:
            return []
        return [self._patches.patches(pixels) for pixels in pictures]

    def _embed(
        self,
        tokens: NDArray[np.int32],
        pixels: Sequence[NDArray[np.uint8]],
        pictures: Sequence[Patches],
    ) -> Rows:
        key = _hash(tokens, pixels)
        output = self._kept.pop(key, None)
        if output is None:
            output = Rows(self._encoder.embed(tokens, self._dropped, pictures).cpu().numpy())
        self._kept[key] = output
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return output


_NONE = b"none"


def _hash(tokens: NDArray[np.int32], pictures: Sequence[NDArray[np.uint8]]) -> bytes:
    output = hashlib.sha256(tokens.tobytes())
    for pixels in pictures:
        output.update(f"{pixels.shape}".encode())
        output.update(np.ascontiguousarray(pixels).tobytes())
    return output.digest()


def load_prompt_encoder(checkpoint: Path, device: torch.device) -> PromptEncoder:
    """Return a checkpoint's text encoder; raises as `PromptEncoder`."""
    return PromptEncoder(checkpoint, device)
