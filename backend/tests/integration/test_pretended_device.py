"""Codec stages of every model on a device that only pretends to be one: nothing is left behind on
the CPU, and no step makes the host wait."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cantata.config.plugins import installed_plugins, locate, resolve
from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart
from cantata.contract.model.codec import BlockDecoder, CodeDecoder, ConditionedDecoder
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from pretended_device import Move, device, pretended
from threads import threads

STAGES = [
    pytest.param(plugin, stage, id=f"{name}-{stage.name}")
    for name, plugin in sorted(installed_plugins().items())
    for stage in plugin.pipeline.stages
    if stage.kind is StageKind.CODEC
    and (plugin.embedded_checkpoint or plugin.write_random_checkpoint)
]
ROWS, FRAMES = 2, 3

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for name, plugin in installed_plugins().items():
        if plugin.embedded_checkpoint:
            found[name] = locate(name).checkpoint
        elif plugin.write_random_checkpoint:
            folder = tmp_path_factory.mktemp(name.replace("/", "-"))
            plugin.write_random_checkpoint(folder)
            found[name] = folder
    return found


@pytest.mark.parametrize(("plugin", "stage"), STAGES)
def test_a_decoder_is_wholly_on_its_device_and_its_steps_do_not_wait(
    plugin: ModelPlugin, stage: StageSpec, checkpoints: dict[str, Path]
) -> None:
    checkpoint = checkpoints[plugin.name]
    inputs = _inputs(plugin, stage, checkpoint)
    with threads(1):
        expected, _ = _decode(stage, checkpoint, torch.device("cpu"), [], inputs)
        with pretended() as moves:
            found, waits = _decode(stage, checkpoint, device(), moves, inputs)
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert not waits, waits


def _inputs(plugin: ModelPlugin, stage: StageSpec, checkpoint: Path) -> Any:
    """What a decoder that depends on more than frames gets of a request: a speaker, say."""
    if plugin.load_chat_builder is None:
        return None
    builder = plugin.load_chat_builder(checkpoint)
    voice = builder.voices[0].id if builder.voices else None
    message = Message(Role.USER, (TextPart("Hello."),))
    planned = builder.build("r", ChatRequest((message,), voice=voice, seed=1))
    return planned.request.inputs.get(stage.name)


def _decode(
    stage: StageSpec, checkpoint: Path, where: torch.device, moves: list[Move], inputs: Any
) -> tuple[list[Any], list[Move]]:
    """Steps of two streams: their sound, and what waited in the last one. A block is many."""
    decoder = resolve(stage.factory)(checkpoint, where)
    state = decoder.init_state(ROWS + 1)
    slots = torch.tensor([2, 0])
    decoder.reset(state, slots)
    if isinstance(decoder, ConditionedDecoder):
        for slot in slots.tolist():
            decoder.condition(state, slot, inputs)
    rng = np.random.default_rng(0)
    sound = []
    for _ in range(1 if isinstance(decoder, BlockDecoder) else 2):
        frames = _frames(decoder, rng)
        moves.clear()
        if isinstance(decoder, BlockDecoder):
            made = decoder.decode_blocks(state, slots, list(frames), [False] * ROWS)
        else:
            made = decoder.decode(state, slots, frames)
        waits = [move for move in moves if move.waits and move.what in ("read", "sized")]
        sound += [row.to("cpu", torch.float32).numpy() for row in made]
    return sound, waits


def _frames(decoder: Any, rng: np.random.Generator) -> torch.Tensor:
    frames = FRAMES
    if isinstance(decoder, BlockDecoder):
        frames = decoder.block_frames + decoder.ahead_frames
    if isinstance(decoder, CodeDecoder):
        size = (ROWS, frames, decoder.num_codebooks)
        return torch.from_numpy(rng.integers(0, decoder.codebook_size, size))
    return torch.from_numpy(rng.standard_normal((ROWS, frames, decoder.latent_size), np.float32))
