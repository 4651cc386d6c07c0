"""The encoder stage: from a recording to its frames of codes.

A recording is resampled here, not where requests are built, so one that is known already costs
nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Codes, Payload
from cantata.contract.data.errors import CantataError
from cantata_models.moss_tts.codec.encoder import AudioEncoder
from cantata_models.moss_tts.codec.locating import checked_tokenizer
from cantata_models.moss_tts.codec.recordings import levelled, to_stereo
from cantata_models.moss_tts.config.local import load_local_config
from cantata_models.moss_tts.config.nano import load_nano_config
from cantata_models.moss_tts.config.shared import MossConfig
from cantata_models.moss_tts.inputs import MossEncoderInput

Prepare = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""[N, 2] at the encoder's rate -> [N, 2]."""


class MossRecordingEncoder:
    """Implements `contract.model.feed_forward.FeedForward` with a tokenizer's encoder.

    Args:
        encoder: of the tokenizer.
        prepare: what the model does to recordings before they are encoded.
    """

    def __init__(self, encoder: AudioEncoder, prepare: Prepare) -> None:
        self._encoder = encoder
        self._prepare = prepare

    def key(self, inputs: MossEncoderInput) -> bytes:
        """Hash of the samples, their layout and their rate."""
        layout = f"{inputs.samples.shape[1]} at {inputs.sample_rate}".encode()
        return hashlib.sha256(layout + inputs.samples.tobytes()).digest()

    def run(
        self, batch: Sequence[MossEncoderInput]
    ) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode recordings one after the other: their lengths differ."""
        return [self._encode(inputs) for inputs in batch]

    def _encode(self, inputs: MossEncoderInput) -> Mapping[str, Payload] | CantataError:
        stereo = to_stereo(inputs.samples, inputs.sample_rate, self._encoder.sample_rate)
        try:
            frames = self._encoder.encode(torch.from_numpy(self._prepare(stereo)))
        except CantataError as error:
            return error
        return {"frames": Codes(frames.cpu().numpy().astype(np.int32))}


def load_local_encoder(checkpoint: Path, device: torch.device) -> MossRecordingEncoder:
    """Return the encoder of MOSS-TTS-Local's tokenizer in fp32.

    Raises:
        ConfigError: the tokenizer is missing, lacks weights, or is not of this checkpoint.
    """
    return MossRecordingEncoder(_load(checkpoint, load_local_config(checkpoint), device), levelled)


def load_nano_encoder(checkpoint: Path, device: torch.device) -> MossRecordingEncoder:
    """Return that of MOSS-TTS-Nano's; as `load_local_encoder`."""
    encoder = _load(checkpoint, load_nano_config(checkpoint), device)
    return MossRecordingEncoder(encoder, lambda samples: samples)


def _load(checkpoint: Path, config: MossConfig, device: torch.device) -> AudioEncoder:
    return AudioEncoder(checked_tokenizer(checkpoint, config), config.num_codebooks, device)
