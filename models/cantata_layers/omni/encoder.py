"""Makes the rows that media have in a thinker's prompt, with transformers' encoders.

Letters: W columns of a row.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import CantataError, ConfigError, RequestFailed
from cantata_layers.checkpoint import read_tensors
from cantata_layers.omni.inputs import EncoderInput, SoundFeatures, VisionFeatures


class ConversationEncoder(ABC):
    """Implements `contract.model.feed_forward.FeedForward`; a model brings its encoders."""

    def key(self, inputs: EncoderInput) -> bytes:
        """Hash of all features."""
        return hashlib.sha256(b"".join(media.identity for media in inputs.media)).digest()

    def run(self, batch: Sequence[EncoderInput]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode conversations one after the other: the sizes of their media differ."""
        return [self._encode(inputs) for inputs in batch]

    @abstractmethod
    def _encode_sounds(self, sounds: Sequence[SoundFeatures]) -> Sequence[torch.Tensor]:
        """[rows, W] float32 of each sound of a conversation."""

    @abstractmethod
    def _encode_images(self, media: VisionFeatures) -> torch.Tensor:
        """[rows, W] float32."""

    def _encode(self, inputs: EncoderInput) -> Mapping[str, Payload] | CantataError:
        sounds = [media for media in inputs.media if isinstance(media, SoundFeatures)]
        received = iter(self._encode_sounds(sounds) if sounds else ())
        parts = [
            self._encode_images(m) if isinstance(m, VisionFeatures) else next(received)
            for m in inputs.media
        ]
        rows = torch.cat(parts)
        expected = sum(media.rows for media in inputs.media)
        if len(rows) != expected:
            return RequestFailed(f"the encoders made {len(rows)} rows of media, not {expected}")
        return {"rows": Rows(rows.cpu().numpy())}


def load_network(
    network: Any, config: Any, checkpoint: Path, prefix: str, device: torch.device
) -> Any:
    """A network of transformers with a checkpoint's weights, in float32. Raises ConfigError:
    weights are missing, or of another shape."""
    config._attn_implementation = "sdpa"
    where = f"{checkpoint}: weights of {prefix}*"
    return fill_network(network(config), dict(read_tensors(checkpoint, prefix)), where, device)


def fill_network(
    network: nn.Module, tensors: Mapping[str, torch.Tensor], where: str, device: torch.device
) -> Any:
    """Give a network its weights, and return it in float32, ready to run.

    Args:
        tensors: by the network's own names.
        where: they are from, for messages.

    Raises:
        ConfigError: weights are missing, or of another shape.
    """
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise ConfigError(f"{where} do not fit: {error}") from error
    return network.float().eval().requires_grad_(False).to(device)
