"""The checkpoint's two networks and its speakers, loaded together.

Letters: N codes, L mel frames, M mels.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from cantata.contract.data.errors import InvalidRequest
from cantata_layers.weights import Weights
from cantata_models.qwen25_omni.config import load_config
from cantata_models.qwen25_omni.speakers import load_speakers
from cantata_models.qwen25_omni.token2wav.dit import Dit, SpeakerInput
from cantata_models.qwen25_omni.token2wav.vocoder import Vocoder


class Token2Wav:
    """What makes a mel spectrogram of codes, and a wave of that.

    Raises:
        ConfigError: (on construction) the folder holds no such checkpoint.
    """

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        self.config = load_config(checkpoint)
        self.device = device
        weights = Weights(checkpoint, "token2wav.code2wav_dit_model.", device)
        self._dit = Dit(weights, self.config.dit, device)
        weights = Weights(checkpoint, "token2wav.code2wav_bigvgan_model.", device)
        self._vocoder = Vocoder(weights, self.config.vocoder)
        self._speakers: Mapping[str, SpeakerInput] = {
            name: self._dit.speaker_input(speaker)
            for name, speaker in load_speakers(checkpoint, self.config).items()
        }

    def speaker(self, name: str) -> SpeakerInput:
        """Return a speaker's part of the input.

        Raises:
            InvalidRequest: there is no such speaker.
        """
        found = self._speakers.get(name)
        if found is None:
            valid = ", ".join(self._speakers)
            raise InvalidRequest(f"no speaker {name!r}; valid: {valid}", "voice")
        return found

    def mel(self, codes: torch.Tensor, speaker: SpeakerInput, noise: torch.Tensor) -> torch.Tensor:
        """Make the spectrogram of [N] codes from [L, M] noise, all at once: [L, M]."""
        codes, noise = (x.to(self.device, non_blocking=True) for x in (codes, noise))
        return self._dit.sample(codes, speaker, noise)

    def wave(self, mel: torch.Tensor) -> torch.Tensor:
        """Make the sound of [L, M] log-mel: [L * hop] float32 samples in -1..1."""
        return self._vocoder(mel)
