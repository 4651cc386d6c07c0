"""The encoder stage: from recordings to their frames of codes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from cantata.contract.data.chunks import Codes, Payload
from cantata.contract.data.errors import CantataError
from cantata_models.fish_speech.codec.encoder import RecordingEncoder
from cantata_models.fish_speech.config import check_codec, load_config
from cantata_models.fish_speech.inputs import EncoderInput


class RecordingFrames:
    """Implements `contract.model.feed_forward.FeedForward` with a checkpoint's own encoder."""

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        encoder = self._encoder = RecordingEncoder(checkpoint, device)
        config = load_config(checkpoint)
        check_codec(config, checkpoint, encoder.num_codebooks, encoder.samples_per_frame)

    def key(self, inputs: EncoderInput) -> bytes:
        """Hash of the samples."""
        digest = hashlib.sha256()
        for samples in inputs.recordings:
            digest.update(len(samples).to_bytes(8, "little"))
            digest.update(samples.tobytes())
        return digest.digest()

    def run(self, batch: Sequence[EncoderInput]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode recordings one after the other: padded to one length, they would influence each
        other."""
        return [self._encode(inputs) for inputs in batch]

    def _encode(self, inputs: EncoderInput) -> Mapping[str, Payload]:
        encode = self._encoder.encode
        codes = torch.cat([encode(torch.from_numpy(samples)) for samples in inputs.recordings])
        return {"frames": Codes(codes.cpu().numpy().astype(np.int32))}


def load_encoder(checkpoint: Path, device: torch.device) -> RecordingFrames:
    """Return a checkpoint's encoder in fp32.

    Raises:
        ConfigError: the checkpoint lacks weights of it, or they do not fit its talker.
    """
    return RecordingFrames(checkpoint, device)
