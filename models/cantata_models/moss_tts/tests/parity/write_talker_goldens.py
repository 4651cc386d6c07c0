"""Writes the talkers' goldens with the published code: `python -m` this module, see --help."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from numpy.typing import NDArray

from cantata_models.moss_tts.prompt import Fields, MossMode, joined
from cantata_models.moss_tts.random_checkpoint_talker import (
    TINY_LOCAL,
    TINY_NANO,
    write_local,
    write_nano,
)
from cantata_models.moss_tts.tests.parity.published_nano import check_published_files
from cantata_models.moss_tts.tests.parity.reference_talkers import ReferenceLocal, ReferenceNano
from cantata_models.moss_tts.tests.parity.scenarios import (
    GOLDENS,
    MIN_GAP,
    SCENARIOS,
    Model,
    MossScenario,
    recorded,
)
from cantata_models.moss_tts.tests.parity.texts import PART_TOKENS, TEXTS
from cantata_models.moss_tts.tests.sampling import penalized

SAMPLING_CASES = tuple(product((0.5, 1.0, 1.7), (0, 5, 25), (0.3, 0.8, 0.95, 1.0), (1.0, 1.2)))
"""Temperature, top-k, top-p and penalty."""

Arrays = dict[str, NDArray[Any]]
Reference = ReferenceLocal | ReferenceNano


@dataclass(slots=True)
class Choices:
    """What the published code chose in one utterance, and from which scores."""

    stops: list[torch.Tensor] = field(default_factory=list)
    """[2] scores each."""
    scores: list[list[float]] = field(default_factory=list)
    """The chosen code's score, by frame and codebook."""
    gap: float = float("inf")
    """Smallest distance between the best two scores of any choice."""

    def watch(self, model: Any) -> Any:
        """Return a context in which the model's choices are recorded."""
        choose = model._sample_next_token

        def watched(*, logits: torch.Tensor, **named: Any) -> torch.Tensor:
            chosen: torch.Tensor = choose(logits=logits, **named)
            self._record(logits[0].float(), int(chosen[0]), named)
            return chosen

        return patch.object(model, "_sample_next_token", watched)

    def _record(self, scores: torch.Tensor, chosen: int, named: dict[str, Any]) -> None:
        history, penalty = named.get("previous_token_ids"), named.get("repetition_penalty", 1.0)
        if len(scores) == 2:
            self.stops.append(scores)
            self.scores.append([])
        else:
            self.scores[-1].append(float(scores[chosen]))
        spoken = np.empty(0, np.int64) if history is None else history[0].numpy()
        compared = np.sort(penalized(scores.numpy(), spoken, penalty))
        self.gap = min(self.gap, float(compared[-1] - compared[-2]))


def local_rows(reference: ReferenceLocal, scenario: MossScenario) -> Iterator[torch.Tensor]:
    """Yield the prompt, [1, L, 1 + Q]."""
    processor, described = reference.processor, scenario.described or Fields()
    shape = TINY_LOCAL
    frames = [torch.from_numpy(r) for r in recorded(scenario, shape.codebooks, shape.codes)]
    message = processor.build_user_message(
        text=joined(scenario.transcript, scenario.text),
        reference=frames if scenario.mode is MossMode.CLONE else None,
        **{name: getattr(described, name) for name in Fields.__dataclass_fields__},
    )
    conversation, mode = [message], "generation"
    if scenario.mode is MossMode.CONTINUATION:
        conversation.append(processor.build_assistant_message(audio_codes_list=frames))
        mode = "continuation"
    yield processor([conversation], mode=mode)["input_ids"]


def nano_rows(reference: ReferenceNano, scenario: MossScenario) -> Iterator[torch.Tensor]:
    """Yield the prompt of each part, [1, L, 1 + Q]."""
    model, shape = reference.model, TINY_NANO
    frames = [torch.from_numpy(r) for r in recorded(scenario, shape.codebooks, shape.codes)]
    continued = scenario.mode is MossMode.CONTINUATION
    for part in nano_parts(reference, scenario.text, scenario.part_tokens):
        rows, _ = model.build_inference_input_ids(
            text=joined(scenario.transcript, part)[len(scenario.transcript) :],
            text_tokenizer=reference.tokenizer,
            mode=(
                MossMode.CLONE if scenario.mode is MossMode.CLONE else MossMode.CONTINUATION
            ).value,
            prompt_text=scenario.transcript if continued else None,
            prompt_audio_codes=frames[0] if frames else None,
        )
        yield rows


def nano_parts(reference: ReferenceNano, text: str, max_tokens: int) -> list[str]:
    """Return the parts that the model speaks; a single one is the text as it is."""
    if max_tokens == 0:
        return [text]
    parts: list[str] = reference.model._split_text_into_best_sentences(
        reference.tokenizer, text, max_tokens
    )
    return parts if len(parts) > 1 else [text]


def speak(reference: Reference, scenario: MossScenario, rows: torch.Tensor) -> NDArray[np.int64]:
    """Generate greedily; returns [T, Q] frames."""
    settings = {"do_sample": False, "audio_repetition_penalty": scenario.penalty}
    settings["max_new_frames"] = scenario.max_frames
    if isinstance(reference, ReferenceNano):
        made = reference.model.generate(rows, **settings).audio_token_ids[0]
    else:
        ((start, whole),) = reference.model.generate(rows, **settings)
        made = whole[1 + int(start) :, 1:]
    frames: NDArray[np.int64] = made.numpy()
    return frames


def observe(reference: Reference, scenario: MossScenario, rows: torch.Tensor, name: str) -> Arrays:
    """Speak one part and return the arrays of its golden."""
    choices = Choices()
    with torch.inference_mode(), choices.watch(reference.model):
        frames = speak(reference, scenario, rows)
    codebooks = rows.shape[-1] - 1
    ended = "the model" if len(choices.stops) > len(frames) else "the limit"
    distinct = len({tuple(frame) for frame in frames.tolist()})
    print(
        f"{name}: {rows.shape[1]} rows, {len(frames)} frames ({distinct} distinct), ended by "
        f"{ended}, gap {choices.gap:.1e}{'  TOO NEAR' if choices.gap < MIN_GAP else ''}",
        flush=True,
    )
    scores = [row for row in choices.scores if row]
    return {
        f"{name}/rows": rows[0].numpy().astype(np.int16),
        f"{name}/codes": frames.astype(np.int16),
        f"{name}/stop_scores": torch.stack(choices.stops).numpy(),
        f"{name}/code_scores": np.array(scores, np.float32).reshape(-1, codebooks),
    }


def write_splitting(reference: ReferenceNano) -> list[dict[str, Any]]:
    """Return the parts of many texts and the silences behind them."""
    return [
        {
            "text": text,
            "max_tokens": max_tokens,
            "parts": (parts := nano_parts(reference, text, max_tokens)),
            "silences_s": [
                reference.model._estimate_voice_clone_inter_chunk_pause_seconds(part)
                for part in parts[:-1]
            ],
        }
        for text in TEXTS
        for max_tokens in PART_TOKENS
    ]


def write_sampling(references: dict[Model, Reference]) -> Arrays:
    """Return the probabilities from which the published code draws."""
    source = np.random.RandomState(5)
    cases = len(SAMPLING_CASES)
    scores = (source.standard_normal((cases, 64)) * 4).astype(np.float32)
    # Some codes score the same, where it does not matter which of them comes first.
    equal = np.array([top_p == 1 for _, _, top_p, _ in SAMPLING_CASES])
    scores[equal] = np.round(scores[equal] * 2) / 2
    history = source.randint(0, 64, (cases, 20))
    arrays: Arrays = {"scores": scores, "history": history.astype(np.int16)}
    arrays["settings"] = np.array(SAMPLING_CASES, np.float32)
    for model, reference in references.items():
        drawn: list[torch.Tensor] = []

        def keep(probs: torch.Tensor, num_samples: int, drawn: list[Any] = drawn) -> torch.Tensor:
            drawn.append(probs[0].clone())
            return probs.argmax(-1, keepdim=True)

        with patch.object(torch, "multinomial", keep):
            for case, (temperature, top_k, top_p, penalty) in enumerate(SAMPLING_CASES):
                reference.model._sample_next_token(
                    logits=torch.from_numpy(scores[case : case + 1]),
                    do_sample=True,
                    temperature=temperature,
                    top_k=top_k,
                    top_p=top_p,
                    previous_token_ids=torch.from_numpy(history[case : case + 1]),
                    repetition_penalty=penalty,
                )
        arrays[f"{model.value}/probabilities"] = torch.stack(drawn).numpy()
    return arrays


def load(repositories: dict[Model, Path], model: Model, seed: int, folder: Path) -> Reference:
    """Write a tiny checkpoint and load the published code's model from it."""
    if model is Model.LOCAL:
        return ReferenceLocal(repositories[model], write_local(folder, TINY_LOCAL, seed))
    return ReferenceNano(repositories[model], write_nano(folder, TINY_NANO, seed))


def main() -> None:
    """Make the checkpoints, run the published code, write the goldens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--local", type=Path, required=True, help="git repository with Local's code"
    )
    parser.add_argument("--nano", type=Path, required=True, help="git repository with Nano's code")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    repositories = {Model.LOCAL: arguments.local, Model.NANO: arguments.nano}
    arrays: Arrays = {}
    references: dict[Model, Reference] = {}
    for model, seed in sorted({(scenario.model, scenario.seed) for scenario in SCENARIOS}):
        with tempfile.TemporaryDirectory() as scratch:
            reference = references[model] = load(repositories, model, seed, Path(scratch))
        for scenario in SCENARIOS:
            if (scenario.model, scenario.seed) != (model, seed):
                continue
            rows = local_rows if model is Model.LOCAL else nano_rows
            for part, prompt in enumerate(rows(reference, scenario)):  # type: ignore[arg-type]
                arrays |= observe(reference, scenario, prompt, f"{scenario.name}/{part}")
    np.savez_compressed(GOLDENS / "talker.npz", allow_pickle=False, **arrays)
    np.savez_compressed(GOLDENS / "sampling.npz", allow_pickle=False, **write_sampling(references))
    nano = references[Model.NANO]
    assert isinstance(nano, ReferenceNano)
    check_published_files(arguments.nano, nano)
    splitting = write_splitting(nano)
    lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in splitting)
    (GOLDENS / "splitting.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
