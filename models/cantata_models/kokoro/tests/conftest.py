"""Checkpoints that several files use."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata_models.kokoro.tests.parity.scenarios import AFFINE, PLAIN, KokoroCheckpointKey


@pytest.fixture(scope="package")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[KokoroCheckpointKey, Path]:
    """Their folders."""
    folder = tmp_path_factory.mktemp("kokoro")
    return {key: key.write(folder) for key in (PLAIN, AFFINE)}
