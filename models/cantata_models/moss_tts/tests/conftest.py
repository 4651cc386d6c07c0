"""What the tests of both models load once."""

from __future__ import annotations

import pytest

from cantata_models.moss_tts.tests.stage_driver import MossCheckpoints
from cantata_models.moss_tts.tests.talker_driver import MossTalkers
from model_engines import checkpoints_fixture

checkpoints = checkpoints_fixture(MossCheckpoints)


@pytest.fixture(scope="package")
def talkers(tmp_path_factory: pytest.TempPathFactory) -> MossTalkers:
    """The talkers' networks without an engine."""
    return MossTalkers(tmp_path_factory.mktemp("moss_tts_talkers"))
