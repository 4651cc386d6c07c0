"""What several files load once: an engine takes seconds to start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cantata_models.qwen3_tts.tests.talker_driver import Qwen3TtsTalkers


@pytest.fixture(scope="package")
def talkers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Qwen3TtsTalkers]:
    """The talker stages by checkpoint."""
    talkers = Qwen3TtsTalkers(tmp_path_factory.mktemp("qwen3_tts"))
    yield talkers
    talkers.close()
