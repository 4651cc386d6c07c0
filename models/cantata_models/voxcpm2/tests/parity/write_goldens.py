"""Write ../goldens with the reference package: `make parity MODEL=voxcpm2`."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.voxcpm2.tests.parity.reference_package import load_reference, speak
from cantata_models.voxcpm2.tests.parity.scenarios import SCENARIOS, VoxCpm2CheckpointKey

GOLDENS = Path(__file__).parents[1] / "goldens"
PCM_STRIDE = 37
"""Every 37th sample is kept. 37 is coprime to every rate of the codec, so all phases occur."""
MIN_GRID_GAP = 1e-4
"""If a number is closer to the middle of two steps than this, rounding could choose the other."""
MIN_STOP_GAP = 1e-3


def checksum(folder: Path) -> str:
    """Return the checksum of a checkpoint's files of weights that are safetensors."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.safetensors")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def main() -> None:
    """Make the checkpoints, run the reference, write the goldens."""
    GOLDENS.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    arrays: dict[str, NDArray[Any]] = {}
    sums: dict[str, str] = {}
    programs: dict[VoxCpm2CheckpointKey, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for scenario in SCENARIOS:
            key = scenario.checkpoint
            if key not in programs:
                folder = key.write(Path(scratch))
                sums[f"{key.name}-{key.seed}"] = checksum(folder)
                programs[key] = load_reference(folder)
            seen = speak(programs[key], scenario, Path(scratch))
            near = seen.grid_gap < MIN_GRID_GAP or seen.stop_gap < MIN_STOP_GAP
            print(
                f"{scenario.name}: {len(seen.latents)} patches, gaps {seen.grid_gap:.1e} "
                f"{seen.stop_gap:.1e}{'  TOO NEAR' if near else ''}, rms {seen.samples.std():.2f}",
                flush=True,
            )
            arrays[f"{scenario.name}/latents"] = seen.latents
            arrays[f"{scenario.name}/pcm"] = seen.samples[::PCM_STRIDE]
            arrays[f"{scenario.name}/samples"] = np.array(len(seen.samples))
            if seen.recording:
                arrays[f"{scenario.name}/recording"] = np.concatenate(seen.recording)
    (GOLDENS / "checksums.json").write_text(json.dumps(sums, indent=2) + "\n")
    np.savez_compressed(GOLDENS / "speech.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
