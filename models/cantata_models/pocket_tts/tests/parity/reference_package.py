"""Runs the reference package (`pocket_tts`) and watches what it computes."""

from __future__ import annotations

import wave
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
import yaml
from numpy.typing import NDArray
from safetensors.torch import load_file
from scipy.stats import norm

from cantata_models.pocket_tts.config import load_config
from cantata_models.pocket_tts.tests.parity.scenarios import PocketScenario, record


def load_reference(checkpoint: Path) -> Any:
    """Return the reference's program for a checkpoint, with addresses of the hub as local files."""
    config = load_config(checkpoint)
    (path,) = checkpoint.glob("*.yaml")
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    values["weights_path"] = str(config.weights)
    values["flow_lm"]["lookup_table"]["tokenizer_path"] = str(config.tokenizer)
    local = checkpoint / "local" / "english.yaml"
    local.parent.mkdir()
    local.write_text(yaml.safe_dump(values), encoding="utf-8")
    return import_module("pocket_tts").TTSModel.load_model(config=str(local))


@dataclass(slots=True)
class PocketObserved:
    """One utterance of the reference."""

    latents: list[NDArray[np.float32]] = field(default_factory=list)
    """[F, E] of each piece, with those after the last that is heard."""
    samples: list[NDArray[np.float32]] = field(default_factory=list)
    """[N] of each piece."""
    voice: NDArray[np.float32] | None = None
    """[K, H]: rows of a recording."""
    gap: float = float("inf")
    """The smallest distance of a score to the threshold."""


def speak(model: Any, checkpoint: Path, scenario: PocketScenario) -> PocketObserved:
    """Run a scenario."""
    seen = PocketObserved()
    model.temp, model.noise_clamp = scenario.temperature, scenario.noise_clamp
    model.sampler_decode_steps = scenario.steps
    model.eos_threshold = scenario.eos_threshold
    state = _voice_state(model, checkpoint, scenario, seen)
    run, speak_piece = (
        model._run_flow_lm_and_increment_step,
        model._generate_audio_stream_short_text,
    )
    estimate, count = model._estimate_max_gen_len, iter(range(1000))

    def watched_run(**given: Any) -> Any:
        made = run(**given)
        if given.get("backbone_input_latents") is not None:
            seen.latents[-1] = np.concatenate([seen.latents[-1], made[0][0].numpy()])
        return made

    def watched_piece(**given: Any) -> Iterator[Any]:
        torch.manual_seed(scenario.seed + next(count))
        seen.latents.append(np.zeros((0, model.flow_lm.ldim), np.float32))
        chunks = list(speak_piece(**given))
        seen.samples.append(np.concatenate([chunk.numpy() for chunk in chunks]))
        yield from chunks

    def see_score(module: Any, given: Any, made: torch.Tensor) -> None:
        seen.gap = min(seen.gap, float((made - scenario.eos_threshold).abs().min()))

    hook = model.flow_lm.out_eos.register_forward_hook(see_score)
    with (
        patch.object(model, "_run_flow_lm_and_increment_step", watched_run),
        patch.object(model, "_generate_audio_stream_short_text", watched_piece),
        patch.object(
            model, "_estimate_max_gen_len", lambda n: min(estimate(n), scenario.max_frames)
        ),
        patch.object(torch.nn.init, "trunc_normal_", truncated_in_rank),
    ):
        model.generate_audio(state, scenario.text, frames_after_eos=scenario.frames_after_eos)
    hook.remove()
    return seen


def truncated_in_rank(
    tensor: torch.Tensor, mean: float, std: float, a: float, b: float
) -> torch.Tensor:
    """What torch draws by trying again, of one normal number each: the law is the same, and both
    programs get the same noise."""
    ranks = norm.cdf(tensor.normal_(0.0, 1.0).double().numpy())
    low, high = norm.cdf(a / std), norm.cdf(b / std)
    return tensor.copy_(torch.from_numpy(norm.ppf(low + ranks * (high - low)) * std))


def _voice_state(
    model: Any, checkpoint: Path, scenario: PocketScenario, seen: PocketObserved
) -> Any:
    if scenario.seconds:
        path = checkpoint / "recording.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(scenario.sample_rate)
            file.writeframes((record(scenario) * 32_768).astype("<i2").tobytes())
        encode = model._encode_audio

        def watched_encode(audio: torch.Tensor) -> torch.Tensor:
            rows: torch.Tensor = encode(audio)
            seen.voice = rows[0].numpy()
            return rows

        with patch.object(model, "_encode_audio", watched_encode):
            return model.get_state_for_audio_prompt(path, truncate=True)
    path = checkpoint / "embeddings" / f"{scenario.voice}.safetensors"
    tensors = load_file(path)
    if "audio_prompt" not in tensors:
        return model.get_state_for_audio_prompt(path)
    # As the package did while voices were published like this.
    rows = tensors["audio_prompt"]
    with torch.no_grad():
        states = import_module("pocket_tts.modules.stateful_module")
        state = states.init_states(model.flow_lm, batch_size=1, sequence_length=rows.shape[1])
        model._run_flow_lm_and_increment_step(model_state=state, audio_conditioning=rows)
    return state


def cut(model: Any, text: str) -> list[tuple[str, list[int], int]]:
    """Return the pieces of a text, with their tokens and the frames from the end on."""
    chunking = import_module("pocket_tts.models.text_chunking")
    most = import_module("pocket_tts.default_parameters").MAX_TOKEN_PER_CHUNK
    rules = (
        model.pad_with_spaces_for_short_inputs,
        model.remove_semicolons,
        model.append_terminal_punctuation,
        model.capitalize_first_letter,
        model.replace_characters,
    )
    tokenizer = model.flow_lm.conditioner.tokenizer
    pieces = []
    for chunk in chunking.split_into_best_sentences(tokenizer, text, most, *rules):
        prepared, frames = chunking.prepare_text_prompt(chunk, *rules)
        frames_after = model.model_recommended_frames_after_eos or frames + 2
        pieces.append((prepared, tokenizer(prepared)[0].tolist(), frames_after))
    return pieces
