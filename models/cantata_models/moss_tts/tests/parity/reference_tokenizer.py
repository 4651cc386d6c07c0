"""Runs the published code of the audio tokenizers, which is part of their checkpoints.

It needs two files of MOSS-Audio-Tokenizer-Nano in one folder, unmodified:
configuration_moss_audio_tokenizer.py and modeling_moss_audio_tokenizer.py.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from numpy.typing import NDArray

from cantata_layers.checkpoint import read_tensors

PACKAGE = "published_moss_audio_tokenizer"
CONFIGURATION, MODELING = "configuration_moss_audio_tokenizer", "modeling_moss_audio_tokenizer"
BARE_ANNOTATION = re.compile(r"^    \w+: [\w\[\], ]+\n", re.MULTILINE)
"""An attribute without a value in a class's body."""


def load_reference(code: Path, folder: Path) -> Any:
    """Load a tokenizer's checkpoint into the published model, in float32 on the CPU.

    Args:
        code: folder of the two files.
        folder: the tokenizer's.
    """
    _import_package(code)
    configuration = importlib.import_module(f"{PACKAGE}.{CONFIGURATION}")
    modeling = importlib.import_module(f"{PACKAGE}.{MODELING}")
    values = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    model = modeling.MossAudioTokenizerModel(configuration.MossAudioTokenizerConfig(**values))
    model.load_state_dict(dict(read_tensors(folder)))
    return model.eval()


def _import_package(code: Path) -> None:
    """Make a package of the two files.

    transformers 5 makes a dataclass of every configuration, which attributes without a value end
    with an error. The file only annotates with them what its constructor sets; they are left out.
    """
    if PACKAGE in sys.modules:
        return
    parent = Path(tempfile.mkdtemp())
    package = parent / PACKAGE
    package.mkdir()
    (package / "__init__.py").touch()
    configuration = (code / f"{CONFIGURATION}.py").read_text(encoding="utf-8")
    without = BARE_ANNOTATION.sub("", configuration)
    (package / f"{CONFIGURATION}.py").write_text(without, encoding="utf-8")
    modeling = (code / f"{MODELING}.py").read_text(encoding="utf-8")
    (package / f"{MODELING}.py").write_text(modeling, encoding="utf-8")
    sys.path.insert(0, str(parent))


@torch.inference_mode()
def decode(model: Any, codes: NDArray[Any]) -> NDArray[Any]:
    """[T, Q] codes -> [T * samples per frame, 2], the whole at once."""
    audio = model.decode(torch.from_numpy(codes).long().t()[:, None], return_dict=True).audio
    samples: NDArray[Any] = audio[0].t().numpy()
    return samples


@torch.inference_mode()
def encode(model: Any, samples: NDArray[Any], codebooks: int) -> tuple[NDArray[Any], float]:
    """[N, 2] -> [T, Q] codes, and the smallest gap between the two best cosines of a choice."""
    gap = QuantizerGap(model)
    made = model.batch_encode([torch.from_numpy(samples).t()], num_quantizers=codebooks)
    frames = int(made.audio_codes_lengths[0])
    codes: NDArray[Any] = made.audio_codes[:, 0, :frames].t().numpy()
    return codes, gap.smallest(frames)


class QuantizerGap:
    """Observes the choices of every codebook."""

    def __init__(self, model: Any) -> None:
        self._gaps: list[torch.Tensor] = []
        for book in model.quantizer.quantizers:
            book.decode_latents = self._watched(book, type(book).decode_latents)

    def smallest(self, frames: int) -> float:
        """The smallest gap among the first frames."""
        return min(float(gaps[:frames].min()) for gaps in self._gaps)

    def _watched(self, book: Any, decode_latents: Any) -> Any:
        def watched(latents: torch.Tensor) -> Any:
            rows = torch.nn.functional.normalize(latents[0].t())
            cosines = rows @ torch.nn.functional.normalize(book.codebook.weight).t()
            best = cosines.topk(2, dim=1).values
            self._gaps.append(best[:, 0] - best[:, 1])
            return decode_latents(book, latents)

        return watched
