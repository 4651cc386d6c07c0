"""What the tests of this model share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cantata_models.fish_speech.tests.talker_driver import FishTalkers


@pytest.fixture(scope="package")
def talkers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FishTalkers]:
    """One engine for each checkpoint, for all files that run them."""
    talkers = FishTalkers(tmp_path_factory.mktemp("fish_speech"))
    yield talkers
    talkers.close()
