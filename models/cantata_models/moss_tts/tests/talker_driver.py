"""Speaks scenarios with the talkers' networks, without an engine, and compares with the goldens.

One request at a time and greedily: a scenario's prompt goes through the backbone at once, then each
frame is completed and fed back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.stages.ar.environment import prepare_environment
from cantata_models.moss_tts.config import (
    LocalConfig,
    MossConfig,
    NanoConfig,
    load_local_config,
    load_nano_config,
)
from cantata_models.moss_tts.frame_network import BegunFrames
from cantata_models.moss_tts.prompt import MossPromptBuilder, MossTokenizer, joined
from cantata_models.moss_tts.random_checkpoint_talker import (
    TINY_LOCAL,
    TINY_NANO,
    write_local,
    write_nano,
)
from cantata_models.moss_tts.splitting import split_text
from cantata_models.moss_tts.talker_network import TalkerNetwork
from cantata_models.moss_tts.tests.parity.scenarios import (
    GOLDENS,
    MIN_GAP,
    Model,
    MossScenario,
    recorded,
)
from cantata_models.moss_tts.tests.sampling import penalized
from cantata_models.moss_tts.tokenizers import LocalTokenizer, NanoTokenizer

TOLERANCE = MIN_GAP / 4
"""Of a score. Below half of the goldens' smallest gap between two scores, no choice can change."""

Frames = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class LoadedMossTalker:
    """A tiny checkpoint and what is made of it."""

    config: MossConfig
    tokenizer: MossTokenizer
    prompts: MossPromptBuilder
    network: TalkerNetwork


@dataclass(slots=True)
class MossSpoken:
    """One part of an utterance."""

    codes: list[Frames] = field(default_factory=list)
    """[Q] each."""
    stop_scores: list[NDArray[np.float32]] = field(default_factory=list)
    """[2] each."""
    code_scores: list[list[float]] = field(default_factory=list)
    """The chosen code's score, by frame and codebook."""


class MossTalkers:
    """Talkers by model and seed, loaded on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loaded: dict[tuple[Model, int], LoadedMossTalker] = {}

    def get(self, scenario: MossScenario) -> LoadedMossTalker:
        """Return the talker that speaks a scenario."""
        key = scenario.model, scenario.seed
        if key not in self._loaded:
            folder = self._folder / f"{scenario.model.value}-{scenario.seed}"
            self._loaded[key] = (
                load_local(write_local(folder, TINY_LOCAL, scenario.seed))
                if scenario.model is Model.LOCAL
                else load_nano(write_nano(folder, TINY_NANO, scenario.seed))
            )
        return self._loaded[key]


def load_local(checkpoint: Path) -> LoadedMossTalker:
    """Load a checkpoint of MOSS-TTS-Local."""
    return _loaded(checkpoint, load_local_config(checkpoint), LocalTokenizer(checkpoint))


def load_nano(checkpoint: Path) -> LoadedMossTalker:
    """Load a checkpoint of MOSS-TTS-Nano."""
    return _loaded(checkpoint, load_nano_config(checkpoint), NanoTokenizer(checkpoint))


def _loaded(
    folder: Path, config: LocalConfig | NanoConfig, tokenizer: MossTokenizer
) -> LoadedMossTalker:
    prepare_environment()
    # They import vLLM, which reads the environment.
    from cantata_models.moss_tts.backbones import Gpt2Backbone, Qwen3Backbone
    from cantata_models.moss_tts.tests.plain_layers import (
        lay_out_weights,
        layer_config,
        plain_layers,
    )

    with plain_layers():
        backbone = (
            Qwen3Backbone(config, layer_config(Qwen3Backbone.vllm_fields(config)), "")
            if isinstance(config, LocalConfig)
            else Gpt2Backbone(config, layer_config(Gpt2Backbone.vllm_fields(config)), "")
        )
    network = TalkerNetwork(config, backbone).requires_grad_(False)
    network.load_checkpoint(folder)
    lay_out_weights(backbone)
    return LoadedMossTalker(config, tokenizer, MossPromptBuilder(config.tokens, tokenizer), network)


def build_prompts(talker: LoadedMossTalker, scenario: MossScenario) -> Iterator[Frames]:
    """Yield the [L, 1 + Q] prompt of each part."""
    config = talker.config
    recordings = recorded(scenario, config.num_codebooks, config.codebook_size)
    count = lambda text: len(talker.tokenizer.encode(text))  # noqa: E731
    for part in split_text(scenario.text, count, scenario.part_tokens):
        prompt = talker.prompts.build(
            joined(scenario.transcript, part.text),
            scenario.mode,
            described=scenario.described,
            references=len(recordings),
        )
        yield prompt.rows(recordings, config.num_codebooks, config.pad_code)


@torch.inference_mode()
def speak(talker: LoadedMossTalker, scenario: MossScenario, prompt: Frames) -> MossSpoken:
    """Speak one part greedily."""
    from cantata_models.moss_tts.tests.plain_layers import forget_requests

    network, spoken = talker.network, MossSpoken()
    slot = torch.tensor([[talker.config.tokens.assistant_slot]])
    forget_requests(network)
    rows, length = network.embed_prompt(torch.from_numpy(prompt)), 0
    for _ in range(scenario.max_frames):
        positions = torch.arange(length, length + len(rows))
        length += len(rows)
        begun = network.frames.begin(network.transformer(positions, rows)[-1:])
        spoken.stop_scores.append(begun.stop_scores[0].numpy())
        if int(begun.stop_scores.argmax()) != 0:
            break
        frame = _frame(talker, begun, spoken, scenario.penalty)
        rows = network.embed_prompt(torch.cat((slot, frame), dim=1))
    return spoken


def _frame(
    talker: LoadedMossTalker, begun: BegunFrames, spoken: MossSpoken, penalty: float
) -> torch.Tensor:
    """Choose and keep a frame, [1, Q]."""
    history = np.array(spoken.codes, np.int64).reshape(-1, talker.config.num_codebooks)
    chosen = list[float]()

    def choose(scores: torch.Tensor, book: int) -> torch.Tensor:
        raw = scores[0].numpy()
        code = int(penalized(raw, history[:, book], penalty).argmax())
        chosen.append(float(raw[code]))
        return torch.tensor([code])

    code0 = choose(begun.code0_scores, 0)
    frame = talker.network.frames.complete(begun, code0, choose)
    spoken.codes.append(frame[0].numpy())
    spoken.code_scores.append(chosen)
    return frame


def check(talker: LoadedMossTalker, scenario: MossScenario) -> None:
    """Fail if a scenario differs from its golden: its prompts, its frames, or its scores."""
    name = scenario.name
    with np.load(GOLDENS / "talker.npz") as loaded:
        goldens = {key: loaded[key] for key in loaded if key.startswith(f"{name}/")}
    prompts = list(build_prompts(talker, scenario))
    assert f"{name}/{len(prompts)}/rows" not in goldens, "too few parts"
    for part, prompt in enumerate(prompts):
        golden = f"{name}/{part}"
        np.testing.assert_array_equal(prompt, goldens[f"{golden}/rows"])
        spoken = speak(talker, scenario, prompt)
        for made, atol in (
            ("codes", 0.0),
            ("stop_scores", TOLERANCE),
            ("code_scores", TOLERANCE),
        ):
            theirs = goldens[f"{golden}/{made}"]
            ours = np.array(getattr(spoken, made)).reshape(-1, theirs.shape[1])
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=atol)
