"""What the tests of both models load once: an engine takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cantata_models.moss_tts.tests.stage_driver import MossCheckpoints
from cantata_models.moss_tts.tests.talker_driver import MossTalkers


@pytest.fixture(scope="package")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MossCheckpoints]:
    """The stages by checkpoint."""
    checkpoints = MossCheckpoints(tmp_path_factory.mktemp("moss_tts_stages"))
    yield checkpoints
    checkpoints.close()


@pytest.fixture(scope="package")
def talkers(tmp_path_factory: pytest.TempPathFactory) -> MossTalkers:
    """The talkers' networks without an engine."""
    return MossTalkers(tmp_path_factory.mktemp("moss_tts_talkers"))
