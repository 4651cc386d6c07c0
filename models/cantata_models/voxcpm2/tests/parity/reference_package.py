"""Runs the reference package (`voxcpm`) and watches what it computes."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import soundfile
import torch
from numpy.typing import NDArray

from cantata_models.voxcpm2.tests.parity.recordings import recording
from cantata_models.voxcpm2.tests.parity.scenarios import VoxCpm2Scenario


def load_reference(checkpoint: Path) -> Any:
    """Return the reference's program for a checkpoint, in float32 on the CPU."""
    # transformers asks whether there is torchaudio, so the stand-in must come after it. The first
    # generation's module imports torchaudio; nothing here uses it.
    import transformers

    _ = transformers.LlamaTokenizerFast  # imported now, since transformers imports when asked
    sys.modules.setdefault("torchaudio", types.ModuleType("torchaudio"))
    from voxcpm.core import VoxCPM

    return VoxCPM(str(checkpoint), enable_denoiser=False, optimize=False, device="cpu")


@dataclass(slots=True)
class VoxCpm2Observed:
    """One utterance of the reference."""

    latents: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    """[F, patch_size * latent_dim]"""
    recording: list[NDArray[np.float32]] = field(default_factory=list)
    """[K, patch_size * latent_dim] each, in front of the text and behind it."""
    grid_gap: float = 1.0
    """The smallest distance of a quantized number to the middle between two steps."""
    stop_gap: float = float("inf")
    """The smallest difference of the scores to stop and to go on."""
    samples: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))


def speak(program: Any, scenario: VoxCpm2Scenario, folder: Path) -> VoxCpm2Observed:
    """Run a scenario, with a file for its recording in the folder."""
    sound = str(folder / "recording.wav")
    if scenario.seconds:
        made = recording(scenario.seconds, scenario.sample_rate, seed=1)
        soundfile.write(sound, made, scenario.sample_rate, subtype="PCM_16")
    continues = scenario.mode in ("continuation", "combined")
    imitates = scenario.mode in ("voice_clone", "combined")
    described = f"({scenario.description})" if scenario.description else ""
    with watched(program.tts_model) as seen:
        torch.manual_seed(scenario.seed)
        seen.samples = program.generate(
            text=described + scenario.text,
            prompt_wav_path=sound if continues else None,
            prompt_text=scenario.transcript if continues else None,
            reference_wav_path=sound if imitates else None,
            cfg_value=scenario.guidance,
            inference_timesteps=scenario.steps,
            max_len=scenario.max_frames,
            retry_badcase=False,
        )
    return seen


@contextmanager
def watched(model: Any) -> Iterator[VoxCpm2Observed]:
    """Collect what the model computes inside."""
    seen = VoxCpm2Observed()
    infer, encode = model._inference, model._encode_wav
    is_patch: list[torch.Tensor] = []

    def watched_infer(text: Any, mask: Any, feat: Any, patches: Any, **named: Any) -> Iterator[Any]:
        is_patch[:] = [patches[0].bool()]
        for made in infer(text, mask, feat, patches, **named):
            seen.latents = made[1].flatten(1).numpy()
            yield made

    def watched_encode(*given: Any, **named: Any) -> torch.Tensor:
        latents: torch.Tensor = encode(*given, **named)
        seen.recording.append(latents.flatten(1).numpy())
        return latents

    def see_grid(module: Any, given: Any, made: torch.Tensor) -> None:
        rows = made[0][is_patch[0]] if made.ndim == 3 else made
        if rows.numel():
            steps = torch.tanh(rows) * model.fsq_layer.scale
            gap = float(((steps - steps.floor()) - 0.5).abs().min())
            seen.grid_gap = min(seen.grid_gap, gap)

    def see_stop(module: Any, given: Any, made: torch.Tensor) -> None:
        seen.stop_gap = min(seen.stop_gap, float((made[0, 1] - made[0, 0]).abs()))

    hooks = [
        model.fsq_layer.in_proj.register_forward_hook(see_grid),
        model.stop_head.register_forward_hook(see_stop),
    ]
    model._inference, model._encode_wav = watched_infer, watched_encode
    try:
        yield seen
    finally:
        del model._inference, model._encode_wav
        for hook in hooks:
            hook.remove()
