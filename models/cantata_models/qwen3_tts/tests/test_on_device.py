"""A recording is followed on a device that pretends to be a GPU as on the CPU, with no step that
waits; the tests of all models speak in the voices of a checkpoint. Nor does a prompt wait."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from cantata.config.plugins import LocatedModel
from cantata.contract.model.plain_talker import PlainTalkerOptions
from cantata.stages.ar.torch_kernels import TorchKernels
from cantata_models.qwen3_tts.plain_talker import PlainQwen3TtsTalker, load_plain_talker
from cantata_models.qwen3_tts.plugin import PLUGIN
from cantata_models.qwen3_tts.prompt import FIRST_REFERENCE_FRAME, NONE, SPEAKER, PromptRows
from cantata_models.qwen3_tts.random_checkpoint import TINY_SMALL, write_checkpoint
from cantata_models.qwen3_tts.talker_front import EncodedRecording
from on_device.check import check_on_device
from pretended_device import device, in_own_process, pretended


@pytest.mark.thorough
@pytest.mark.integration
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@in_own_process
def test_a_recording_is_followed_wholly_on_the_device(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TINY_SMALL, "base", 0)
    check_on_device(LocatedModel(PLUGIN, tmp_path))


LAYOUT = PromptRows(
    text=[1, 2, 3, NONE, *range(4, 24)],
    codes=[
        NONE,
        5,
        SPEAKER,
        *range(FIRST_REFERENCE_FRAME, FIRST_REFERENCE_FRAME - 4, -1),
        *[6] * 17,
    ],
)
"""All kinds of rows, and more text than is projected at a time."""


@pytest.mark.thorough
@in_own_process
def test_the_rows_of_a_prompt_wait_for_nothing(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TINY_SMALL, "base", 0)
    talkers = [load_talker(tmp_path, torch.device("cpu"))]
    width, codebooks = talkers[0].hidden_size, talkers[0].num_codebooks
    frames = torch.arange(4 * codebooks).view(4, codebooks) % 8
    recording = EncodedRecording(torch.linspace(-1, 1, width)[None], frames)
    with pretended() as moves, torch.inference_mode():
        talkers.append(load_talker(tmp_path, device()))
        moves.clear()
        expected, found = (talker._embed(LAYOUT, recording) for talker in talkers)
        assert [move.what for move in moves] == ["queued"] * 3
        assert (expected[:, 0] != 0).all(), "no row is left out"
        torch.testing.assert_close(found.cpu(), expected)


def load_talker(checkpoint: Path, where: torch.device) -> PlainQwen3TtsTalker:
    options = PlainTalkerOptions(TorchKernels(torch.float32), where, torch.float32, 128)
    return load_plain_talker(checkpoint, options)
