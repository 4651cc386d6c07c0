"""A recording is followed on a device that pretends to be a GPU as on the CPU, with no step that
waits; the tests of all models speak in the voices of a checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata.config.plugins import LocatedModel
from cantata_models.qwen3_tts.plugin import PLUGIN
from cantata_models.qwen3_tts.random_checkpoint import TINY_SMALL, write_checkpoint
from on_device.check import check_on_device
from pretended_device import in_own_process


@pytest.mark.thorough
@pytest.mark.integration
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@in_own_process
def test_a_recording_is_followed_wholly_on_the_device(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, TINY_SMALL, "base", 0)
    check_on_device(LocatedModel(PLUGIN, tmp_path))
