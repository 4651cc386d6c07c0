"""The noise from which a request's sound is made, fixed by position.

Every window that covers a block of mel frames starts from the same noise there, whenever and
wherever it is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from cantata.contract.data.errors import InvalidRequest, RequestFailed
from cantata.contract.model.codec import BlockDecoder
from cantata_layers.weights import Weights
from cantata_models.qwen25_omni.config import SAMPLE_RATE, load_config
from cantata_models.qwen25_omni.dit import Dit, SpeakerInput
from cantata_models.qwen25_omni.rows import Token2WavInput
from cantata_models.qwen25_omni.speakers import load_speakers
from cantata_models.qwen25_omni.vocoder import Vocoder


def block_noise(
    seed: int, first_block: int, frames: int, block_size: int, mels: int
) -> torch.Tensor:
    """Return normal noise for mel frames that begin with a block.

    Args:
        seed: any integer, taken modulo 2**64.
        first_block: number of the first block in its stream.
        frames: how many; the last block may be cut.

    Returns:
        [frames, mels] float32.
    """
    blocks = range(first_block, first_block + -(-frames // block_size))
    drawn = [
        np.random.default_rng((seed % 2**64, block)).standard_normal((block_size, mels), np.float32)
        for block in blocks
    ]
    return torch.from_numpy(np.concatenate(drawn)[:frames])


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
        """Return a speaker's part of the input. Raises InvalidRequest: there is no such speaker."""
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


NEW_BLOCKS, PAST_BLOCKS, AHEAD_BLOCKS = 3, 2, 1
VOCODER_CONTEXT = 20
"""Mel frames."""


@dataclass(slots=True)
class WindowStream:
    """What one request's next window needs."""

    speaker: SpeakerInput | None = None
    seed: int = 0
    blocks: int = 0
    """Blocks before the next new one."""
    past: torch.Tensor = field(default_factory=lambda: torch.zeros(0, dtype=torch.int64))
    """[N] the last codes, of at most `PAST_BLOCKS` blocks."""
    mel: torch.Tensor | None = None
    """[2 * VOCODER_CONTEXT, M] the last mel frames: half of them heard, half not yet."""


class WindowDecoder(BlockDecoder):
    """Decodes codes in windows.

    Rows are decoded one by one, in windows whose sizes follow from their own codes alone. So a
    row's samples have the same bits in any company.

    Raises:
        ConfigError: (on construction) the folder holds no such checkpoint.
    """

    sample_rate, channels, num_codebooks = SAMPLE_RATE, 1, 1

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        self._networks = Token2Wav(checkpoint, device)
        config = self._networks.config
        self._dit = config.dit
        self.codebook_size = config.codes
        self.samples_per_frame = config.dit.repeats * config.vocoder.hop
        self._hop = config.vocoder.hop
        self.block_frames = NEW_BLOCKS * config.dit.block_codes
        self.ahead_frames = AHEAD_BLOCKS * config.dit.block_codes

    def init_state(self, slots: int) -> list[WindowStream]:
        """Return an empty stream for each slot."""
        return [WindowStream() for _ in range(slots)]

    def reset(self, state: list[WindowStream], slots: torch.Tensor) -> None:
        for slot in slots.tolist():
            state[slot] = WindowStream()

    def condition(
        self, state: list[WindowStream], slot: int, inputs: Token2WavInput | None
    ) -> None:
        """Choose a slot's speaker and seed.

        Raises:
            InvalidRequest: there is no such speaker.
            RequestFailed: the request does not say whose voice it is.
        """
        if inputs is None:
            raise RequestFailed("the decoder has not been told whose voice to make")
        state[slot].speaker, state[slot].seed = self._networks.speaker(inputs.speaker), inputs.seed

    @torch.inference_mode()
    def decode_blocks(
        self,
        state: list[WindowStream],
        slots: torch.Tensor,
        codes: Sequence[torch.Tensor],
        last: Sequence[bool],
    ) -> list[torch.Tensor]:
        """Decode a window of each of these slots; arguments and result as in the protocol."""
        rows = zip(slots.tolist(), codes, last, strict=True)
        return [self._decode(state[slot], row[:, 0], ends)[:, None] for slot, row, ends in rows]

    def _decode(self, stream: WindowStream, codes: torch.Tensor, last: bool) -> torch.Tensor:
        """[N] codes, the last of them ahead -> the samples that are heard now."""
        new = codes[: self.block_frames]
        mel = self._make_mel(stream, codes)[: len(new) * self._dit.repeats]
        block_codes = self._dit.block_codes
        stream.past = torch.cat([stream.past, new])[-PAST_BLOCKS * block_codes :]
        stream.blocks += -(-len(new) // block_codes)
        return self._make_sound(stream, mel, last)

    def _make_mel(self, stream: WindowStream, codes: torch.Tensor) -> torch.Tensor:
        """The spectrogram of these codes, made in one window with those before them: [L, M]."""
        assert stream.speaker is not None, "a slot is conditioned before it is decoded"
        dit, past = self._dit, len(stream.past)
        window = torch.cat([stream.past, codes])
        first_block = stream.blocks - past // dit.block_codes
        frames = len(window) * dit.repeats
        noise = block_noise(stream.seed, first_block, frames, dit.block_size, dit.mels)
        return self._networks.mel(window, stream.speaker, noise)[past * dit.repeats :]

    def _make_sound(self, stream: WindowStream, mel: torch.Tensor, last: bool) -> torch.Tensor:
        """[L, M] new mel frames -> samples, less those that wait for frames to come."""
        received = 0 if stream.mel is None else VOCODER_CONTEXT * self._hop
        seen = mel if stream.mel is None else torch.cat([stream.mel, mel])
        wave = self._networks.wave(seen)
        stream.mel = seen[-2 * VOCODER_CONTEXT :]
        return wave[received : len(wave) if last else -VOCODER_CONTEXT * self._hop]


def load_decoder(checkpoint: Path, device: torch.device) -> WindowDecoder:
    """Return the checkpoint's decoder in float32, as its publisher runs it."""
    return WindowDecoder(checkpoint, device)
