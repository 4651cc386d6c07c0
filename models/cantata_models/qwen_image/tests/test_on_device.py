"""Pictures are edited on a device that pretends to be a GPU as on the CPU, with no step that
waits; the tests of all models draw."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata.config.plugins import LocatedModel
from cantata_models.qwen_image.plugin import PLUGIN
from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint
from on_device.check import check_on_device
from pretended_device import in_own_process


@pytest.mark.thorough
@in_own_process
def test_pictures_are_edited_wholly_on_the_device(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, VARIANTS["edit-2511"], seed=1)
    check_on_device(LocatedModel(PLUGIN, tmp_path))
