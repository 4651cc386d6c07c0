"""Write ../goldens with the reference package: `make parity MODEL=kokoro`."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.kokoro.tests.parity.reference_package import load_reference, speak
from cantata_models.kokoro.tests.parity.scenarios import SCENARIOS, KokoroCheckpointKey

GOLDENS = Path(__file__).parents[1] / "goldens"
PCM_STRIDE = 7
"""Every 7th sample is kept; 7 is coprime to the hop of 5 and to the 300 of a value of pitch."""
MIN_ROUND_GAP = 1e-4
"""If a duration is closer to the middle than this, rounding could choose the other number."""
MIN_VOICED_GAP = 1e-2


def checksum(folder: Path) -> str:
    """Return the checksum of a checkpoint's weights, which does not depend on how they are
    packed."""
    digest = hashlib.sha256()
    (path,) = folder.glob("*.pth")
    for part, tensors in torch.load(path, weights_only=True).items():
        for name, tensor in tensors.items():
            digest.update(f"{part}.{name}".encode())
            digest.update(tensor.numpy().tobytes())
    return digest.hexdigest()


def main() -> None:
    """Make the checkpoints, run the reference, write the goldens."""
    GOLDENS.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    arrays: dict[str, NDArray[Any]] = {}
    sums: dict[str, str] = {}
    models: dict[KokoroCheckpointKey, tuple[Path, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for scenario in SCENARIOS:
            key = scenario.checkpoint
            if key not in models:
                folder = key.write(Path(scratch))
                sums[key.name] = checksum(folder)
                models[key] = (folder, load_reference(folder))
            folder, model = models[key]
            seen = speak(model, folder, scenario)
            near = seen.round_gap < MIN_ROUND_GAP or seen.voiced_gap < MIN_VOICED_GAP
            print(
                f"{scenario.name}: {len(seen.samples) / 24_000:.2f} s, gaps {seen.round_gap:.1e} "
                f"{seen.voiced_gap:.1e}{'  TOO NEAR' if near else ''}, "
                f"pitch {seen.pitch.mean():.0f} +- {seen.pitch.std():.0f}, "
                f"rms {seen.samples.std():.3f}, peak {np.abs(seen.samples).max():.2f}",
                flush=True,
            )
            arrays[f"{scenario.name}/durations"] = seen.durations
            arrays[f"{scenario.name}/pitch"] = seen.pitch
            arrays[f"{scenario.name}/energy"] = seen.energy
            arrays[f"{scenario.name}/pcm"] = seen.samples[::PCM_STRIDE]
            arrays[f"{scenario.name}/samples"] = np.array(len(seen.samples))
    (GOLDENS / "checksums.json").write_text(json.dumps(sums, indent=2) + "\n")
    np.savez_compressed(GOLDENS / "speech.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
