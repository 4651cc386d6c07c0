"""Writes ../goldens/codec.npz with the tokenizers' published code.

    python -m cantata_models.moss_tts.tests.parity.write_codec_goldens FOLDER

FOLDER holds that code's two files (`reference_tokenizer`).
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.moss_tts.random_checkpoint_codec import (
    TINY_LOCAL,
    TINY_NANO,
    MossCodecShape,
    write_codec,
)
from cantata_models.moss_tts.tests.parity import reference_tokenizer
from cantata_models.moss_tts.tests.parity.recordings import stereo_recording

GOLDENS = Path(__file__).parents[1] / "goldens" / "codec.npz"
MIN_GAP = 1e-4
"""If the two best cosines are closer than this, rounding alone could swap them."""
STRIDE = 37
"""Every 37th value of the interleaved samples is kept: all phases of both channels occur."""
FRAMES = 40
"""Of the decoded stream: more than five times the longest window."""
SECONDS = 1.63
"""Of the encoded recording: the last frame is incomplete, the last block of frames too."""


@dataclass(frozen=True, slots=True)
class Case:
    """One tokenizer and its input."""

    name: str
    shape: MossCodecShape
    used: int
    """Codebooks that the model uses."""
    checkpoint_seed: int
    recording_seed: int


CASES = (Case("local", TINY_LOCAL, 4, 1, 1), Case("nano", TINY_NANO, 4, 1, 1))


def checksum(folder: Path) -> str:
    """Return the checksum of a tokenizer's files."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def golden(case: Case, code: Path, folder: Path) -> dict[str, NDArray[Any]]:
    """Return one tokenizer's arrays."""
    write_codec(folder, case.shape, case.checkpoint_seed)
    model = reference_tokenizer.load_reference(code, folder)
    random = np.random.RandomState(11)
    codes = random.randint(0, case.shape.codebook_size, (FRAMES, case.used)).astype(np.int16)
    samples = reference_tokenizer.decode(model, codes)
    recording = stereo_recording(SECONDS, case.recording_seed)
    encoded, gap = reference_tokenizer.encode(model, recording, case.used)
    print(
        f"{case.name}: samples within {samples.min():.2f}..{samples.max():.2f}, "
        f"rms {samples.std():.2f}; {len(encoded)} frames, {len(np.unique(encoded, axis=0))} "
        f"distinct, gap {gap:.1e}{'  TOO NEAR' if gap < MIN_GAP else ''}"
    )
    return {
        "checksum": np.array(checksum(folder)),
        "codes": codes,
        "samples": samples.reshape(-1)[::STRIDE],
        "encoded": encoded.astype(np.int16),
    }


def main() -> None:
    """Make the checkpoints, run the published code, write the goldens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("code", type=Path, help="folder of the published code's two files")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    arrays: dict[str, NDArray[Any]] = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            made = golden(case, arguments.code, Path(folder))
        arrays |= {f"{case.name}/{name}": value for name, value in made.items()}
    GOLDENS.parent.mkdir(exist_ok=True)
    np.savez_compressed(GOLDENS, allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
