"""The encoder stage: from a recording to its speaker's vector and its frames of codes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from cantata.contract.data.chunks import Codes, Payload, Rows
from cantata.contract.data.errors import CantataError
from cantata_models.qwen3_tts.codec.encoder import load_encoder
from cantata_models.qwen3_tts.inputs import EncoderInput
from cantata_models.qwen3_tts.speaker_encoder import load_speaker_encoder


class RecordingEncoders:
    """Implements `contract.model.feed_forward.FeedForward` with a checkpoint's own encoders."""

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        self._device = device
        self._speaker_encoder = load_speaker_encoder(checkpoint).to(device)
        self._codec_encoder = load_encoder(checkpoint).to(device)

    def key(self, inputs: EncoderInput) -> bytes:
        """Hash of the samples and of what is made of them."""
        return hashlib.sha256(inputs.samples.tobytes() + bytes([inputs.frames])).digest()

    def run(self, batch: Sequence[EncoderInput]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode recordings one after the other: padded to one length, they would influence each
        other."""
        return [self._encode(inputs) for inputs in batch]

    def _encode(self, inputs: EncoderInput) -> Mapping[str, Payload] | CantataError:
        sound = torch.from_numpy(inputs.samples).to(self._device)
        try:
            speaker = self._speaker_encoder.embed(sound)
        except CantataError as error:
            return error
        encoder = self._codec_encoder
        frames = np.zeros((0, encoder.num_codebooks), np.int32)
        if inputs.frames:
            frames = encoder.encode(sound).cpu().numpy().astype(np.int32)
        return {"speaker": Rows(speaker[None].cpu().numpy()), "frames": Codes(frames)}


def load_encoders(checkpoint: Path, device: torch.device) -> RecordingEncoders:
    """Return a Base checkpoint's encoders in fp32.

    Raises:
        ConfigError: the checkpoint lacks weights of one.
    """
    return RecordingEncoders(checkpoint, device)
