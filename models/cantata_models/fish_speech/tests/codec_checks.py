"""Checks of the codec against its statement.

Each check builds its objects from the modules imported at that moment, so that the mutation tests
can inject a fault into a module first.
"""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.fish_speech import encoder
from cantata_models.fish_speech.codec import load_decoder
from cantata_models.fish_speech.config import load_config
from cantata_models.fish_speech.tests.parity.codec_statement import CodecStatement
from cantata_models.fish_speech.tests.parity.scenarios import recording

CPU = torch.device("cpu")
FRAMES = 140
"""More than the transformer's window."""
TOLERANCE = 1e-5
"""Of samples in -1..1."""


def frames(checkpoint: Path, count: int = FRAMES, seed: int = 0) -> torch.Tensor:
    """[T, Q]: random codes that a talker could have chosen, some of which the codebooks lack."""
    config = load_config(checkpoint)
    most = [config.first_codes] + [config.codebook_size] * (config.num_codebooks - 1)
    rng = np.random.default_rng(seed)
    return torch.from_numpy(np.stack([rng.integers(0, size, count) for size in most], axis=1))


def decode(checkpoint: Path, codes: torch.Tensor, *chunks: int) -> NDArray[np.float32]:
    """Decode [T, Q] in slot 1 of 2, cycling through these chunk lengths; returns [N]."""
    decoder = load_decoder(checkpoint, CPU)
    state, slot = decoder.init_state(2), torch.tensor([1])
    decoder.reset(state, slot)
    parts, turn = [], 0
    while len(codes):
        now, codes = codes.tensor_split([chunks[turn % len(chunks)]])
        parts.append(decoder.decode(state, slot, now[None])[0, :, 0])
        turn += 1
    samples: NDArray[np.float32] = torch.cat(parts).numpy()
    return samples


@functools.cache
def _decoded(checkpoint: Path) -> NDArray[np.float64]:
    """[N]: no fault in the model changes it."""
    return CodecStatement(checkpoint).decode(frames(checkpoint)).numpy()


@functools.cache
def _encoded(checkpoint: Path, seconds: float) -> tuple[torch.Tensor, float]:
    return CodecStatement(checkpoint).encode(torch.from_numpy(recording(seconds)))


def check_decoded(checkpoint: Path, *chunks: int) -> None:
    """The sound of streamed frames is the statement's of the whole."""
    ours = decode(checkpoint, frames(checkpoint), *(chunks or (3, 40, 1)))
    theirs = _decoded(checkpoint)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)


def check_encoded(checkpoint: Path, seconds: float = 6.2) -> None:
    """A recording gives the statement's codes; it is longer than both windows."""
    samples = torch.from_numpy(recording(seconds))
    theirs, margin = _encoded(checkpoint, seconds)
    assert margin > 2e-6, "too near a tie: take another recording"
    ours = encoder.FishFrameEncoder(checkpoint, CPU).encode(samples)
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
