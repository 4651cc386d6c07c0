"""Runs the reference package (`kokoro`) and watches what it computes."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.kokoro.config import CONFIG_FILE
from cantata_models.kokoro.random_checkpoint import SKIPPED, TINY, WIDTH
from cantata_models.kokoro.sound_network import HARMONICS
from cantata_models.kokoro.tests.parity.scenarios import KokoroScenario, make_noise, settle_phases

Floats = NDArray[np.float32]
_FIXED_SIZES = {
    "1024 + 2 + 64": f"{WIDTH} + 2 + {SKIPPED}",
    "nn.Conv1d(512, 64,": f"nn.Conv1d({TINY['hidden_dim']}, {SKIPPED},",
    "1024": str(WIDTH),
    ", 512, style_dim": f", {TINY['istftnet']['upsample_initial_channel']}, style_dim",
}
"""Sizes in the source of the reference's decoder, and those of the small checkpoints."""


def load_reference(checkpoint: Path) -> Any:
    """Return the reference's network for a checkpoint, in float32 on the CPU."""
    _prepare_package()
    (weights,) = checkpoint.glob("*.pth")
    model = importlib.import_module("kokoro.model").KModel(
        repo_id="hexgrad/Kokoro-82M", config=str(checkpoint / CONFIG_FILE), model=str(weights)
    )
    spectra = model.decoder.generator.stft
    transform = spectra.transform

    def settled(wave: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        magnitudes, phases = transform(wave)
        return magnitudes, settle_phases(phases)

    spectra.transform = settled
    return model.eval()


def _prepare_package() -> None:
    """The package itself would import its text front end, and its decoder has fixed sizes."""
    if "kokoro" in sys.modules:
        return
    spec = importlib.util.find_spec("kokoro")
    assert spec is not None
    package = types.ModuleType("kokoro")
    package.__path__ = list(spec.submodule_search_locations or ())
    sys.modules["kokoro"] = package
    decoder = importlib.util.find_spec("kokoro.istftnet")
    assert decoder is not None
    assert decoder.origin is not None
    source = Path(decoder.origin).read_text(encoding="utf-8")
    for published, small in _FIXED_SIZES.items():
        assert published in source
        source = source.replace(published, small)
    module = importlib.util.module_from_spec(decoder)
    sys.modules["kokoro.istftnet"] = module
    exec(compile(source, decoder.origin, "exec"), module.__dict__)


@dataclass(slots=True)
class KokoroObserved:
    """One sentence of the reference."""

    durations: NDArray[np.int64]
    """[T]"""
    pitch: Floats
    """[G] Hz."""
    energy: Floats
    """[G]"""
    samples: Floats
    round_gap: float
    """The smallest distance of a duration to the middle between two numbers of frames."""
    voiced_gap: float
    """The smallest distance of the pitch to where it is unvoiced, Hz."""


def speak(model: Any, checkpoint: Path, scenario: KokoroScenario) -> KokoroObserved:
    """Run a scenario."""
    packs = {
        name: torch.load(checkpoint / "voices" / f"{name}.pt", weights_only=True)
        for name in scenario.voices
    }
    style = sum(share * packs[name] for name, share in scenario.voices.items())
    seen: dict[str, Any] = {}

    def see_curves(module: Any, given: Any) -> None:
        seen["pitch"], seen["energy"] = given[1][0].numpy(), given[2][0].numpy()

    def see_durations(module: Any, given: Any, made: torch.Tensor) -> None:
        frames = torch.sigmoid(made).sum(dim=-1) / scenario.speed
        longer = frames.clamp(min=1)  # a phone has one frame at least
        seen["gap"] = float((longer - longer.floor() - 0.5).abs().min())

    hooks = [
        model.decoder.register_forward_pre_hook(see_curves),
        model.predictor.duration_proj.register_forward_hook(see_durations),
    ]
    with _noise(scenario.noise), torch.no_grad():
        output = model(
            scenario.phones, style[len(scenario.phones) - 1], scenario.speed, return_output=True
        )
    for hook in hooks:
        hook.remove()
    return KokoroObserved(
        durations=np.atleast_1d(output.pred_dur.numpy()),
        pitch=seen["pitch"],
        energy=seen["energy"],
        samples=output.audio.numpy(),
        round_gap=seen["gap"],
        voiced_gap=float(np.abs(seen["pitch"] - 10.0).min()),
    )


@contextmanager
def _noise(seed: int) -> Iterator[None]:
    """What the reference draws is the scenario's noise."""
    draw = torch.randn_like

    def given(like: torch.Tensor) -> torch.Tensor:
        # It draws once more for a value that it does not use.
        if like.shape[-1] != HARMONICS:
            return torch.zeros_like(like)
        return make_noise(seed, like.shape[1])[None]

    torch.randn_like = given  # type: ignore[assignment]
    try:
        yield
    finally:
        torch.randn_like = draw
