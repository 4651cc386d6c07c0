"""What several files load once: an engine takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cantata_models.voxcpm2.tests.stage_driver import VoxCpm2Checkpoints


@pytest.fixture(scope="package")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VoxCpm2Checkpoints]:
    """The stages by checkpoint."""
    checkpoints = VoxCpm2Checkpoints(tmp_path_factory.mktemp("voxcpm2"))
    yield checkpoints
    checkpoints.close()
