"""Checks of the codec and the encoders against the reference's goldens.

Each check builds its objects from the modules imported at that moment, so that the mutation tests
can inject a fault into a module first.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.stages.codec.windowed import WindowedDecoder
from cantata_models.qwen3_tts.tests.parity.recordings import random_frames, recording
from cantata_models.qwen3_tts.tests.parity.write_goldens import (
    GOLDENS,
    LONG_FRAMES,
    MEL_STRIDE,
    PCM_STRIDE,
    RECORDINGS,
    SHORT_FRAMES,
)
from cantata_models.qwen3_tts.tests.rounding import SAMPLES

PACKAGE = "cantata_models.qwen3_tts"
SPEAKER_TOLERANCE = 1e-4
FIRST_FRAMES = 20
"""Fewer than a window has."""


def goldens(name: str = "codec") -> Mapping[str, NDArray[Any]]:
    """The arrays of a golden file."""
    loaded: Mapping[str, NDArray[Any]] = np.load(GOLDENS / f"{name}.npz")
    return loaded


def load_decoder(checkpoint: Path) -> Any:
    """Load the decoder as the stage does."""
    module = importlib.import_module(f"{PACKAGE}.codec")
    return module.Qwen3TtsDecoder(checkpoint, torch.device("cpu"))


def frames(decoder: Any, count: int) -> torch.Tensor:
    """[1, count, Q]: the first frames of the goldens' input."""
    every = random_frames(LONG_FRAMES, decoder.num_codebooks, decoder.codebook_size)
    return torch.from_numpy(every[None, :count])


def decode(decoder: Any, codes: torch.Tensor, *chunks: int) -> NDArray[np.float32]:
    """Decode [1, T, Q] in slot 1 of 2, cycling through these chunk lengths; returns [N]."""
    state, slot = decoder.init_state(2), torch.tensor([1])
    decoder.reset(state, slot)
    parts, turn = [], 0
    while codes.shape[1]:
        now, codes = codes.tensor_split([chunks[turn % len(chunks)]], dim=1)
        parts.append(decoder.decode(state, slot, now)[0, :, 0])
        turn += 1
    samples: NDArray[np.float32] = torch.cat(parts).numpy()
    return samples


def check_whole(checkpoint: Path) -> None:
    """A whole utterance matches the reference."""
    decoder = load_decoder(checkpoint)
    samples = decode(decoder, frames(decoder, SHORT_FRAMES), SHORT_FRAMES)
    SAMPLES.check(samples[::PCM_STRIDE], goldens()["whole"])


def check_beginning(checkpoint: Path) -> None:
    """So does its beginning, which takes a fraction of the time."""
    decoder = load_decoder(checkpoint)
    samples = decode(decoder, frames(decoder, FIRST_FRAMES), FIRST_FRAMES)[::PCM_STRIDE]
    SAMPLES.check(samples, goldens()["whole"][: len(samples)])


def check_streamed(checkpoint: Path) -> None:
    """The audio matches for any chunking of the frames."""
    decoder = load_decoder(checkpoint)
    samples = decode(decoder, frames(decoder, SHORT_FRAMES), 1, 2, 17)
    SAMPLES.check(samples[::PCM_STRIDE], goldens()["whole"])


def check_windowed(checkpoint: Path) -> None:
    """The audio matches when decoded in windows, like the reference."""
    inner = load_decoder(checkpoint)
    for chunk, context, count in ((25, 25, SHORT_FRAMES), (300, 25, LONG_FRAMES)):
        decoder = WindowedDecoder(inner, chunk, context)
        samples = decode(decoder, frames(decoder, count), 6, 40)
        golden = goldens()[f"windowed_{chunk}_{context}"]
        SAMPLES.check(samples[::PCM_STRIDE], golden)


def check_reference_frames(checkpoint: Path) -> None:
    """A recording gives the reference's frames."""
    encoder = importlib.import_module(f"{PACKAGE}.encoder").load_encoder(checkpoint)
    for seconds in RECORDINGS:
        codes = encoder.encode(torch.from_numpy(recording(seconds)))
        golden = goldens()[f"recording_{seconds}/reference_codes"]
        np.testing.assert_array_equal(codes.numpy(), golden)


def check_speaker(checkpoint: Path) -> None:
    """A recording gives the reference's log-mel spectrogram and its speaker's vector."""
    module = importlib.import_module(f"{PACKAGE}.encoder")
    encoder = module.load_speaker_encoder(checkpoint)
    for seconds in RECORDINGS:
        vector = encoder.embed(torch.from_numpy(recording(seconds)))
        golden = goldens()[f"recording_{seconds}/speaker"]
        np.testing.assert_allclose(vector.numpy(), golden, rtol=0, atol=SPEAKER_TOLERANCE)
    mels = encoder.mel(torch.from_numpy(recording(RECORDINGS[0]))).numpy()
    np.testing.assert_allclose(mels[::MEL_STRIDE], goldens()["mel"], rtol=0, atol=1e-5)
