"""Checks of the tokenizers against their goldens.

Each check builds its objects from the modules imported at that moment, so that the mutation tests
can inject a fault into a module first.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.moss_tts.random_checkpoint_codec import write_codec
from cantata_models.moss_tts.tests.parity.recordings import stereo_recording
from cantata_models.moss_tts.tests.parity.write_codec_goldens import (
    CASES,
    GOLDENS,
    SECONDS,
    STRIDE,
    Case,
)

PACKAGE = "cantata_models.moss_tts"
TOLERANCE = 1e-5
"""For samples about -1..1; rounding alone makes half of it."""
CPU = torch.device("cpu")


def write_checkpoints(folder: Path) -> Path:
    """Write the tokenizers of the goldens, each into a subfolder named after its case."""
    for case in CASES:
        write_codec(folder / case.name, case.shape, case.checkpoint_seed)
    return folder


def golden(case: Case, name: str) -> NDArray[Any]:
    """An array of the goldens."""
    values: NDArray[Any] = np.load(GOLDENS)[f"{case.name}/{name}"]
    return values


def golden_codes(case: Case) -> torch.Tensor:
    """[1, T, Q]: the frames whose sound is in the goldens."""
    return torch.from_numpy(golden(case, "codes").astype(np.int64))[None]


def load_decoder(checkpoints: Path, case: Case) -> Any:
    """Load a tokenizer's decoder."""
    module = importlib.import_module(f"{PACKAGE}.codec")
    return module.AudioDecoder(checkpoints / case.name, case.used, CPU)


def load_encoder(checkpoints: Path, case: Case) -> Any:
    """Load a tokenizer's encoder."""
    module = importlib.import_module(f"{PACKAGE}.encoder")
    return module.AudioEncoder(checkpoints / case.name, case.used, CPU)


def decode(decoder: Any, codes: torch.Tensor, *chunks: int) -> torch.Tensor:
    """Decode [1, T, Q] in slot 1 of 2, cycling through these chunk lengths; returns [N, 2]."""
    state, slot = decoder.init_state(2), torch.tensor([1])
    decoder.reset(state, slot)
    return torch.cat([decoder.decode(state, slot, part)[0] for part in cut(codes, *chunks)])


def cut(codes: torch.Tensor, *chunks: int) -> Iterator[torch.Tensor]:
    """Cut [B, T, Q] along T, cycling through these lengths."""
    turn = 0
    while codes.shape[1]:
        now, codes = codes.tensor_split([chunks[turn % len(chunks)]], dim=1)
        yield now
        turn += 1


def check_whole(checkpoints: Path) -> None:
    """A whole stream sounds like the published code's."""
    for case in CASES:
        codes = golden_codes(case)
        _check_samples(case, decode(load_decoder(checkpoints, case), codes, codes.shape[1]))


def check_streamed(checkpoints: Path) -> None:
    """So it does in chunks."""
    for case in CASES:
        samples = decode(load_decoder(checkpoints, case), golden_codes(case), 1, 4, 7)
        _check_samples(case, samples)


def check_encoded(checkpoints: Path) -> None:
    """A recording has the published code's frames."""
    for case in CASES:
        recording = torch.from_numpy(stereo_recording(SECONDS, case.recording_seed))
        codes = load_encoder(checkpoints, case).encode(recording)
        np.testing.assert_array_equal(codes.numpy(), golden(case, "encoded"))


def _check_samples(case: Case, samples: torch.Tensor) -> None:
    kept = samples.reshape(-1)[::STRIDE].numpy()
    np.testing.assert_allclose(kept, golden(case, "samples"), rtol=0, atol=TOLERANCE)
