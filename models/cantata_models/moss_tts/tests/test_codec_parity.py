"""The tokenizers do as their published code does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cantata_models.moss_tts.tests import codec_checks
from cantata_models.moss_tts.tests.parity.write_codec_goldens import CASES, checksum
from threads import threads


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with threads(1):
        yield codec_checks.write_checkpoints(tmp_path_factory.mktemp("tokenizers"))


def test_the_checkpoints_are_those_of_the_goldens(checkpoints: Path) -> None:
    for case in CASES:
        assert checksum(checkpoints / case.name) == codec_checks.golden(case, "checksum")


@pytest.mark.parametrize(
    "check",
    [codec_checks.check_whole, codec_checks.check_streamed, codec_checks.check_encoded],
)
def test_parity(check: Callable[[Path], None], checkpoints: Path) -> None:
    check(checkpoints)
