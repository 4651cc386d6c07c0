"""Checks of the decoder against the reference's goldens.

Each check builds its objects from the modules imported at that moment, so that the mutation tests
can inject a fault into a module first.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.config import CodecDeployment
from cantata.contract.data.chunks import Chunk, Codes, Payload, Pcm
from cantata.contract.model.pipeline import CODES
from cantata.stages.codec import CodecStage
from cantata_models.qwen25_omni.rows import Token2WavInput
from cantata_models.qwen25_omni.tests.parity.scenarios import (
    LONG,
    SHORT,
    SPEAKERS,
    WINDOWED,
    random_codes,
    random_noise,
)
from cantata_models.qwen25_omni.tests.parity.write_goldens import (
    GOLDENS,
    MEL_STRIDE,
    WAVE_STRIDE,
)

PACKAGE = "cantata_models.qwen25_omni"
CPU = torch.device("cpu")
MEL_TOLERANCE, WAVE_TOLERANCE = 2e-4, 2e-5
"""Forty times what is seen in float32. The flow's 36 steps enlarge the rounding of each; a fault
moves the spectrogram by 1e-2 and more."""
DEPLOYMENT = CodecDeployment(slots=4, max_chunk_frames=36, max_batch_frames=144, credit_s=100.0)

Samples = NDArray[np.float32]


def goldens() -> Mapping[str, NDArray[Any]]:
    """The arrays of the golden file."""
    loaded: Mapping[str, NDArray[Any]] = np.load(GOLDENS / "token2wav.npz")
    return loaded


def load_decoder(checkpoint: Path) -> Any:
    """Load the decoder as the stage does."""
    return importlib.import_module(f"{PACKAGE}.token2wav").WindowDecoder(checkpoint, CPU)


def codes(count: int) -> NDArray[np.int32]:
    """[count, 1]: those of the goldens."""
    return random_codes(count, 63).astype(np.int32)[:, None]


def hear(
    decoder: Any, streams: Mapping[str, tuple[NDArray[np.int32], Token2WavInput]], *arriving: int
) -> dict[str, Samples]:
    """Decode streams together in a stage, their codes arriving in pieces of these lengths.

    Returns:
        [N] samples of each.
    """
    stage = CodecStage(decoder, DEPLOYMENT, clock=lambda: 0.0)
    for name, (_, inputs) in streams.items():
        stage.add(name, inputs, batch=False)
    heard: dict[str, list[Samples]] = {name: [] for name in streams}
    pieces = {name: _pieces(name, frames, arriving) for name, (frames, _) in streams.items()}
    while pieces:
        arrived = {name: next(left, None) for name, left in pieces.items()}
        pieces = {name: left for name, left in pieces.items() if arrived[name] is not None}
        stage.receive([chunk for chunk in arrived.values() if chunk is not None])
        while stage.has_work():
            result = stage.step()
            assert not result.failures
            for chunk in result.chunks:
                assert isinstance(chunk.payload, Pcm)
                heard[chunk.request_id].append(chunk.payload.samples[:, 0])
    assert set(stage.get_counts().values()) == {0}
    return {name: np.concatenate(parts) for name, parts in heard.items()}


def _pieces(
    name: str, frames: NDArray[np.int32], arriving: tuple[int, ...]
) -> Iterator[Chunk[Payload]]:
    start, index = 0, 0
    for length in cycle(arriving):
        end = min(len(frames), start + length)
        yield Chunk(name, CODES, index, Codes(frames[start:end]), end == len(frames))
        if end == len(frames):
            return
        start, index = end, index + 1


def check_whole(checkpoint: Path) -> None:
    """Codes decoded at once give the reference's spectrogram and wave."""
    networks = importlib.import_module(f"{PACKAGE}.token2wav").Token2Wav(checkpoint, CPU)
    for speaker in SPEAKERS:
        for count in (SHORT, LONG):
            noise = torch.from_numpy(random_noise(2 * count, 80))
            given = torch.from_numpy(codes(count)[:, 0]).long()
            with torch.inference_mode():
                mel = networks.mel(given, networks.speaker(speaker), noise)
                wave = networks.wave(mel)
            golden = goldens()[f"whole {speaker} {count}/mel"]
            assert_close(mel[::MEL_STRIDE].numpy(), golden, MEL_TOLERANCE)
            golden = goldens()[f"whole {speaker} {count}/wave"]
            assert_close(wave[::WAVE_STRIDE].numpy(), golden, WAVE_TOLERANCE)


def check_windows(checkpoint: Path) -> None:
    """Streams give the sound of the reference's networks run in the publisher's windows."""
    decoder = load_decoder(checkpoint)
    noise = torch.from_numpy(random_noise(2 * LONG, 80))
    module = importlib.import_module(f"{PACKAGE}.token2wav")

    def given(seed: int, first_block: int, frames: int, block_size: int, mels: int) -> torch.Tensor:
        return noise[first_block * block_size :][:frames]

    with patch.object(module, "block_noise", given):
        for count in WINDOWED:
            wave = hear(decoder, {"a": (codes(count), Token2WavInput(SPEAKERS[0]))}, 1)["a"]
            np.testing.assert_equal(len(wave), count * 480)
            golden = goldens()[f"windows {count}/wave"]
            assert_close(wave[::WAVE_STRIDE], golden, WAVE_TOLERANCE)


def assert_close(ours: NDArray[Any], theirs: NDArray[Any], tolerance: float) -> None:
    """Equal within a tolerance; the mutation tests know the error by its text."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance)
