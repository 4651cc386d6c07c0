"""What several files load once: an engine takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cantata_models.pocket_tts.tests.stage_driver import PocketCheckpoints


@pytest.fixture(scope="package")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PocketCheckpoints]:
    """The stages by checkpoint."""
    checkpoints = PocketCheckpoints(tmp_path_factory.mktemp("pocket_tts"))
    yield checkpoints
    checkpoints.close()
