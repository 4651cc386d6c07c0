"""Write ../goldens with the reference package: `make parity MODEL=pocket_tts`."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.pocket_tts.config import load_config
from cantata_models.pocket_tts.tests.parity.reference_package import cut, load_reference, speak
from cantata_models.pocket_tts.tests.parity.scenarios import CHECKPOINTS, SCENARIOS, TEXTS, write

GOLDENS = Path(__file__).parents[1] / "goldens"
PCM_STRIDE = 37
"""Every 37th sample is kept. 37 is coprime to every rate of the codec, so all phases occur."""
MIN_GAP = 1e-3
"""If a score is closer to the threshold than this, rounding could choose the other frame."""


def checksum(folder: Path) -> str:
    """Return the checksum of a checkpoint's weights and voices."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.safetensors")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def main() -> None:
    """Make the checkpoints, run the reference, write the goldens."""
    GOLDENS.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    arrays: dict[str, NDArray[Any]] = {}
    sums: dict[str, str] = {}
    pieces: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for name in CHECKPOINTS:
            folder = write(name, Path(scratch))
            sums[name], model = checksum(folder), load_reference(folder)
            pieces[name] = [cut(model, text) for text in TEXTS]
            frame = load_config(folder).mimi.samples_per_frame
            for scenario in SCENARIOS:
                if scenario.checkpoint != name:
                    continue
                seen = speak(model, folder, scenario)
                counts = [len(samples) // frame for samples in seen.samples]
                latents = [one[:count] for one, count in zip(seen.latents, counts, strict=True)]
                pcm = np.concatenate(seen.samples).clip(-1.0, 1.0)
                print(
                    f"{scenario.name}: {counts} frames, gap {seen.gap:.1e}"
                    f"{'  TOO NEAR' if seen.gap < MIN_GAP else ''}, rms {pcm.std():.2f}, "
                    f"peak {np.abs(pcm).max():.2f}",
                    flush=True,
                )
                arrays[f"{scenario.name}/latents"] = np.concatenate(latents)
                arrays[f"{scenario.name}/frames"] = np.array(counts)
                arrays[f"{scenario.name}/pcm"] = pcm[::PCM_STRIDE]
                if seen.voice is not None:
                    arrays[f"{scenario.name}/voice"] = seen.voice
    (GOLDENS / "checksums.json").write_text(json.dumps(sums, indent=2) + "\n")
    (GOLDENS / "pieces.json").write_text(json.dumps(pieces) + "\n")
    np.savez_compressed(GOLDENS / "speech.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
